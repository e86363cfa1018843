//! What `/mcp` offers beside the operations of this system: tools, resources and prompts that are answered here, in this
//! process. The product has none. Tests have those that the conformance suite of the protocol asks for, so that it looks at the
//! same reading, routing and writing of messages as clients meet.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::model::{ErrorData, ProgressToken, RequestId};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::calls::Name;
use crate::engine::mcp::level::Level;
use crate::engine::mcp::session::Declared;

/// What is offered.
#[doc(hidden)]
pub trait Offers: fmt::Debug + Send + Sync {
    /// Adds to the answer to a listing, or to the beginning.
    fn add(&self, method: &str, result: &mut Value);

    /// Answers a request; `None`: it is about none of these.
    fn answer(
        &self,
        method: &str,
        params: &Map<String, Value>,
        client: Client,
    ) -> Option<BoxFuture<'static, Result<Value, ErrorData>>>;
}

/// What clients were asked and have not answered. Bounded by the requests in progress, each of which asks one thing at a time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked(Arc<Mutex<HashMap<Name, oneshot::Sender<Option<Value>>>>>);

impl Asked {
    /// Takes an answer; nothing, if it was refused. Says whether somebody waited for it.
    pub(crate) fn answered(&self, name: &Name, result: Option<&Value>) -> bool {
        let Some(waiting) = self.0.lock().remove(name) else {
            return false;
        };
        waiting.send(result.cloned()).is_ok()
    }

    fn wait(&self, name: Name) -> oneshot::Receiver<Option<Value>> {
        let (waiting, answer) = oneshot::channel();
        self.0.lock().insert(name, waiting);
        answer
    }

    fn forget(&self, name: &Name) {
        self.0.lock().remove(name);
    }
}

/// Forgets a question with whoever waits for its answer.
struct Waited<'a>(&'a Asked, Name);

impl Drop for Waited<'_> {
    fn drop(&mut self) {
        self.0.forget(&self.1);
    }
}

/// Who asks: what they can be asked, and what they hear before the answer.
#[doc(hidden)]
#[derive(Debug)]
pub struct Client {
    pub(crate) declared: Declared,
    pub(crate) level: Option<Level>,
    pub(crate) token: Option<ProgressToken>,
    /// What is told before the answer; `None`: it is not heard.
    pub(crate) messages: Option<mpsc::Sender<Value>>,
    /// Who it is in which session, and who waits for answers; `None`: this revision asks by results.
    pub(crate) asks: Option<(Asked, Arc<str>, String)>,
}

impl Client {
    /// Whether it speaks a revision that asks by messages, and not by results.
    pub fn is_asked_by_messages(&self) -> bool {
        self.asks.is_some()
    }

    /// Whether it can be sent a request of this method.
    pub fn takes(&self, method: &str) -> bool {
        self.declared.takes(method)
    }

    /// Tells a notice of a log, if it wants to hear of this level.
    pub async fn log(&self, level: &str, data: &str) {
        let wanted = Level::of(level).zip(self.level);
        if wanted.is_some_and(|(of, from)| of >= from) {
            self.tell(logged(level, "test", data)).await;
        }
    }

    /// Tells how far it is, if it wants to hear of it.
    pub async fn progress(&self, done: u64, of: u64) {
        let Some(token) = &self.token else { return };
        let params = json!({"progressToken": token, "progress": done, "total": of});
        let notice =
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        self.tell(notice).await;
    }

    /// Asks the client itself.
    ///
    /// # Errors
    /// It did not say that it can be asked this, it does not hear of it, or it refused.
    pub async fn ask(&self, method: &str, params: Value) -> Result<Value, ErrorData> {
        let refused = |why: &'static str| ErrorData::invalid_request(why, None);
        let Some((asked, user, session)) = &self.asks else {
            return Err(refused("this revision asks by results"));
        };
        if !self.takes(method) || self.messages.is_none() {
            return Err(refused("the client cannot be asked this"));
        }
        let id = RequestId::String(uuid::Uuid::new_v4().to_string().into());
        let name = Name {
            user: user.clone(),
            session: session.clone(),
            id: id.clone(),
        };
        let answer = asked.wait(name.clone());
        let _waited = Waited(asked, name);
        self.tell(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        let answer = answer.await.ok().flatten();
        answer.ok_or_else(|| refused("the client refused"))
    }

    async fn tell(&self, message: Value) {
        if let Some(messages) = &self.messages {
            // Whoever is gone hears nothing.
            let _ = messages.send(message).await;
        }
    }
}

/// A notice of a log.
pub(crate) fn logged(level: &str, logger: &str, data: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/message",
        "params": {"level": level, "logger": logger, "data": data},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(declared: Value, level: Option<Level>) -> (Client, mpsc::Receiver<Value>, Asked) {
        let (messages, told) = mpsc::channel(4);
        let asked = Asked::default();
        let client = Client {
            declared: Declared::of(&declared),
            level,
            token: None,
            messages: Some(messages),
            asks: Some((asked.clone(), "u".into(), "s".to_owned())),
        };
        (client, told, asked)
    }

    #[tokio::test]
    async fn an_answer_reaches_whoever_asked_and_is_waited_for_no_longer() {
        let (client, mut told, asked) = client(json!({"sampling": {}}), None);
        let asking = client.ask("sampling/createMessage", json!({"maxTokens": 1}));
        let answering = async {
            let message = told.recv().await.unwrap();
            let name = |user: &str| Name {
                user: user.into(),
                session: "s".to_owned(),
                id: serde_json::from_value(message["id"].clone()).unwrap(),
            };
            assert!(!asked.answered(&name("v"), Some(&json!({}))));
            assert!(asked.answered(&name("u"), Some(&json!({"model": "m"}))));
            assert!(!asked.answered(&name("u"), Some(&json!({}))));
        };
        let (answer, ()) = tokio::join!(asking, answering);
        assert_eq!(answer.unwrap(), json!({"model": "m"}));
        assert!(asked.0.lock().is_empty());
        assert!(client.ask("elicitation/create", json!({})).await.is_err());
    }

    #[tokio::test]
    async fn notices_come_from_the_level_on_that_is_wanted() {
        let (client, mut told, _asked) = client(json!({}), Some(Level::Warning));
        client.log("info", "a").await;
        client.log("error", "b").await;
        client.progress(1, 2).await;
        drop(client);
        assert_eq!(told.recv().await.unwrap()["params"]["data"], "b");
        assert!(told.recv().await.is_none());
    }
}
