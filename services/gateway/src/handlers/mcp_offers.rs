//! Requests about what `/mcp` offers beside the operations of this system: answered by one message, or, where something is told
//! before the answer and the client takes events, by events.

use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream;
use rmcp::model::ErrorData;
use serde_json::Value;
use tokio::sync::mpsc;

use super::mcp::Caller;
use super::mcp_answer::message;
use super::sse;
use crate::engine::mcp::about;
use crate::engine::mcp::message::{Request, RpcError};
use crate::engine::mcp::resources;
use crate::engine::mcp::revision::Revision;
use crate::error::json_response;
use crate::offers::Client;

/// Messages that are told before they are read; whoever tells more waits.
const AHEAD: usize = 16;

/// What is answered.
type Ended = Result<Value, ErrorData>;

impl Caller {
    /// The answer to a listing, or to the beginning, with what is offered beside.
    pub(super) fn with_offers(&self, method: &str, mut result: Value) -> Value {
        if let Some(offers) = &self.app.options.offers {
            offers.add(method, &mut result);
        }
        result
    }

    /// Answers a request about what is offered beside; `None`: it is about none of that.
    pub(super) async fn offered(
        &self,
        request: &Request,
        revision: Revision,
        session: Option<&str>,
    ) -> Option<Result<Response, RpcError>> {
        let offers = self.app.options.offers.as_ref()?;
        let (messages, told) = mpsc::channel(AHEAD);
        let user = self.identity.id.clone();
        let asks = session.filter(|_| revision == Revision::Handshake);
        let client = Client {
            declared: self.declared(request, revision, session),
            level: self.level(request, revision, session),
            token: request.meta.get_progress_token(),
            messages: sse::wanted(&self.headers).then_some(messages),
            asks: asks.map(|session| (self.app.asked.clone(), user, session.to_owned())),
        };
        let answering = offers.answer(&request.method, &request.params, client)?;
        let mut telling = Telling {
            request: request.clone(),
            revision,
            answering: Some(answering),
            told,
            ended: None,
        };
        Some(match telling.next().await? {
            Said::Before(first) => Ok(self.stream(telling, first)),
            Said::Ended(Ok(result)) => {
                let result = telling.result(result);
                Ok(json_response(StatusCode::OK, &request.answer(result)))
            }
            Said::Ended(Err(error)) => Err(RpcError::new(400, error)),
        })
    }

    fn stream(&self, telling: Telling, first: Value) -> Response {
        let outlet = self.app.sending.outlet(&self.identity);
        let state = (telling, Some(message(&first)), outlet);
        let events = stream::unfold(state, |(mut telling, first, outlet)| async move {
            let event = match first {
                Some(first) => first,
                None => telling.event().await?,
            };
            let event = outlet.hold(event).await;
            Some((event, (telling, None, outlet)))
        });
        sse::kept_alive(events, self.app.options.heartbeat)
    }
}

/// What comes of a request.
enum Said {
    /// Something before the answer.
    Before(Value),
    /// The answer.
    Ended(Ended),
}

/// A request that is being answered. Dropping it ends that.
struct Telling {
    request: Request,
    revision: Revision,
    /// Until it ended.
    answering: Option<BoxFuture<'static, Ended>>,
    told: mpsc::Receiver<Value>,
    /// Until it is told, after all that was told before.
    ended: Option<Ended>,
}

impl Telling {
    async fn next(&mut self) -> Option<Said> {
        if let Some(answering) = &mut self.answering {
            let ended = tokio::select! {
                biased;
                Some(message) = self.told.recv() => return Some(Said::Before(message)),
                ended = answering => ended,
            };
            self.ended = Some(ended);
            // With it goes the other end of what is told.
            self.answering = None;
        }
        match self.told.recv().await {
            Some(message) => Some(Said::Before(message)),
            None => self.ended.take().map(Said::Ended),
        }
    }

    async fn event(&mut self) -> Option<Bytes> {
        let told = match self.next().await? {
            Said::Before(told) => told,
            Said::Ended(Ok(result)) => {
                let result = self.result(result);
                self.request.answer(result)
            }
            Said::Ended(Err(error)) => RpcError::new(200, error).of(&self.request.id).body(),
        };
        Some(message(&told))
    }

    /// A result as the revision has it.
    fn result(&self, result: Value) -> Value {
        match self.request.method.as_str() {
            // It asks for something itself.
            _ if result.get("resultType").is_some() => result,
            resources::READ => about::listed(result, self.revision),
            _ => about::completed(result, self.revision),
        }
    }
}
