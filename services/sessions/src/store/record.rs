//! What is kept of sessions and messages, as plain values.

use tg_schemas::operations::{CompactStrategy, ToolCall, Usage};

/// Through which doors a session is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// A session of a user with an agent that a file describes.
    Named,
    /// A conversation with an agent of the workspace, of nobody in particular.
    Conversation,
}

impl Surface {
    /// As it is kept.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Named => "a1",
            Self::Conversation => "conversation",
        }
    }

    /// From how it is kept.
    pub fn parse(text: &str) -> Self {
        match text {
            "conversation" => Self::Conversation,
            _ => Self::Named,
        }
    }
}

/// Whose sessions are meant: those of a user with an agent, or the conversations with one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The doors.
    pub surface: Surface,
    /// Name of the agent; of an agent of the workspace its id.
    pub agent: String,
    /// The user; empty in conversations.
    pub user: String,
}

/// A session that is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub owner: Owner,
    /// Its title.
    pub title: Option<String>,
    /// Collections that its answers may use; none: those of the agent.
    pub knowledge: Vec<String>,
    /// When it is shortened.
    pub strategy: CompactStrategy,
    /// Messages that stay as they are then.
    pub keep: i64,
    /// Whether a summary leaves out what tools returned.
    pub mask: bool,
    /// Id of the request that creates it.
    pub request: String,
    /// When, in milliseconds.
    pub at: i64,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub owner: Owner,
    /// Its title.
    pub title: Option<String>,
    /// Collections that its answers may use; none: those of the agent.
    pub knowledge: Vec<String>,
    /// When it is shortened.
    pub strategy: CompactStrategy,
    /// Messages that stay as they are then.
    pub keep: i64,
    /// Whether a summary leaves out what tools returned.
    pub mask: bool,
    /// Messages.
    pub messages: i64,
    /// Messages that no summary replaced.
    pub live: i64,
    /// Characters of these.
    pub characters: i64,
    /// Bytes of their texts.
    pub said_bytes: i64,
    /// Id of the request that created it; sessions of older releases have none.
    pub request: Option<String>,
    /// The session that it continues.
    pub parent: Option<String>,
    /// The session that continues it.
    pub successor: Option<String>,
    /// The last calls of tools, as the agent said: JSON in text.
    pub loop_window: String,
    /// When it was created, in milliseconds.
    pub created: i64,
    /// When it changed last.
    pub updated: i64,
    /// When it was archived.
    pub archived: Option<i64>,
}

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user.
    User,
    /// The agent.
    Agent,
    /// The system.
    System,
    /// A tool.
    Tool,
}

impl Role {
    /// As it is kept.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
            Self::System => "system",
            Self::Tool => "tool",
        }
    }

    /// From how it is kept.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::User, Self::Agent, Self::System, Self::Tool];
        all.into_iter().find(|role| role.as_str() == text)
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its number in its session, from 1 without gaps.
    pub seq: i64,
    /// Its id.
    pub id: String,
    /// When it was written, in milliseconds. Later messages of a session are later here, too.
    pub at: i64,
    /// Who says it.
    pub role: Role,
    /// The text.
    pub content: String,
    /// The tool that returned it.
    pub tool_name: Option<String>,
    /// The tools that it calls.
    pub tool_calls: Vec<ToolCall>,
    /// What it used.
    pub usage: Option<Usage>,
    /// Whether nobody said it.
    pub synthetic: bool,
    /// When a summary replaced it.
    pub compacted: Option<i64>,
    /// Of the answer of a turn: what its request is answered, JSON in text.
    pub result: Option<String>,
}

impl Message {
    /// Bytes of what it says, and of what its request is answered beside that.
    pub fn bytes(&self) -> usize {
        self.said_bytes() + self.result.as_ref().map_or(0, String::len)
    }

    /// Bytes of what it says: its text, and the tools that it calls.
    pub fn said_bytes(&self) -> usize {
        let call = |call: &ToolCall| call.name.len() + call.arguments.len();
        let calls: usize = self.tool_calls.iter().map(call).sum();
        self.content.len() + calls
    }
}

/// Which messages of a session are read, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Those after this number.
    pub after: i64,
    /// Only those that no summary replaced.
    pub live: bool,
    /// Without calls of tools and what these returned.
    pub plain: bool,
    /// So many of them.
    pub most: usize,
    /// No more once those before have so many bytes.
    pub bytes: usize,
}

impl Span {
    /// The message of a number.
    pub fn one(seq: i64) -> Self {
        Self {
            after: seq - 1,
            live: false,
            plain: false,
            most: 1,
            bytes: usize::MAX,
        }
    }
}

/// A page of a listing, and whether there are more of its kind after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Whether there are more.
    pub more: bool,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            more: false,
        }
    }
}

/// The user's message of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Id of the request, by which a repetition is known.
    pub request: String,
    /// Id of the message.
    pub id: String,
    /// The text.
    pub content: String,
    /// When, in milliseconds.
    pub at: i64,
}

/// How a turn begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Began {
    /// Number of the user's message, which is that of the turn.
    pub turn: i64,
    /// The user's message.
    pub message: Message,
    /// The answer, where the turn has one.
    pub finished: Option<Finished>,
}

/// A tool that the agent called on its way to the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// The call.
    pub call: ToolCall,
    /// What the tool returned.
    pub result: String,
    /// Ids of the two messages.
    pub ids: [String; 2],
}

/// The agent's answer of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Id of the message.
    pub id: String,
    /// The tools that it called before.
    pub steps: Vec<Step>,
    /// The text.
    pub content: String,
    /// What it used.
    pub usage: Usage,
    /// What the request is answered: JSON in text.
    pub result: String,
    /// The last calls of tools, as the agent said: JSON in text.
    pub loop_window: String,
    /// Whether what the user said is still to be searched for facts about the user.
    pub to_search: bool,
    /// When, in milliseconds.
    pub at: i64,
}

impl Answer {
    /// Bytes of what is kept of it, about.
    pub fn bytes(&self) -> usize {
        let step = |one: &Step| one.call.name.len() + one.call.arguments.len() + one.result.len();
        let steps: usize = self.steps.iter().map(step).sum();
        steps + self.content.len() + self.result.len() + self.loop_window.len()
    }
}

/// What an agent says in a session that nobody asked for just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unasked {
    /// Id of the message.
    pub id: String,
    /// The text.
    pub content: String,
    /// When, in milliseconds.
    pub at: i64,
}

/// A turn that has an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The message.
    pub message: Message,
    /// What the request is answered: JSON in text.
    pub result: String,
}

/// An agent that is added to a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRow {
    /// Its id.
    pub id: String,
    /// Id of the request, by which a repetition is known.
    pub request: String,
    /// The template that it is made of.
    pub template: Option<String>,
    /// What it is like: JSON in text.
    pub body: String,
    /// When, in milliseconds.
    pub at: i64,
}

/// An agent of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its id.
    pub id: String,
    /// What it is like: JSON in text.
    pub body: String,
    /// When it was created, in milliseconds. Later agents of a workspace are later here, too.
    pub created: i64,
    /// When it changed last.
    pub updated: i64,
}
