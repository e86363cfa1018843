//! What wraps around the handlers of messages: it sees a message before its handler, each record that the handler
//! writes, and how a record ended before that is acknowledged.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use tg_rpc::{Ask, Peer};
use tg_schemas::{Error, Headers, Subscription, Topic};

/// A layer around handlers, where readers report: without headers of ours there is nothing to go by.
pub trait Middleware: Send + Sync + 'static {
    /// Follows a message through its handler, or lets it pass. `by` is the subscription of a record; a question has
    /// none.
    fn follow(&self, headers: &Headers, by: Option<&Subscription>) -> Option<Arc<dyn Follow>>;
}

/// One message on its way through its handler.
#[async_trait]
pub trait Follow: Any + Send + Sync {
    /// The options under which the handler's next record to a topic is written.
    fn stamp(&self, topic: &Topic, options: Ask) -> Ask;

    /// A record was written, under this id.
    ///
    /// # Errors
    /// When that cannot be noted; the handler ends with it.
    async fn wrote(&self, peer: &Peer, topic: &Topic, id: Option<String>) -> Result<(), Error>;

    /// How the handling of a record ended for good: `Err` says why it will never be handled. `false`: that could not be
    /// noted, the record must come again.
    async fn ended(&self, peer: &Peer, outcome: Result<(), &Error>) -> bool;
}
