//! One reply for a caller who does not stream: the last message, and for a dialog the whole texts.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tg_schemas::Error;

use crate::ask::Part;
use crate::engine::translate::agent::Summary;
use crate::engine::translate::{Body, PartBody};
use crate::error::{RequestError, failed_with, json_written};
use crate::running::Running;
use crate::sending::Outlet;

/// The service whose answers take long to write.
const SPARQL: &str = "sparql";

/// What to make of the parts.
pub(super) enum Whole {
    /// The last message.
    Last,
    /// The last message with the texts of all.
    Dialog(Summary),
    /// The chunk of a document with this number.
    Chunk(i64),
}

impl Whole {
    /// What a request wants.
    pub(super) fn of(service: &str, operation: &str, body: &Body) -> Self {
        let index = body.get("chunk-index").and_then(Value::as_i64);
        match (service, operation, index) {
            ("agent", ..) => Self::Dialog(Summary::default()),
            (_, "stream-document", Some(index)) => Self::Chunk(index),
            _ => Self::Last,
        }
    }

    /// Reads the answer to its end.
    pub(super) async fn collect(mut self, running: &mut Running) -> Result<Body, RequestError> {
        let mut reply = Body::new();
        while let Some(part) = running.next().await {
            let body = match (part, &mut self) {
                // Of a chunk that is not the last the summary takes all that the reply has of it.
                (
                    Part::Body {
                        body: PartBody::Chunk(chunk),
                        last: false,
                        ..
                    },
                    Self::Dialog(summary),
                ) => {
                    summary.add_part(&chunk);
                    continue;
                }
                (Part::Body { body, .. }, _) => {
                    let lane = running.lane.clone();
                    let tree = lane.run_long(body.is_long(), move || body.into_tree());
                    tree.await.map_err(RequestError::Service)?
                }
                (Part::Error(error), _) => return Err(RequestError::Service(error)),
            };
            self.add(&body);
            if let Self::Chunk(wanted) = &self {
                // An index of 0 is left out of replies.
                let index = body.get("chunk-index").and_then(Value::as_i64);
                if index.unwrap_or(0) == *wanted || body.contains_key("error") {
                    return Ok(body);
                }
            }
            reply = body;
        }
        Ok(self.finish(reply))
    }

    /// Takes a part.
    pub(super) fn add(&mut self, part: &Body) {
        if let Self::Dialog(summary) = self {
            summary.add(part);
        }
    }

    /// The reply, by its last part.
    pub(super) fn finish(self, last: Body) -> Body {
        match self {
            Self::Dialog(summary) => summary.finish(last),
            _ => last,
        }
    }

    /// The reply as a response, once there is room for it.
    pub(super) async fn respond(self, mut running: Running, outlet: &Outlet) -> Response {
        // It counts among those in progress until its answer has found room.
        match self.collect(&mut running).await {
            Ok(body) => {
                let error = body.get("error").filter(|error| error["type"].is_string());
                let error: Option<Error> =
                    error.and_then(|error| serde_json::from_value(error.clone()).ok());
                // The tree is dropped before the text waits for room.
                let (lane, long) = (running.lane.clone(), running.name == SPARQL);
                let text = lane.run_long(long, move || Value::Object(body).to_string());
                let text = match text.await {
                    Ok(text) => text,
                    Err(error) => return RequestError::Service(error).into_response(),
                };
                let response = json_written(StatusCode::OK, outlet.hold_whole(text.into()).await);
                match error {
                    Some(error) => failed_with(response, &error),
                    None => response,
                }
            }
            Err(fault) => fault.into_response(),
        }
    }
}
