//! `config`: key/type/value rows of a workspace.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tg_schemas::masks::may_hold_secrets;
use tg_schemas::msg::{ConfigKey, ConfigRequest, ConfigResponse, ConfigValue};
use tg_schemas::{Error, Message};

use super::fields::{Body, Fields, Reply};
use super::secrets::{masked_row, shown};
use super::{About, MASKED, Translate};

/// A row of an answer. The contract type cannot tell a missing value (`null`) from an empty one; callers
/// of `get` depend on the difference.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    r#type: Option<String>,
    key: Option<String>,
    value: Option<String>,
    workspace: Option<String>,
}

/// `ConfigResponse` with its `null`s.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigAnswer {
    version: Option<i64>,
    values: Option<Vec<Row>>,
    directory: Option<Vec<String>>,
    config: Option<BTreeMap<String, BTreeMap<String, String>>>,
    error: Option<Error>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Message for ConfigAnswer {
    const NAME: &'static str = ConfigResponse::NAME;
    const AVRO: &'static str = ConfigResponse::AVRO;
}

impl tg_schemas::Reply for ConfigAnswer {
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

/// The `config` service.
pub struct Config;

impl Translate for Config {
    type Question = ConfigRequest;
    type Answer = ConfigAnswer;

    fn question(body: &Fields<'_>, about: &About) -> Result<ConfigRequest, Error> {
        // What it says was noted with the call.
        body.flag(MASKED)?;
        let mut keys = Vec::new();
        // The npm client sends the one key that it deletes without a list around it.
        let asked = match body.object("keys") {
            Ok(Some(one)) => vec![one],
            _ => body.objects("keys")?,
        };
        for key in asked {
            keys.push(ConfigKey {
                r#type: key.required_text("type")?,
                key: key.required_text("key")?,
            });
        }
        let mut values = Vec::new();
        for value in body.objects("values")? {
            let value = ConfigValue {
                r#type: value.required_text("type")?,
                key: value.required_text("key")?,
                value: value.required_text("value")?,
                workspace: String::new(),
            };
            if may_hold_secrets(&value.r#type) {
                shown("values.value", &value.value)?;
            }
            values.push(value);
        }
        Ok(ConfigRequest {
            operation: about.operation.clone(),
            workspace: String::new(),
            keys,
            r#type: body.text("type")?,
            values,
            limit: body.integer_or("limit", 0)?,
            after: body.text("after")?,
        })
    }

    fn part(part: ConfigAnswer, about: &About) -> Body {
        let all = about.operation.ends_with("-all-ws");
        let mut rows = part.values.unwrap_or_default();
        let mut config = part.config.unwrap_or_default();
        if about.masked {
            let may_hold = |row: &Row| may_hold_secrets(row.r#type.as_deref().unwrap_or_default());
            for row in rows.iter_mut().filter(|row| may_hold(row)) {
                let key = row.key.as_deref().unwrap_or_default();
                row.value = row.value.take().map(|value| masked_row(key, value));
            }
            for (_, values) in config.iter_mut().filter(|(kind, _)| may_hold_secrets(kind)) {
                for (key, value) in values {
                    *value = masked_row(key, std::mem::take(value));
                }
            }
        }
        let values: Vec<Value> = rows.into_iter().map(|row| value_of(row, all)).collect();
        Reply::new()
            .put("version", part.version.unwrap_or_default())
            .put("values", values)
            .put("directory", part.directory.unwrap_or_default())
            .put("config", json!(config))
            .put_truthy("next", part.next.unwrap_or_default())
            .done()
    }
}

/// A row as clients see it. `get` of a missing key comes back with `null`.
fn value_of(row: Row, with_workspace: bool) -> Value {
    let mut out = json!({
        "type": row.r#type.unwrap_or_default(),
        "key": row.key.unwrap_or_default(),
        "value": row.value,
    });
    if with_workspace {
        out["workspace"] = Value::String(row.workspace.unwrap_or_default());
    }
    out
}

#[cfg(test)]
mod tests {
    use tg_schemas::masks::MASK;

    use super::super::testing::{part, question};
    use super::*;

    #[test]
    fn every_key_of_the_reply_is_always_there() {
        assert_eq!(
            part::<Config>(ConfigAnswer::default(), "put"),
            json!({"version": 0, "values": [], "directory": [], "config": {}})
        );
    }

    #[test]
    fn pages_are_asked_for_and_told() {
        let page = json!({"type": "t", "limit": "7", "after": "x"});
        let page = question::<Config>(page, "list").unwrap();
        assert_eq!((page.limit, page.after.as_str()), (7, "x"));
        let answer = ConfigAnswer {
            next: Some("y".to_owned()),
            ..ConfigAnswer::default()
        };
        assert_eq!(part::<Config>(answer, "list")["next"], "y");
        let wrong = question::<Config>(json!({"limit": [1]}), "config").unwrap_err();
        assert_eq!(wrong.message, "limit: must be a whole number");
        let wrong = question::<Config>(json!({"after": 1}), "config").unwrap_err();
        assert_eq!(wrong.message, "after: must be a string");
    }

    #[test]
    fn who_asks_not_to_be_shown_secrets_says_so_by_true_or_false() {
        question::<Config>(json!({"masked": true}), "config").unwrap();
        let wrong = question::<Config>(json!({"masked": "yes"}), "config").unwrap_err();
        assert_eq!(wrong.message, "masked: must be true or false");
    }

    #[test]
    fn secrets_are_masked_for_who_may_not_write_them() {
        let secret = json!({"url": "http://a/", "auth-token": "S3CRET"}).to_string();
        let answer = || {
            let row = |kind: &str, value: &str| Row {
                r#type: Some(kind.to_owned()),
                key: Some("k".to_owned()),
                value: Some(value.to_owned()),
                workspace: None,
            };
            let of = |kind: &str, value: &str| {
                let rows = BTreeMap::from([("k".to_owned(), value.to_owned())]);
                (kind.to_owned(), rows)
            };
            ConfigAnswer {
                values: Some(vec![
                    row("mcp", &secret),
                    row("prompt", &secret),
                    row("mcp", "S?"),
                ]),
                config: Some(BTreeMap::from([of("mcp", &secret), of("prompt", &secret)])),
                ..ConfigAnswer::default()
            }
        };
        let about = |masked| About {
            operation: "config".to_owned(),
            masked,
            ..About::default()
        };
        let seen = Value::Object(Config::part(answer(), &about(true)));
        let told = json!({"url": "http://a/", "auth-token": MASK}).to_string();
        assert_eq!(seen["values"][0]["value"], told);
        assert_eq!(seen["values"][1]["value"], secret);
        assert_eq!(seen["values"][2]["value"], MASK);
        assert_eq!(seen["config"]["mcp"]["k"], told);
        let seen = Value::Object(Config::part(answer(), &about(false)));
        assert_eq!(seen["values"][0]["value"], secret);
        assert_eq!(seen["config"]["mcp"]["k"], secret);
    }

    #[test]
    fn what_was_not_shown_is_not_written_back() {
        let put = |kind: &str| {
            let row = json!({"type": kind, "key": "k", "value": format!("{{\"auth-token\": \"{MASK}\"}}")});
            question::<Config>(json!({"values": [row]}), "put")
        };
        for kind in ["mcp", "of-somebody"] {
            let told = put(kind).unwrap_err().message;
            assert!(
                told.starts_with("values.value: must not hold ********"),
                "{told}"
            );
        }
        assert!(put("prompt").is_ok());
    }

    #[test]
    fn a_missing_key_comes_back_as_null() {
        let response: ConfigAnswer = serde_json::from_value(json!({
            "version": 3,
            "values": [{"type": "agent", "key": "gone", "value": null, "workspace": ""},
                       {"type": "agent", "key": "empty", "value": "", "workspace": ""}],
            "directory": null,
        }))
        .unwrap();
        assert_eq!(
            part::<Config>(response, "get")["values"],
            json!([{"type": "agent", "key": "gone", "value": null},
                   {"type": "agent", "key": "empty", "value": ""}])
        );
    }

    #[test]
    fn rows_are_read_and_their_faults_named() {
        let put = question::<Config>(
            json!({"values": [{"type": "prompt", "key": "system", "value": "hi"}], "keys": null}),
            "put",
        )
        .unwrap();
        assert_eq!(put.values[0].value, "hi");
        assert_eq!(put.operation, "put");
        let error = question::<Config>(
            json!({"values": [{"type": "prompt", "key": "system", "value": {"a": 1}}]}),
            "put",
        )
        .unwrap_err();
        assert_eq!(error.message, "values[0].value: must be a string");
        let error = question::<Config>(json!({"keys": [{"type": "x"}]}), "get").unwrap_err();
        assert_eq!(error.message, "keys[0].key: is required");
        let one = json!({"keys": {"type": "x", "key": "k"}});
        assert_eq!(question::<Config>(one, "delete").unwrap().keys[0].key, "k");
        let error = question::<Config>(json!({"keys": {"type": "x"}}), "delete").unwrap_err();
        assert_eq!(error.message, "keys.key: is required");
        let error = question::<Config>(json!({"keys": "x"}), "delete").unwrap_err();
        assert_eq!(error.message, "keys: must be a list");
    }
}
