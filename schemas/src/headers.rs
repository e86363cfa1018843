//! The envelope: headers that travel beside a body. The runtime writes and checks them, handlers cannot.

use serde::{Deserialize, Serialize};

/// What a message on a native dialog is. Absent on records, notices and foreign messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frame {
    /// A question for a server.
    Ask,
    /// A numbered part of an answer.
    Part,
    /// The last numbered part of an answer.
    Last,
    /// No part: the holder still works; `seq` is the number of its next part.
    Alive,
    /// No part: the server refuses or has lost the question; the body is an `Error`.
    Refuse,
    /// From the asker: send parts from `seq` on again.
    Resend,
    /// From the asker: parts below `seq` are used up, the holder may send more.
    Credit,
    /// From a process that takes an answer over: which part is next? Answered with `Resend` or `Cancel`.
    Where,
    /// From the asker: stop.
    Cancel,
    /// From the holder: stopped.
    Cancelled,
    /// From who keeps records: what became of some ([`crate::msg::Receipts`]).
    Receipts,
}

impl Frame {
    /// Every frame with its wire text.
    pub const ALL: [(Frame, &'static str); 11] = [
        (Frame::Ask, "ask"),
        (Frame::Part, "part"),
        (Frame::Last, "last"),
        (Frame::Alive, "alive"),
        (Frame::Refuse, "refuse"),
        (Frame::Resend, "resend"),
        (Frame::Credit, "credit"),
        (Frame::Where, "where"),
        (Frame::Cancel, "cancel"),
        (Frame::Cancelled, "cancelled"),
        (Frame::Receipts, "receipts"),
    ];

    /// The text in the `frame` header.
    pub fn as_str(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(frame, _)| *frame == self)
            .map_or("", |(_, text)| text)
    }

    /// Reads the `frame` header.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, known)| *known == text)
            .map(|(frame, _)| *frame)
    }
}

/// Who counts what a question takes of models. Absent: the service that asks the model, for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedBy {
    /// A run of the agent, which reserves and counts its calls itself.
    Run,
    /// The service that asks the model, for the workspace alone: a record is handled, which no budget refuses.
    Record,
}

impl CountedBy {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Run, Self::Record];

    /// The text in the `counted` header.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Record => "record",
        }
    }

    /// Reads the `counted` header.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }
}

/// The header table. An absent header is not checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Headers {
    /// Correlates all messages of one question. The reference's only header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Inbox of the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Inbox that wants the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// What the message is within a dialog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<Frame>,
    /// Number of this part of an answer, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// How many parts of an answer the body holds, a line each, if they are several; `seq` numbers the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<u32>,
    /// Absolute deadline, milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<u64>,
    /// The work goes on when nobody listens any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub detach: bool,
    /// The asker takes parts from whoever the question is passed on to, in that one's form. Native only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forward: bool,
    /// How often the record was tried before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Workspace the message belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Generation of the workspace that it was sent in. Native only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Collection that a record is for. Native only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
    /// Generation of that collection when it was sent; negative: it was not registered. Native only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection_generation: Option<i64>,
    /// Where a record's writer receives what became of it: a [`crate::receipt::Slip`], or several separated by spaces where the
    /// record was made of several. Native only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    /// Epoch of the flow it was sent under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Thread of work, derived from its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Id of the question that caused this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How many questions deep the chain is; of a record, how far it is from what was new, up to eight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Authenticated caller at the edge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// By what that caller is known, where the edge says it: `key:` and the id of an API key, or `token`. It goes with every
    /// question that one leads to. Native only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// What policies are to know of that caller, a JSON object ([`crate::msg::UserContext`]). It goes with every question that
    /// one leads to. Native only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_context: Option<String>,
    /// Roles that the caller has in the workspace, separated by spaces, as the edge found them. They go with every question that
    /// one leads to. Native only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<String>,
    /// Who counts what is asked of models for it. It goes with every question that one leads to. Native only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedBy>,
    /// The record may hold policies: its writer may configure the workspace. Native only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub policies: bool,
    /// Somebody loads what is in the record: facts among it stay when what an extraction found of the same is taken back.
    /// Native only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_hand: bool,
    /// W3C trace context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Id of the client's request that is behind it: people find the lines of a log by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Avro fingerprint of the writer's schema, 16 hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Which messages the body holds, where it holds several of different types ([`crate::sections`]). Native only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sections: Option<String>,
    /// What is said of a dead letter, a JSON object; the body is the record's own
    /// ([`crate::msg::DeadLetter`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aside: Option<String>,
}

impl Headers {
    /// Bytes of the headers in a message, at most.
    pub fn size(&self) -> usize {
        /// Names, lengths, and those that are numbers.
        const REST: usize = 768;
        let texts = [
            &self.id,
            &self.from,
            &self.reply_to,
            &self.workspace,
            &self.receipt,
            &self.thread,
            &self.parent,
            &self.user_id,
            &self.credential,
            &self.user_context,
            &self.roles,
            &self.traceparent,
            &self.request_id,
            &self.schema,
            &self.sections,
            &self.aside,
        ];
        let lengths = texts.into_iter().flatten().map(String::len);
        REST + lengths.sum::<usize>()
    }

    /// The headers as name/value text pairs, in table order; absent ones are left out.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::with_capacity(16);
        let mut add = |name, value: Option<String>| {
            if let Some(value) = value {
                pairs.push((name, value));
            }
        };
        add("id", self.id.clone());
        add("from", self.from.clone());
        add("reply-to", self.reply_to.clone());
        add("frame", self.frame.map(|frame| frame.as_str().to_owned()));
        add("seq", self.seq.map(|n| n.to_string()));
        add("parts", self.parts.map(|n| n.to_string()));
        add("deadline", self.deadline.map(|n| n.to_string()));
        add("detach", self.detach.then(|| "1".to_owned()));
        add("forward", self.forward.then(|| "1".to_owned()));
        add("attempt", self.attempt.map(|n| n.to_string()));
        add("workspace", self.workspace.clone());
        add("generation", self.generation.map(|n| n.to_string()));
        add("collection", self.collection.clone());
        let number = self.collection_generation.map(|n| n.to_string());
        add("collection-generation", number);
        add("receipt", self.receipt.clone());
        add("epoch", self.epoch.map(|n| n.to_string()));
        add("thread", self.thread.clone());
        add("parent", self.parent.clone());
        add("depth", self.depth.map(|n| n.to_string()));
        add("user-id", self.user_id.clone());
        add("credential", self.credential.clone());
        add("user-context", self.user_context.clone());
        add("roles", self.roles.clone());
        add("counted", self.counted.map(|by| by.as_str().to_owned()));
        add("policies", self.policies.then(|| "1".to_owned()));
        add("by-hand", self.by_hand.then(|| "1".to_owned()));
        add("traceparent", self.traceparent.clone());
        add("request-id", self.request_id.clone());
        add("schema", self.schema.clone());
        add("sections", self.sections.clone());
        add("aside", self.aside.clone());
        pairs
    }

    /// Takes one header from the wire. Unknown names and unreadable values are ignored.
    pub fn set(&mut self, name: &str, value: &str) {
        let owned = || Some(value.to_owned());
        match name {
            "id" => self.id = owned(),
            "from" => self.from = owned(),
            "reply-to" => self.reply_to = owned(),
            "frame" => self.frame = Frame::parse(value),
            "seq" => self.seq = value.parse().ok(),
            "parts" => self.parts = value.parse().ok(),
            "deadline" => self.deadline = value.parse().ok(),
            "detach" => self.detach = value == "1",
            "forward" => self.forward = value == "1",
            "attempt" => self.attempt = value.parse().ok(),
            "workspace" => self.workspace = owned(),
            "generation" => self.generation = value.parse().ok(),
            "collection" => self.collection = owned(),
            "collection-generation" => self.collection_generation = value.parse().ok(),
            "receipt" => self.receipt = owned(),
            "epoch" => self.epoch = value.parse().ok(),
            "thread" => self.thread = owned(),
            "parent" => self.parent = owned(),
            "depth" => self.depth = value.parse().ok(),
            "user-id" => self.user_id = owned(),
            "credential" => self.credential = owned(),
            "user-context" => self.user_context = owned(),
            "roles" => self.roles = owned(),
            "counted" => self.counted = CountedBy::parse(value),
            "policies" => self.policies = value == "1",
            "by-hand" => self.by_hand = value == "1",
            "traceparent" => self.traceparent = owned(),
            "request-id" => self.request_id = owned(),
            "schema" => self.schema = owned(),
            "sections" => self.sections = owned(),
            "aside" => self.aside = owned(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_set_are_inverse() {
        let headers = Headers {
            id: Some("q1".into()),
            frame: Some(Frame::Alive),
            seq: Some(7),
            parts: Some(2),
            deadline: Some(99),
            detach: true,
            forward: true,
            epoch: Some(3),
            generation: Some(1_763_000_000_000),
            collection: Some("docs".into()),
            collection_generation: Some(-1),
            receipt: Some("inbox/7/0".into()),
            request_id: Some("r-1".into()),
            user_context: Some("{}".into()),
            counted: Some(CountedBy::Record),
            policies: true,
            by_hand: true,
            sections: Some("AgentRun=3".into()),
            aside: Some("{}".into()),
            ..Headers::default()
        };
        let mut back = Headers::default();
        for (name, value) in headers.pairs() {
            back.set(name, &value);
        }
        assert_eq!(back, headers);
    }
}
