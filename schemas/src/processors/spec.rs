//! What a spec is: a name with a direction, the message that travels there and the place of its topic. Typed where
//! handlers are hosted and messages are sent, erased where blueprints are checked and flows planned.

use std::marker::PhantomData;

use crate::message::Message;
use crate::reply::Reply;
use crate::topic::{Class, Topic};
use crate::{FlowId, WorkspaceId};

/// What a spec of a processor does with its topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Answers questions read from a `request` topic.
    Serves,
    /// Sends the answers of [`Role::Serves`] (interop only) to a `response` topic.
    Answers,
    /// Reads records from a `flow` topic.
    Reads,
    /// Writes records to a `flow` topic.
    Writes,
    /// Asks questions on a `request` topic.
    Asks,
    /// Hears the answers of [`Role::Asks`] on a `response` topic.
    Hears,
}

impl Role {
    /// Class of the topic such a spec needs.
    pub const fn class(self) -> Class {
        match self {
            Self::Serves | Self::Asks => Class::Request,
            Self::Answers | Self::Hears => Class::Response,
            Self::Reads | Self::Writes => Class::Flow,
        }
    }

    /// Whether the processor has a queue for it.
    pub fn consumes(self) -> bool {
        matches!(self, Self::Serves | Self::Reads)
    }
}

/// Where the topic of a spec comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicScope {
    /// `topics[spec]` of the processor's config row, as the blueprint wires it; one instance per flow.
    Flow,
    /// `<class>:tg:<name>:{workspace}:{id}` of each flow, added by the mesh and never in blueprints: only native
    /// processes meet there.
    Own,
    /// `<class>:tg:<name>:{workspace}`, one instance per workspace.
    Workspace,
    /// `<class>:tg:<name>`, one per system.
    System,
}

/// Kind of a spec that answers questions `Q` with replies `R`.
pub struct Serves<Q, R>(PhantomData<fn() -> (Q, R)>);
/// Kind of a spec that reads records `M`.
pub struct Reads<M>(PhantomData<fn() -> M>);
/// Kind of a spec that writes records `M`.
pub struct Writes<M>(PhantomData<fn() -> M>);
/// Kind of a spec that asks questions `Q` and is answered with replies `R`.
pub struct Asks<Q, R>(PhantomData<fn() -> (Q, R)>);
/// Kind of a spec that hears replies `R` to questions that others ask.
pub struct Hears<R>(PhantomData<fn() -> R>);

/// Direction and messages of a spec, as a type.
pub trait Kind {
    /// Direction.
    const ROLE: Role;
    /// Name of the message on the topic.
    const MESSAGE: &'static str;
    /// Direction and message of the topic of replies, where there is one.
    const RESPONSE: Option<(Role, &'static str)>;
}

impl<Q: Message, R: Reply> Kind for Serves<Q, R> {
    const ROLE: Role = Role::Serves;
    const MESSAGE: &'static str = Q::NAME;
    const RESPONSE: Option<(Role, &'static str)> = Some((Role::Answers, R::NAME));
}

impl<Q: Message, R: Reply> Kind for Asks<Q, R> {
    const ROLE: Role = Role::Asks;
    const MESSAGE: &'static str = Q::NAME;
    const RESPONSE: Option<(Role, &'static str)> = Some((Role::Hears, R::NAME));
}

impl<M: Message> Kind for Reads<M> {
    const ROLE: Role = Role::Reads;
    const MESSAGE: &'static str = M::NAME;
    const RESPONSE: Option<(Role, &'static str)> = None;
}

impl<M: Message> Kind for Writes<M> {
    const ROLE: Role = Role::Writes;
    const MESSAGE: &'static str = M::NAME;
    const RESPONSE: Option<(Role, &'static str)> = None;
}

impl<R: Reply> Kind for Hears<R> {
    const ROLE: Role = Role::Hears;
    const MESSAGE: &'static str = R::NAME;
    const RESPONSE: Option<(Role, &'static str)> = None;
}

/// One named spec of kind `K`: [`Serves`], [`Reads`], [`Writes`] or [`Asks`] with their messages.
///
/// Two processors that have a spec of the same name, kind and place have the same spec, so that what they share can
/// use it for both.
pub struct Spec<K> {
    /// Name as used in blueprints and queue names; the base of the topic outside config rows.
    pub name: &'static str,
    /// Where its topic comes from.
    pub place: TopicScope,
    /// Name of the spec of the replies, in blueprints; none where only native processes meet.
    response: Option<&'static str>,
    /// Base of the topic on which a record must find a reader.
    stream: Option<&'static str>,
    /// Of a spec that reads: its reader keeps what records hold.
    keeps: bool,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Spec<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Spec<K> {}

impl<K: Kind> Spec<K> {
    /// A spec whose topic a config row names.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            place: TopicScope::Flow,
            response: None,
            stream: None,
            keeps: false,
            kind: PhantomData,
        }
    }

    /// The spec of a question with the spec of its replies, both named by a config row.
    pub const fn pair(name: &'static str, response: &'static str) -> Self {
        Self {
            response: Some(response),
            ..Self::new(name)
        }
    }

    /// On a topic that the mesh adds to each flow.
    pub const fn own(self) -> Self {
        self.at(TopicScope::Own)
    }

    /// On a topic of each workspace.
    pub const fn workspace(self) -> Self {
        self.at(TopicScope::Workspace)
    }

    /// On a topic of the system.
    pub const fn system(self) -> Self {
        self.at(TopicScope::System)
    }

    const fn at(self, place: TopicScope) -> Self {
        Self {
            place,
            stream: Some(self.name),
            ..self
        }
    }

    /// The same topic, seen from its other end.
    const fn other_end<O>(self) -> Spec<O> {
        Spec {
            name: self.name,
            place: self.place,
            response: self.response,
            stream: self.stream,
            keeps: self.keeps,
            kind: PhantomData,
        }
    }

    /// Its topic in the system; for specs of [`TopicScope::System`].
    pub fn of_system(self) -> Topic {
        Topic::system(K::ROLE.class(), self.name)
    }

    /// Its topic in a workspace; for specs of [`TopicScope::Workspace`].
    pub fn of_workspace(self, workspace: &WorkspaceId) -> Topic {
        Topic::workspace(K::ROLE.class(), self.name, workspace)
    }

    /// Its topic in a flow; for specs of [`TopicScope::Own`].
    pub fn of_flow(self, workspace: &WorkspaceId, flow: &FlowId) -> Topic {
        Topic::flow(K::ROLE.class(), self.name, workspace, flow)
    }

    /// The spec without its types.
    pub const fn row(self) -> SpecRow {
        SpecRow {
            name: self.name,
            role: K::ROLE,
            message: K::MESSAGE,
            place: self.place,
            stream: match K::ROLE {
                Role::Reads => self.stream,
                _ => None,
            },
            keeps: self.keeps,
        }
    }

    /// The spec of the replies without its types.
    pub(super) const fn response_row(self) -> Option<SpecRow> {
        match (self.response, K::RESPONSE) {
            (Some(name), Some((role, message))) => Some(SpecRow {
                name,
                role,
                message,
                place: self.place,
                stream: None,
                keeps: false,
            }),
            _ => None,
        }
    }
}

impl<Q: Message, R: Reply> Spec<Serves<Q, R>> {
    /// The same spec for a handler that has its own type for the replies, written in the same schema. One that is
    /// written in another does not compile.
    pub const fn replied_as<T: Reply>(self) -> Spec<Serves<Q, T>> {
        const { assert!(same(R::NAME, T::NAME) && same(R::AVRO, T::AVRO)) };
        self.other_end()
    }
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

impl<M: Message> Spec<Reads<M>> {
    /// Its reader keeps what records hold, and reports to a writer that asked ([`crate::Headers::receipt`]) what became of them.
    /// Other readers of the same topic do not.
    pub const fn keeps(self) -> Self {
        Self {
            keeps: true,
            ..self
        }
    }

    /// What blueprints wire it to: the base of the topic. A record there must find a reader.
    pub const fn on(self, stream: &'static str) -> Self {
        Self {
            stream: Some(stream),
            ..self
        }
    }
}

impl<M: Message> Spec<Writes<M>> {
    /// A record may find no reader: a flow that has none has nothing that it is about.
    pub const fn droppable(self) -> Self {
        Self {
            stream: None,
            ..self
        }
    }

    /// The spec of its reader.
    pub const fn read(self) -> Spec<Reads<M>> {
        self.other_end()
    }
}

impl<Q: Message, R: Reply> Spec<Asks<Q, R>> {
    /// The spec of who answers.
    pub const fn served(self) -> Spec<Serves<Q, R>> {
        self.other_end()
    }
}

/// A spec without its types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpecRow {
    /// Name as used in blueprints and queue names.
    pub name: &'static str,
    /// Direction.
    pub role: Role,
    /// Message body.
    pub message: &'static str,
    /// Where its topic comes from.
    pub place: TopicScope,
    /// Of a spec that reads: base of the topic on which a record that no queue takes was not accepted.
    pub(super) stream: Option<&'static str>,
    /// Of a spec that reads: its reader reports to writers what became of their records.
    pub keeps: bool,
}
