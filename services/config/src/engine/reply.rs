//! The answer as it is written: the contract's `ConfigResponse`, whose missing values are `null`.
//!
//! It shares its texts with the rows in memory, so that a read copies nothing before it is encoded.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tg_schemas::msg::ConfigResponse;
use tg_schemas::{Error, Message, Reply};

/// One value of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReplyValue {
    /// Type.
    pub(crate) r#type: Arc<str>,
    /// Key.
    pub(crate) key: Arc<str>,
    /// Value; `null` when there is none.
    pub(crate) value: Option<Arc<str>>,
    /// Workspace, in answers over all of them.
    pub(crate) workspace: Arc<str>,
}

/// The answer to every operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ConfigReply {
    /// The version that was read, or that a write made.
    pub(crate) version: i64,
    /// Values, in the order of the keys asked for.
    pub(crate) values: Vec<ReplyValue>,
    /// Keys of a type.
    pub(crate) directory: Vec<Arc<str>>,
    /// Everything of a workspace: type, key, value.
    pub(crate) config: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Arc<str>>>,
    /// Why there is no answer.
    pub(crate) error: Option<Error>,
    /// Where the next page begins; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) next: String,
}

impl Message for ConfigReply {
    const NAME: &'static str = ConfigResponse::NAME;
    const AVRO: &'static str = ConfigResponse::AVRO;
}

impl Reply for ConfigReply {
    fn is_last(&self) -> bool {
        true
    }

    fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    fn failure(error: Error) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::codec::{ContentType, decode, encode};

    use super::*;

    #[test]
    fn a_missing_value_is_null_on_the_wire_and_readable_as_the_contract_type() {
        let reply = ConfigReply {
            version: 7,
            values: vec![ReplyValue {
                r#type: "tool".into(),
                key: "gone".into(),
                value: None,
                workspace: "".into(),
            }],
            ..ConfigReply::default()
        };
        let body = encode(&reply, ContentType::Json).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert!(json["values"][0]["value"].is_null());
        for content in [ContentType::Json, ContentType::Avro] {
            let body = encode(&reply, content).unwrap();
            let back: ConfigResponse = decode(&body, content).unwrap();
            assert_eq!((back.version, back.values[0].key.as_str()), (7, "gone"));
        }
    }
}
