//! What the library reads in the record of a flow.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Interface that plain text enters by.
const TEXT: &str = "text-load";
/// Interface that other documents enter by.
const DOCUMENT: &str = "document-load";
/// Interface that triples enter by.
const TRIPLES: &str = "triples-store";

/// A flow as config keeps it, as far as it matters here.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct Flow {
    status: String,
    /// Number of its start; 0 in records that others wrote.
    pub(crate) epoch: u64,
    pub(crate) blueprint_name: String,
    interfaces: BTreeMap<String, Interface>,
    pub(crate) parameters: BTreeMap<String, serde_json::Value>,
    plan: Names,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Interface {
    /// As releases before 2.0 wrote it: the topic alone.
    Topic(String),
    Topics(BTreeMap<String, String>),
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Names {
    queues: Vec<Queue>,
}

/// A queue of records that the flow has from its start.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Queue {
    pub(crate) topic: String,
    /// The subscription's name.
    pub(crate) name: String,
}

impl Flow {
    /// Reads a record; `None` if it is none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Whether processors have their rows.
    pub(crate) fn runs(&self) -> bool {
        !matches!(self.status.as_str(), "starting" | "stopping")
    }

    /// Whether records of a start may still be handled: it is the same start, and not over.
    pub(crate) fn is_start(&self, epoch: u64) -> bool {
        self.epoch == epoch && self.status != "starting"
    }

    /// Topic of an interface of records.
    fn interface(&self, name: &str) -> Option<&str> {
        match self.interfaces.get(name)? {
            Interface::Topic(topic) => Some(topic),
            Interface::Topics(topics) => topics.get("flow").map(String::as_str),
        }
    }

    /// Whether a document of this kind enters as text.
    pub(crate) fn enters_as_text(kind: &str) -> bool {
        kind == "text/plain"
    }

    /// Topic that a document of this kind enters by.
    pub(crate) fn load(&self, kind: &str) -> Option<&str> {
        let name = if Self::enters_as_text(kind) {
            TEXT
        } else {
            DOCUMENT
        };
        self.interface(name)
    }

    /// Topic that triples enter by.
    pub(crate) fn triples(&self) -> Option<&str> {
        self.interface(TRIPLES)
    }

    /// Topics of all interfaces of records.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &str> {
        self.interfaces
            .keys()
            .filter_map(|name| self.interface(name))
    }

    /// Queues of records it has from its start.
    pub(crate) fn queues(&self) -> &[Queue] {
        &self.plan.queues
    }

    /// A parameter as a number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        match self.parameters.get(name)? {
            serde_json::Value::String(text) => text.trim().parse().ok(),
            other => other.as_u64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_config_keeps_it() {
        let flow = Flow::read(
            r#"{"description":"d","blueprint-name":"b","epoch":7,
                "interfaces":{"text-load":{"flow":"flow:tg:t:w:f"},"document-load":"flow:tg:d:w:f",
                              "agent":{"request":"request:tg:agent:w:f"}},
                "parameters":{"chunk-size":"500","chunk-overlap":20},
                "plan":{"rows":["a:f"],"queues":[{"topic":"flow:tg:t:w:f","name":"c--w--f--input"}]}}"#,
        )
        .unwrap();
        assert!(flow.runs() && flow.is_start(7) && !flow.is_start(6));
        assert_eq!(flow.load("text/plain"), Some("flow:tg:t:w:f"));
        assert_eq!(flow.load("application/pdf"), Some("flow:tg:d:w:f"));
        assert_eq!(flow.triples(), None);
        assert_eq!(flow.number("chunk-size"), Some(500));
        assert_eq!(flow.number("chunk-overlap"), Some(20));
        assert_eq!(flow.queues()[0].name, "c--w--f--input");
        assert_eq!(flow.entries().count(), 2);
        assert!(!Flow::read(r#"{"status":"stopping"}"#).unwrap().runs());
        assert!(Flow::read("[").is_none());
    }
}
