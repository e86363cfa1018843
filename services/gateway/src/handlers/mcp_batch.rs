//! Several messages in one request, as clients of the revision 2025-03-26 may send them. They are answered one after the other, and
//! the answers come as one list.

use std::sync::Arc;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use serde_json::Value;
use tg_schemas::limits::MCP_MESSAGE;

use super::mcp::Caller;
use crate::budget::Reading;
use crate::call::Meta;
use crate::engine::mcp::message::{RpcError, id, is_notification};
use crate::engine::mcp::revision::INITIALIZE;
use crate::error::json_written;

/// Most messages of a request.
const MESSAGES: usize = 16;
/// Most bytes of all answers.
const ANSWERS: usize = MCP_MESSAGE;

impl Caller {
    /// Answers each message that wants an answer.
    pub(super) async fn answer_each(
        mut self,
        messages: Vec<Value>,
        question: Reading,
    ) -> Result<Response, RpcError> {
        if messages.is_empty() || messages.len() > MESSAGES {
            let why = format!("must be one message, or a list of 1 to {MESSAGES}");
            return Err(RpcError::invalid(why));
        }
        // No answer comes in events, of which there would be several streams.
        self.headers.remove(header::ACCEPT);
        let mut list = Vec::new();
        for message in messages {
            let room = ANSWERS.saturating_sub(list.len());
            let answer = self.answer_in_list(message, room).await;
            if answer.is_empty() {
                continue;
            }
            list.push(if list.is_empty() { b'[' } else { b',' });
            list.extend_from_slice(&answer);
        }
        drop(question);
        if list.is_empty() {
            return Ok(StatusCode::ACCEPTED.into_response());
        }
        list.push(b']');
        let outlet = self.app.sending.outlet(&self.identity);
        Ok(json_written(StatusCode::OK, outlet.hold(list.into()).await))
    }

    /// The text of an answer that has so much room; nothing where none is wanted.
    async fn answer_in_list(&self, message: Value, room: usize) -> Bytes {
        let of = message.get("id").cloned().and_then(|given| id(given).ok());
        let is_notice = is_notification(&message);
        let told = |fault: RpcError| {
            if is_notice {
                return Bytes::new();
            }
            let fault = match &of {
                Some(id) => fault.of(id),
                None => fault,
            };
            Bytes::from(fault.body().to_string())
        };
        let body = match message {
            Value::Object(body) => body,
            _ => return told(RpcError::invalid("must be an object")),
        };
        if body
            .get("method")
            .is_some_and(|method| method == INITIALIZE)
        {
            return told(RpcError::invalid("method: initialize comes alone"));
        }
        // Each is a question of its own.
        let number: Arc<str> = uuid::Uuid::new_v4().to_string().into();
        let caller = Self {
            meta: Meta {
                number,
                ..self.meta.clone()
            },
            ..self.clone()
        };
        let answered = caller.answer(body, None).await;
        let text = match answered {
            Ok(response) => Limited::new(response.into_body(), room).collect().await,
            Err(fault) => return told(fault),
        };
        let text = text.map(|text| text.to_bytes());
        text.unwrap_or_else(|_| {
            let why = "the answers of this list are too large together: send the message alone";
            told(RpcError::internal(why))
        })
    }
}
