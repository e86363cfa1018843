//! Reading an answer within a bound.

use bytes::Bytes;
use futures::{Stream, StreamExt};
use reqwest::{Response, Url};
use serde::de::DeserializeOwned;

use crate::error::HttpError;
use crate::outage::without_credentials;

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

    /// Where redirects led, without credentials, if that is elsewhere than what was asked for.
    pub fn led_to(&self, asked: &str) -> Option<String> {
        led(asked, self.response.url().as_str())
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

fn led(asked: &str, from: &str) -> Option<String> {
    let plain = |text: &str| {
        let mut url = Url::parse(text).ok()?;
        url.set_fragment(None);
        Some(url)
    };
    let elsewhere = plain(asked) != plain(from);
    elsewhere.then(|| without_credentials(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_place_is_told_and_never_credentials() {
        assert_eq!(led("http://h#a", "http://h/"), None);
        let led = led("http://h/a", "https://u:p@other/b?key=k");
        assert_eq!(led.as_deref(), Some("https://other/b"));
    }
}
