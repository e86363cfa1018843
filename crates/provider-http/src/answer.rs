//! Reading an answer within a bound.

use bytes::Bytes;
use futures::{Stream, StreamExt};
use reqwest::Response;
use serde::de::DeserializeOwned;

use crate::error::HttpError;

/// An answer whose body is still to be read.
#[derive(Debug)]
pub struct Answer {
    response: Response,
    limit: usize,
}

impl Answer {
    pub(crate) fn new(response: Response, limit: usize) -> Self {
        Self { response, limit }
    }

    /// What the server says that the body is; empty if nothing.
    pub fn content_type(&self) -> &str {
        let said = self.response.headers().get("content-type");
        said.and_then(|said| said.to_str().ok()).unwrap_or_default()
    }

    /// Where it came from, after all redirects.
    pub fn came_from(&self) -> &str {
        self.response.url().as_str()
    }

    /// The body as it comes. Past the bound it ends with [`HttpError::Unreadable`].
    pub fn bytes(self) -> impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static {
        let mut left = Some(self.limit);
        self.response.bytes_stream().map(move |chunk| {
            let chunk = chunk.map_err(|error| HttpError::of(&error, HttpError::BrokenOff))?;
            left = left.and_then(|left| left.checked_sub(chunk.len()));
            left.map(|_| chunk).ok_or(HttpError::Unreadable)
        })
    }

    /// The whole body as JSON.
    ///
    /// # Errors
    /// [`HttpError::Unreadable`] if it is longer than the bound or not what `T` reads, and failures of the
    /// transport.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, HttpError> {
        let mut chunks = std::pin::pin!(self.bytes());
        let mut body = Vec::new();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk?);
        }
        serde_json::from_slice(&body).map_err(|_| HttpError::Unreadable)
    }
}
