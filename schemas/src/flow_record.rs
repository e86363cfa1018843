//! The record of a flow, and the rows of its processors, as configuration keeps them. Whoever reads one reads it here.
//!
//! Readers of the reference find what they know; the rest are keys they ignore. What others wrote is read as far as it
//! goes: a field that is not as it should be counts as absent.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{Class, Error, ErrorCode, FlowId, Subscription, Topic, WorkspaceId};

/// Config type of flow records.
pub const KIND: &str = "flow";

/// Where a flow is in its life. A running one carries no status, as the reference writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Names are being declared.
    Starting,
    /// The plan is being carried out.
    Stopping,
    /// Processors have their rows.
    #[default]
    #[serde(other)]
    Running,
}

impl Status {
    fn is_running(&self) -> bool {
        *self == Self::Running
    }

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
        }
    }
}

/// What happens to records that wait when a flow stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Drain {
    /// Processors finish first, within a bound; what is left is parked.
    #[default]
    Wait,
    /// Everything that waits is parked at once.
    Park,
    /// Everything that waits is thrown away.
    Discard,
}

impl Drain {
    /// Reads the request's word.
    ///
    /// # Errors
    /// `bad-request` for another word.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Ok(match text {
            "" | "wait" => Self::Wait,
            "park" => Self::Park,
            "discard" => Self::Discard,
            _ => {
                let text = "drain: must be wait, park or discard";
                return Err(Error::new(ErrorCode::BadRequest, text));
            }
        })
    }

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Park => "park",
            Self::Discard => "discard",
        }
    }
}

/// Topics of an interface by direction: `flow`, or `request` and `response`.
pub type Interface = BTreeMap<String, String>;

/// A flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct FlowRecord {
    /// For people.
    #[serde(deserialize_with = "lenient")]
    pub description: String,
    /// Blueprint it was started from.
    #[serde(deserialize_with = "lenient")]
    pub blueprint_name: String,
    /// Interfaces by name.
    #[serde(deserialize_with = "interfaces")]
    pub interfaces: BTreeMap<String, Interface>,
    /// Resolved parameters.
    #[serde(deserialize_with = "texts")]
    pub parameters: BTreeMap<String, String>,
    /// Where it is in its life.
    #[serde(
        deserialize_with = "lenient",
        skip_serializing_if = "Status::is_running"
    )]
    pub status: Status,
    /// Number of this start; 0 in records that others wrote.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "is_zero")]
    pub epoch: u64,
    /// Parameters as they were given.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub given: Option<BTreeMap<String, String>>,
    /// The names it holds.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub plan: Option<Names>,
    /// How it is being stopped.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
}

impl FlowRecord {
    /// Reads a record; `None` if it is none.
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_slice(text.as_bytes()).ok()
    }

    /// As config keeps it.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// As clients see it: without the names inside.
    pub fn shown(&self) -> String {
        Self {
            plan: None,
            given: None,
            ..self.clone()
        }
        .text()
    }

    /// Whether starting the flow with these would start what it is, and call it the same.
    pub fn same_start(
        &self,
        blueprint: &str,
        description: &str,
        given: &BTreeMap<String, String>,
    ) -> bool {
        self.blueprint_name == blueprint
            && self.description == description
            && match &self.given {
                Some(first) => first == given,
                None => given
                    .iter()
                    .all(|(name, value)| self.parameters.get(name) == Some(value)),
            }
    }

    /// Whether processors have their rows.
    pub fn runs(&self) -> bool {
        self.status.is_running()
    }

    /// Whether records of a start may still be handled: it is the same start, and not over.
    pub fn is_start(&self, epoch: u64) -> bool {
        self.epoch == epoch && self.status != Status::Starting
    }

    /// Number of this start; none in records that others wrote.
    pub fn start(&self) -> Option<u64> {
        (self.epoch > 0).then_some(self.epoch)
    }

    /// Topic of an interface: `request` of a service, `flow` of an input.
    pub fn topic(&self, interface: &str, class: Class) -> Option<&str> {
        let topics = self.interfaces.get(interface)?;
        topics.get(class.as_str()).map(String::as_str)
    }

    /// Topics of all interfaces that take records.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        let topics = self.interfaces.values();
        topics.filter_map(|topics| topics.get(Class::Flow.as_str()).map(String::as_str))
    }

    /// Queues of records that it has from its start.
    pub fn queues(&self) -> impl Iterator<Item = &Subscription> {
        self.plan.iter().flat_map(|names| &names.queues)
    }

    /// A parameter as a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.parameters.get(name)?.trim().parse().ok()
    }
}

/// Key of a processor row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RowKey {
    /// Processor id.
    pub processor: String,
    /// Key of the row; the flow id, or the blueprint's name for shared rows.
    pub variant: String,
}

impl RowKey {
    /// Config type of the row.
    pub fn kind(&self) -> String {
        format!("processor:{}", self.processor)
    }
}

impl TryFrom<String> for RowKey {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (processor, variant) = text.split_once(':').ok_or("expected processor:variant")?;
        Ok(Self {
            processor: processor.to_owned(),
            variant: variant.to_owned(),
        })
    }
}

impl From<RowKey> for String {
    fn from(key: RowKey) -> String {
        format!("{}:{}", key.processor, key.variant)
    }
}

/// The names that a running flow holds: what stop-flow takes away, whatever has become of the blueprint meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Names {
    /// Processor rows of this flow.
    pub rows: BTreeSet<RowKey>,
    /// Processor rows that flows of the blueprint share.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub shared_rows: BTreeSet<RowKey>,
    /// Topics of this flow.
    pub topics: BTreeSet<Topic>,
    /// Topics that other flows may use too.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub shared_topics: BTreeSet<Topic>,
    /// Record queues that exist from the start.
    pub queues: BTreeSet<Subscription>,
    /// Queues that processors may have made: of questions, and of foreign readers.
    pub other_queues: BTreeSet<Subscription>,
}

impl Names {
    /// All topics.
    pub fn all_topics(&self) -> impl Iterator<Item = &Topic> {
        self.topics.iter().chain(&self.shared_topics)
    }

    /// All rows.
    pub fn all_rows(&self) -> impl Iterator<Item = &RowKey> {
        self.rows.iter().chain(&self.shared_rows)
    }

    /// All queues.
    pub fn all_queues(&self) -> impl Iterator<Item = &Subscription> {
        self.queues.iter().chain(&self.other_queues)
    }

    /// The names of a flow whose record does not say: read off its processor rows. Only topics that
    /// carry both ids are taken for its own.
    pub fn from_rows<'a>(
        workspace: &WorkspaceId,
        flow: &FlowId,
        rows: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let mut names = Self::default();
        let (ws, id) = (workspace.as_str(), flow.as_str());
        for (processor, text) in rows {
            names.rows.insert(RowKey {
                processor: processor.to_owned(),
                variant: id.to_owned(),
            });
            let row = ProcessorRow::read(text).unwrap_or_default();
            for (spec, text) in row.topics {
                let Ok(topic) = Topic::parse(&text) else {
                    continue;
                };
                let mut parts = topic.name().split(':').skip(1);
                if (parts.next(), parts.next()) != (Some(ws), Some(id)) {
                    continue;
                }
                let queue = Subscription::flow(topic.clone(), processor, ws, id, &spec);
                names.topics.insert(topic);
                names.other_queues.insert(queue);
            }
        }
        names
    }
}

/// Value of a `processor:<id>` row: what one processor has in one flow.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ProcessorRow {
    /// Topics by spec.
    pub topics: BTreeMap<String, String>,
    /// Parameters; texts in rows that the flow service wrote.
    pub parameters: BTreeMap<String, Value>,
    /// Number of the flow's start; 0 in rows that others wrote.
    pub epoch: u64,
    /// Record topics that nobody of the flow reads.
    pub unread: BTreeSet<String>,
}

impl ProcessorRow {
    /// Reads a row; `None` if it is none.
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_slice(text.as_bytes()).ok()
    }

    /// The parameters as texts.
    pub fn parameter_texts(&self) -> BTreeMap<String, String> {
        self.parameters.clone().into_iter().map(as_text).collect()
    }

    /// A parameter as a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.parameters.get(name)? {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_u64(),
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    value: D,
) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(value)?).unwrap_or_default())
}

/// Releases before 2.0 wrote the topic of an input alone.
fn interfaces<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<BTreeMap<String, Interface>, D::Error> {
    let read = |(name, value): (String, Value)| match value {
        Value::String(topic) => {
            let only = [(Class::Flow.as_str().to_owned(), topic)];
            Some((name, Interface::from(only)))
        }
        other => Some((name, serde_json::from_value(other).ok()?)),
    };
    let all: BTreeMap<String, Value> = lenient(value)?;
    Ok(all.into_iter().filter_map(read).collect())
}

/// Others write numbers as they are.
fn texts<'de, D: Deserializer<'de>>(value: D) -> Result<BTreeMap<String, String>, D::Error> {
    let all: BTreeMap<String, Value> = lenient(value)?;
    Ok(all.into_iter().map(as_text).collect())
}

fn as_text((name, value): (String, Value)) -> (String, String) {
    match value {
        Value::String(text) => (name, text),
        other => (name, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_record_is_the_references() {
        let record = FlowRecord {
            description: "d".into(),
            blueprint_name: "b".into(),
            ..Default::default()
        };
        assert_eq!(
            record.text(),
            r#"{"description":"d","blueprint-name":"b","interfaces":{},"parameters":{}}"#
        );
        let stopping = r#"{"blueprint-name":"b","status":"stopping","unknown":[1]}"#;
        assert_eq!(FlowRecord::read(stopping).unwrap().status, Status::Stopping);
        assert!(FlowRecord::read("[").is_none());
    }

    #[test]
    fn a_start_is_the_same_when_the_user_gave_the_same() {
        let given = BTreeMap::from([("m".to_owned(), "x".to_owned())]);
        let record = FlowRecord {
            description: "d".into(),
            blueprint_name: "b".into(),
            given: Some(given.clone()),
            ..Default::default()
        };
        assert!(record.same_start("b", "d", &given));
        assert!(!record.same_start("c", "d", &given));
        assert!(!record.same_start("b", "d", &BTreeMap::new()));
        assert!(!record.same_start("b", "of another", &given));
    }

    #[test]
    fn a_record_is_read_as_far_as_it_goes_whoever_wrote_it() {
        let flow = FlowRecord::read(
            r#"{"description":null,"blueprint-name":"b","epoch":7,"drain":"never","status":null,
                "interfaces":{"text-load":{"flow":"flow:tg:t:w:f"},"document-load":"flow:tg:d:w:f",
                              "agent":{"request":"request:tg:agent:w:f"},"odd":[1]},
                "parameters":{"chunk-size":" 500","chunk-overlap":20,"model":"m"},
                "plan":{"rows":["a:f"],"queues":[{"topic":"flow:tg:t:w:f","name":"c--w--f--input"}]}}"#,
        )
        .unwrap();
        assert!(flow.runs() && flow.is_start(7) && !flow.is_start(6));
        assert_eq!((flow.start(), flow.drain), (Some(7), None));
        let input = |name| flow.topic(name, Class::Flow);
        assert_eq!(input("text-load"), Some("flow:tg:t:w:f"));
        assert_eq!(input("document-load"), Some("flow:tg:d:w:f"));
        assert_eq!((input("triples-store"), input("agent")), (None, None));
        assert!(flow.topic("agent", Class::Request).is_some());
        assert_eq!(flow.inputs().count(), 2);
        let numbers = ["chunk-size", "chunk-overlap", "model"].map(|name| flow.number(name));
        assert_eq!(numbers, [Some(500), Some(20), None]);
        let queues: Vec<_> = flow.queues().map(|queue| queue.name.as_str()).collect();
        assert_eq!(queues, ["c--w--f--input"]);
        assert_eq!(FlowRecord::read(&flow.text()), Some(flow));
        let stopping = FlowRecord::read(r#"{"status":"stopping","plan":7}"#).unwrap();
        assert!(!stopping.runs() && stopping.start().is_none() && stopping.plan.is_none());
    }

    #[test]
    fn a_row_is_read_with_numbers_as_texts_or_as_they_are() {
        let row = ProcessorRow::read(r#"{"topics":{"input":"x"},"parameters":{"a":"5","b":6}}"#);
        let row = row.unwrap();
        assert_eq!((row.number("a"), row.number("b")), (Some(5), Some(6)));
        assert!(ProcessorRow::read("7").is_none());
    }
}
