//! A response body of a few parts, so that a large result is sent from the buffer it arrived in.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    array,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

/// Sends its parts one after the other. The length is known, so the response has a `Content-Length`.
#[derive(Debug)]
pub(super) struct BodyParts(array::IntoIter<Bytes, 3>);

impl BodyParts {
    /// Creates a body of these parts, none of which is empty.
    pub(super) fn new(parts: [Bytes; 3]) -> BodyParts {
        BodyParts(parts.into_iter())
    }
}

impl Body for BodyParts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next().map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_slice().iter().map(|part| part.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn parts_arrive_in_order_and_their_length_is_known() {
        let parts = [&b"{"[..], b"1234", b"}"].map(Bytes::from_static);
        let body = BodyParts::new(parts);
        assert_eq!(body.size_hint().exact(), Some(6));
        assert_eq!(body.collect().await.expect("it cannot fail").to_bytes(), "{1234}");
    }
}
