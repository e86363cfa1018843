//! Listeners of a flow: each serves a topic of its name. The flow's agent is one by its own interface.

use std::time::Duration;

use tg_mesh::tg_bus::Consumer;
use tg_mesh::{Answer, Cx, Peer, Responder, answer_on};
use tg_schemas::msg::{
    AgentRequest, AgentResponse, ListenerRequest, ListenerResponse, ThreadsEnded,
};
use tg_schemas::{Class, Error, FlowId, Message, Reply, Subscription, Topic, WorkspaceId};

use crate::caller::Caller;

/// What the names of topics of listeners begin with.
const LISTENER: &str = "listener.";
/// What is reported of threads that ended.
const ENDED: &str = "thread";
/// Most threads that one notice names.
const MOST: usize = 1000;

/// Topic on which a listener of a flow is asked.
pub fn topic(workspace: &WorkspaceId, flow: &FlowId, name: &str) -> Topic {
    Topic::flow(
        Class::Request,
        &format!("{LISTENER}{name}"),
        workspace,
        flow,
    )
}

/// A listener of a flow, asked as part of the work on a message.
pub struct Listening<'a> {
    /// The message.
    pub cx: &'a Cx,
    /// The workspace.
    pub workspace: &'a WorkspaceId,
    /// The flow.
    pub flow: &'a FlowId,
    /// How long it may take.
    pub patience: Duration,
}

impl Listening<'_> {
    /// Gives it a message. Given again under the same id it is the same message.
    ///
    /// # Errors
    /// A fault before anything was sent.
    pub fn give(
        &self,
        name: &str,
        id: String,
        message: &ListenerRequest,
    ) -> Result<Answer<ListenerResponse>, Error> {
        self.ask(topic(self.workspace, self.flow, name), id, message)
    }

    /// Asks the flow's agent.
    ///
    /// # Errors
    /// A fault before anything was sent.
    pub fn agent(
        &self,
        id: String,
        question: &AgentRequest,
    ) -> Result<Answer<AgentResponse>, Error> {
        let topic = Topic::flow(Class::Request, "agent", self.workspace, self.flow);
        self.ask(topic, id, question)
    }

    fn ask<Q: Message, R: Reply>(
        &self,
        topic: Topic,
        id: String,
        question: &Q,
    ) -> Result<Answer<R>, Error> {
        // The ids of the messages follow from that of the question behind them, which listeners must not know.
        Caller::within(self.cx, Ok(topic))
            .at_most(self.patience)
            .known_as(id)
            .without_parent()
            .ask(question)
    }
}

/// Tells whoever keeps something for threads that they have ended. It may be lost: what is kept needs a bound of its own.
pub async fn tell_ended(peer: &Peer, workspace: &WorkspaceId, threads: &[String]) {
    let topic = Topic::workspace(Class::Notify, ENDED, workspace);
    for some in threads.chunks(MOST) {
        let notice = ThreadsEnded {
            thread_ids: some.to_vec(),
        };
        if let Err(error) = peer.notify(&topic, &notice).await {
            tracing::debug!(%error, "threads ended, and nobody was told");
        }
    }
}

/// Listens under a name in a flow, beside whoever else listens under it: each message goes to one of them. `handle` gets
/// the message and answers it in parts; where it panics, its caller gets an error. It lasts as long as what is
/// returned.
///
/// # Errors
/// As of [`tg_mesh::answer_on`].
pub async fn listen<F>(
    peer: &Peer,
    (workspace, flow): (&WorkspaceId, &FlowId),
    name: &str,
    handle: impl Fn(ListenerRequest, Responder<ListenerResponse>) -> F + Send + Sync + 'static,
) -> Result<Box<dyn Consumer>, Error>
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let of = Subscription::service(topic(workspace, flow, name), name);
    answer_on(peer, of, handle).await
}
