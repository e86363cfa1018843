//! The record of a flow as config keeps it. Readers of the reference find what they know; the rest are
//! keys they ignore.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tg_schemas::{Error, ErrorCode};

use super::names::Names;

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

/// Topics of an interface by direction.
pub type Interface = BTreeMap<String, String>;

/// A flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct FlowRecord {
    /// For people.
    pub description: String,
    /// Blueprint it was started from.
    pub blueprint_name: String,
    /// Interfaces by name.
    pub interfaces: BTreeMap<String, Interface>,
    /// Resolved parameters.
    pub parameters: BTreeMap<String, String>,
    /// Where it is in its life.
    #[serde(skip_serializing_if = "Status::is_running")]
    pub status: Status,
    /// Number of this start; 0 in records that others wrote.
    #[serde(skip_serializing_if = "is_zero")]
    pub epoch: u64,
    /// Parameters as they were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<BTreeMap<String, String>>,
    /// The names it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Names>,
    /// How it is being stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl FlowRecord {
    /// Reads a record; `None` if it is none.
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
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

    /// Whether starting the flow with these would start what it is.
    pub fn same_start(&self, blueprint: &str, given: &BTreeMap<String, String>) -> bool {
        self.blueprint_name == blueprint
            && match &self.given {
                Some(first) => first == given,
                None => given
                    .iter()
                    .all(|(name, value)| self.parameters.get(name) == Some(value)),
            }
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
            blueprint_name: "b".into(),
            given: Some(given.clone()),
            ..Default::default()
        };
        assert!(record.same_start("b", &given));
        assert!(!record.same_start("c", &given));
        assert!(!record.same_start("b", &BTreeMap::new()));
    }
}
