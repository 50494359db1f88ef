//! What a server sent back, whichever way the question went.

use ::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use reqwest::Response;
use std::error::Error;

/// A response whose body is still to be read.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Over a kept connection of our own.
    Short(::http::Response<Incoming>),
    /// By the general client.
    Long(Response),
}

/// Why a body cannot be read to its end.
pub(crate) type Broken = Box<dyn Error + Send + Sync>;

impl Answer {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Answer::Short(response) => response.status(),
            Answer::Long(response) => response.status(),
        }
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        match self {
            Answer::Short(response) => response.headers(),
            Answer::Long(response) => response.headers(),
        }
    }

    /// The next part of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Broken> {
        let response = match self {
            Answer::Long(response) => return Ok(response.chunk().await?),
            Answer::Short(response) => response,
        };
        while let Some(frame) = response.body_mut().frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

impl From<Response> for Answer {
    fn from(response: Response) -> Answer {
        Answer::Long(response)
    }
}
