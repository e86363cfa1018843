//! Topics and the only place where names of exchanges and queues are formed.
//!
//! `topic-id = class ":" space ":" topic`; the topic may contain further colons. On a broker a topic is
//! a durable fanout exchange `<prefix>.<class>.<topic>` and a subscription a queue `<exchange>.<name>`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorCode};
use crate::ids::{FlowId, WorkspaceId};

/// What kind of traffic a topic carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A stream of records: durable, every subscription gets a copy.
    Flow,
    /// Questions: transient, replicas of one subscription compete.
    Request,
    /// Answers (interop only; native answers go straight to the asker's inbox).
    Response,
    /// Hints for everybody who listens; may be lost.
    Notify,
}

impl Class {
    /// The class as it is written in topic ids and exchange names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Request => "request",
            Self::Response => "response",
            Self::Notify => "notify",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "flow" => Self::Flow,
            "request" => Self::Request,
            "response" => Self::Response,
            "notify" => Self::Notify,
            _ => return None,
        })
    }
}

/// The topic space of everything shipped.
pub const SPACE: &str = "tg";

/// AMQP short strings: names of exchanges and queues end here.
pub const MAX_NAME: usize = 255;

/// A parsed topic id.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Topic {
    class: Class,
    space: std::sync::Arc<str>,
    topic: std::sync::Arc<str>,
}

impl Topic {
    /// Reads a topic id. Text without any colon is a `flow` topic of the default space.
    ///
    /// # Errors
    /// `bad-request`: it is not a topic id; the text says why.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let invalid = |why: &str| Error::new(ErrorCode::BadRequest, format!("topic: {why}"));
        let (class, space, topic) = match text.split_once(':') {
            None => (Class::Flow, SPACE, text),
            Some((class, rest)) => {
                let (space, topic) = rest
                    .split_once(':')
                    .ok_or_else(|| invalid("expected class:space:topic"))?;
                let class = Class::parse(class)
                    .ok_or_else(|| invalid("class must be flow, request, response or notify"))?;
                (class, space, topic)
            }
        };
        if space.is_empty() || topic.is_empty() {
            return Err(invalid("expected class:space:topic"));
        }
        if text.chars().any(char::is_control) {
            return Err(invalid("control characters are not allowed"));
        }
        // Of the full name, which a bare one is not: what is read here can be written and read again.
        if class.as_str().len() + space.len() + topic.len() + 2 > MAX_NAME {
            return Err(invalid("is longer than 255 bytes"));
        }
        Ok(Self {
            class,
            space: space.into(),
            topic: topic.into(),
        })
    }

    /// A topic that belongs to the whole system, e.g. `request:tg:config`.
    pub fn system(class: Class, base: &str) -> Self {
        Self {
            class,
            space: SPACE.into(),
            topic: base.into(),
        }
    }

    /// A topic of one workspace, e.g. `request:tg:flow:default`.
    pub fn workspace(class: Class, base: &str, workspace: &WorkspaceId) -> Self {
        Self {
            class,
            space: SPACE.into(),
            topic: format!("{base}:{workspace}").into(),
        }
    }

    /// A topic of one flow, e.g. `request:tg:agent:default:default`.
    pub fn flow(class: Class, base: &str, workspace: &WorkspaceId, flow: &FlowId) -> Self {
        Self {
            class,
            space: SPACE.into(),
            topic: format!("{base}:{workspace}:{flow}").into(),
        }
    }

    /// The same topic with another class: the response twin of a request topic.
    pub fn with_class(&self, class: Class) -> Self {
        Self {
            class,
            ..self.clone()
        }
    }

    /// The class.
    pub fn class(&self) -> Class {
        self.class
    }

    /// The part after class and space.
    pub fn name(&self) -> &str {
        &self.topic
    }

    /// Name of the exchange. In native mode the mesh's own `prefix` replaces the topic space.
    pub fn exchange(&self, prefix: Option<&str>) -> String {
        format!(
            "{}.{}.{}",
            prefix.unwrap_or(&self.space),
            self.class.as_str(),
            self.topic
        )
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.class.as_str(), self.space, self.topic)
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl TryFrom<String> for Topic {
    type Error = Error;
    fn try_from(text: String) -> Result<Self, Error> {
        Self::parse(&text)
    }
}

impl From<Topic> for String {
    fn from(topic: Topic) -> String {
        topic.to_string()
    }
}

/// One reader of a topic. Replicas with the same name share the queue.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Subscription {
    /// What is read.
    pub topic: Topic,
    /// Who reads: the queue's suffix.
    pub name: String,
}

impl Subscription {
    /// Subscription of a flow processor's spec: `<processor>--<workspace>--<variant>--<spec>`.
    pub fn flow(topic: Topic, processor: &str, workspace: &str, variant: &str, spec: &str) -> Self {
        Self {
            topic,
            name: format!("{processor}--{workspace}--{variant}--{spec}"),
        }
    }

    /// Subscription of a service that is not per flow: its processor id.
    pub fn service(topic: Topic, processor: &str) -> Self {
        Self {
            topic,
            name: processor.to_owned(),
        }
    }

    /// Name of the queue.
    pub fn queue(&self, prefix: Option<&str>) -> String {
        format!("{}.{}", self.topic.exchange(prefix), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_references() {
        let ws = WorkspaceId::new("default").unwrap();
        let flow = FlowId::new("default").unwrap();
        let topic = Topic::flow(Class::Request, "agent", &ws, &flow);
        assert_eq!(topic.to_string(), "request:tg:agent:default:default");
        assert_eq!(topic.exchange(None), "tg.request.agent:default:default");
        let sub = Subscription::flow(topic, "agent-manager", "default", "default", "request");
        assert_eq!(
            sub.queue(None),
            "tg.request.agent:default:default.agent-manager--default--default--request"
        );
    }

    #[test]
    fn parsing_follows_the_reference() {
        assert_eq!(
            Topic::parse("plain").unwrap().exchange(None),
            "tg.flow.plain"
        );
        assert_eq!(Topic::parse("notify:tg:a:b:c").unwrap().name(), "a:b:c");
        for bad in ["request:tg", "state:tg:x", "request::x", "request:tg:", ""] {
            assert!(Topic::parse(bad).is_err(), "{bad}");
        }
    }
}
