//! HTTP response of a server, from either of the two HTTP clients.

use super::plain_http_pool::PlainResponse;
use crate::events::is_event_stream;
use ::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use reqwest::Response;
use std::error::Error;

/// A response whose body has not been read yet.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Received on a connection of our keep-alive pool for plain HTTP.
    Pooled(PlainResponse),
    /// Received through `reqwest`.
    General(Response),
}

/// Error while reading a body.
pub(crate) type BodyError = Box<dyn Error + Send + Sync>;

impl Answer {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Answer::Pooled(response) => response.status(),
            Answer::General(response) => response.status(),
        }
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        match self {
            Answer::Pooled(response) => response.headers(),
            Answer::General(response) => response.headers(),
        }
    }

    /// Returns whether the body is an event stream.
    pub(crate) fn is_event_stream(&self) -> bool {
        match self {
            Answer::Pooled(response) => response.is_event_stream(),
            Answer::General(response) => is_event_stream(response.headers()),
        }
    }

    /// Returns the next chunk of the body, or `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        match self {
            Answer::Pooled(response) => Ok(response.chunk().await?),
            Answer::General(response) => Ok(response.chunk().await?),
        }
    }

    /// Reads a body whose length is known and at most `limit`, in one piece, if that saves a copy.
    pub(crate) async fn whole(&mut self, limit: usize) -> Result<Option<Bytes>, BodyError> {
        match self {
            Answer::Pooled(response) => Ok(response.whole(limit).await?),
            Answer::General(_) => Ok(None),
        }
    }
}

impl From<Response> for Answer {
    fn from(response: Response) -> Answer {
        Answer::General(response)
    }
}
