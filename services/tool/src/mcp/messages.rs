//! The HTTP client of sessions with MCP servers. Of the events that a server, or a proxy before it, sends, only messages are passed
//! on: pings and the like have data that is no message, and the session would end with them.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};

use super::content::LARGEST;

/// Such a client.
#[derive(Clone)]
pub(super) struct Messages(pub(super) Client);

type Headers = HashMap<HeaderName, HeaderValue>;
type Failed = StreamableHttpError<reqwest::Error>;

impl StreamableHttpClient for Messages {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, LARGEST)
            .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        largest: usize,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let client = &self.0;
        let sent = client
            .post_message_with_max_sse_event_size(uri, message, session, token, headers, largest);
        Ok(match sent.await? {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(messages(events), session)
            }
            response => response,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        self.0.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, Failed> {
        self.get_stream_with_max_sse_event_size(uri, session, last, token, headers, LARGEST)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
        largest: usize,
    ) -> Result<BoxedSseResponse, Failed> {
        let client = &self.0;
        let opened =
            client.get_stream_with_max_sse_event_size(uri, session, last, token, headers, largest);
        Ok(messages(opened.await?))
    }
}

/// The events, those that are no message without their data: ids and pauses count all the same.
fn messages(events: BoxedSseResponse) -> BoxedSseResponse {
    let heard = events.map(|event| {
        let mut event = event?;
        if !is_message(event.event.as_deref(), event.data.as_deref()) {
            (event.event, event.data) = (None, None);
        }
        Ok(event)
    });
    heard.boxed()
}

/// Whether an event is a message: of that type or of none, and JSON by its first character.
fn is_message(kind: Option<&str>, data: Option<&str>) -> bool {
    let is_of_messages = matches!(kind, None | Some("" | "message"));
    is_of_messages && data.is_some_and(|data| data.trim_start().starts_with(['{', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_are_heard() {
        let message = Some("{\"jsonrpc\": \"2.0\"}");
        for kind in [None, Some(""), Some("message")] {
            assert!(is_message(kind, message));
            assert!(!is_message(kind, Some("ping")) && !is_message(kind, None));
        }
        for kind in ["ping", "endpoint", "heartbeat"] {
            assert!(!is_message(Some(kind), message));
        }
    }
}
