//! How a client asks: on which topic, and what of the message that is worked on passes down.

use std::marker::PhantomData;
use std::time::Duration;

use tg_mesh::{Answer, Ask, Cx, Deadline, Mesh, Peer};
use tg_schemas::processors::{Asks, Serves, Spec};
use tg_schemas::{Error, Message, Reply, Topic, WorkspaceId, limits};
use tokio_util::sync::CancellationToken;

use crate::neighbours::Neighbours;

/// The limit of the largest page; where it is large in bytes it ends earlier.
pub(crate) const LARGEST_PAGE: i64 = limits::PAGE_MOST as i64;

/// Asks questions `Q` on one topic, answered with replies `R`. Cheap to clone.
pub(crate) struct Caller<Q, R> {
    peer: Peer,
    /// Why there is nobody to ask, if there is not.
    topic: Result<Topic, Error>,
    ask: Ask,
    /// How long each answer may take, where the message's own deadline does not count.
    patience: Option<Duration>,
    messages: PhantomData<fn(Q) -> R>,
}

impl<Q, R> Clone for Caller<Q, R> {
    fn clone(&self) -> Self {
        Self {
            peer: self.peer.clone(),
            topic: self.topic.clone(),
            ask: self.ask.clone(),
            patience: self.patience,
            messages: PhantomData,
        }
    }
}

impl<Q: Message, R: Reply> Caller<Q, R> {
    /// Asks the service behind a spec of the instance. Deadline, cancel, thread and trace pass down.
    pub(crate) fn of_flow(cx: &Cx, spec: Spec<Asks<Q, R>>) -> Self {
        Self::within(cx, cx.topic(spec))
    }

    /// Asks on a topic as part of the work on a message.
    pub(crate) fn within(cx: &Cx, topic: Result<Topic, Error>) -> Self {
        Self {
            peer: Peer::clone(&cx.mesh),
            topic,
            ask: cx.ask_options(),
            patience: None,
            messages: PhantomData,
        }
    }

    /// Asks what a service serves in the system, on this process's own account.
    pub(crate) fn of_system(peer: &Peer, spec: Spec<Serves<Q, R>>) -> Self {
        Self::of_process(peer, spec.of_system())
    }

    /// Asks what a service serves in a workspace, on this process's own account.
    pub(crate) fn of_workspace(
        mesh: &Mesh,
        spec: Spec<Serves<Q, R>>,
        workspace: &WorkspaceId,
    ) -> Self {
        Self::of_process(mesh, spec.of_workspace(workspace))
    }

    /// Asks on a topic, on this process's own account.
    pub(crate) fn of_process(peer: &Peer, topic: Topic) -> Self {
        Self::for_somebody(peer, topic, Ask::default())
    }

    /// Asks on a topic for somebody whose request is no message: with these options.
    pub(crate) fn for_somebody(peer: &Peer, topic: Topic, ask: Ask) -> Self {
        Self {
            peer: peer.clone(),
            topic: Ok(topic),
            ask,
            patience: None,
            messages: PhantomData,
        }
    }

    /// Each answer may take as long, whatever is left of the message's own deadline.
    pub(crate) fn patient(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// All answers together may take as long at most.
    pub(crate) fn at_most(mut self, patience: Duration) -> Self {
        let end = Deadline::after(patience);
        self.ask.deadline = Some(self.ask.deadline.map_or(end, |own| own.min(end)));
        self
    }

    /// Questions belong to a generation of their workspace: once it has ended they are refused.
    pub(crate) fn in_generation(mut self, workspace: &WorkspaceId, generation: i64) -> Self {
        self.ask.workspace = Some(workspace.clone());
        self.ask.generation = Some(generation);
        self
    }

    /// Questions are known by this id: who answers twice answers once.
    pub(crate) fn known_as(mut self, id: String) -> Self {
        self.ask.id = Some(id);
        self
    }

    /// Whoever is asked does not see the id of the question that is worked on.
    pub(crate) fn without_parent(mut self) -> Self {
        self.ask.parent = None;
        self
    }

    /// Whoever takes a question on may have another service answer it.
    pub(crate) fn forwarded(mut self) -> Self {
        self.ask.forward = true;
        self
    }

    /// Questions end when this is cancelled.
    pub(crate) fn until(mut self, cancel: CancellationToken) -> Self {
        self.ask.cancel = cancel;
        self
    }

    /// What may be counted on of whoever answers.
    pub(crate) fn neighbours(&self) -> Neighbours {
        Neighbours::of(&self.peer)
    }

    /// The limit to ask a listing with.
    pub(crate) fn page(&self) -> i64 {
        match self.neighbours().have_pages() {
            true => LARGEST_PAGE,
            false => 0,
        }
    }

    /// Asks; nothing is sent before the first part is awaited.
    pub(crate) fn ask(&self, question: &Q) -> Result<Answer<R>, Error> {
        let topic = self.topic.as_ref().map_err(Clone::clone)?;
        let mut ask = self.ask.clone();
        ask.deadline = self.patience.map(Deadline::after).or(ask.deadline);
        Ok(self.peer.ask(topic, question, ask))
    }

    /// Asks another service with the same options.
    pub(crate) fn ask_on<P: Message, A: Reply>(&self, topic: &Topic, question: &P) -> Answer<A> {
        let mut ask = self.ask.clone();
        ask.deadline = self.patience.map(Deadline::after).or(ask.deadline);
        ask.forward = false;
        self.peer.ask(topic, question, ask)
    }

    /// Asks and reads to the end.
    pub(crate) async fn last(&self, question: &Q) -> Result<R, Error> {
        self.ask(question)?.last().await
    }
}

/// Whether a listing goes on after a page, which said where; `after` then says so too.
pub(crate) fn goes_on(after: &mut String, next: String) -> bool {
    // One that names itself as the next would never end.
    if next.is_empty() || next == *after {
        return false;
    }
    *after = next;
    true
}
