//! Kinds whose processors are not part of this release: their bodies are carried over by rule, so that a
//! foreign processor on the same broker can serve them.
//!
//! The rule: known defaults are filled in, keys become snake case, terms change form. It checks nothing
//! but that required keys are there.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tg_schemas::rdf::Term;
use tg_schemas::{Error, Message, Reply};

use super::fields::{Body, Fields, fault};
use super::{About, Translate};

/// A request body that is carried over by rule.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AnyRequest(pub Body);

/// A response body that is carried over by rule.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AnyResponse {
    body: Body,
    error: Option<Error>,
}

/// These messages only ever travel as JSON.
const NO_AVRO: &str = r#"{"type": "record", "name": "Generic", "fields": []}"#;

impl Message for AnyRequest {
    const NAME: &'static str = "AnyRequest";
    const AVRO: &'static str = NO_AVRO;
}

impl Message for AnyResponse {
    const NAME: &'static str = "AnyResponse";
    const AVRO: &'static str = NO_AVRO;
}

impl Serialize for AnyResponse {
    fn serialize<S: serde::Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        let mut body = self.body.clone();
        if let Some(error) = &self.error {
            body.insert("error".into(), super::error_value(error));
        }
        body.serialize(ser)
    }
}

impl<'de> Deserialize<'de> for AnyResponse {
    fn deserialize<D: serde::Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        let mut body = Body::deserialize(de)?;
        let error = match body.remove("error") {
            None | Some(Value::Null) => None,
            Some(value) => Some(serde_json::from_value(value).unwrap_or_default()),
        };
        Ok(Self { body, error })
    }
}

impl Reply for AnyResponse {
    /// The widest flag that is there decides; without any there is one message.
    fn is_last(&self) -> bool {
        let flag = |key: &str| self.body.get(key).and_then(Value::as_bool);
        self.error.is_some()
            || flag("end_of_session")
                .or_else(|| flag("end_of_stream"))
                .unwrap_or(true)
    }

    fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    fn failure(error: Error) -> Self {
        Self {
            body: Body::new(),
            error: Some(error),
        }
    }
}

/// What is special about a kind.
struct Rule {
    kind: &'static str,
    required: &'static [&'static str],
    /// Bus names with the JSON text of their defaults.
    defaults: &'static [(&'static str, &'static str)],
    /// Reply keys that hold JSON text on the bus and a value outside.
    json_text: &'static [&'static str],
    /// Reply keys that are kebab case outside.
    kebab: &'static [&'static str],
}

const PLAIN: Rule = Rule {
    kind: "",
    required: &[],
    defaults: &[],
    json_text: &[],
    kebab: &[],
};

const VECTOR_DEFAULTS: &[(&str, &str)] = &[
    ("limit", "10"),
    ("collection", "\"default\""),
    ("attributes", "{}"),
];

const RULES: &[Rule] = &[
    Rule {
        kind: "graph-rag",
        required: &["query"],
        defaults: &[
            ("collection", "\"default\""),
            ("entity_limit", "50"),
            ("triple_limit", "30"),
            ("max_subgraph_size", "1000"),
            ("max_path_length", "2"),
            ("edge_score_limit", "30"),
            ("edge_limit", "25"),
            ("max_reranker_input", "350"),
            ("streaming", "false"),
        ],
        ..PLAIN
    },
    Rule {
        kind: "document-rag",
        required: &["query"],
        defaults: &[
            ("collection", "\"default\""),
            ("doc_limit", "20"),
            ("fetch_limit", "0"),
            ("streaming", "false"),
        ],
        ..PLAIN
    },
    Rule {
        kind: "embeddings",
        required: &["texts"],
        ..PLAIN
    },
    Rule {
        kind: "graph-embeddings",
        required: &["vector"],
        defaults: &[
            ("limit", "10"),
            ("collection", "\"default\""),
            ("rdf_type", "\"\""),
            ("attributes", "{}"),
        ],
        ..PLAIN
    },
    Rule {
        kind: "document-embeddings",
        required: &["vector"],
        defaults: VECTOR_DEFAULTS,
        ..PLAIN
    },
    Rule {
        kind: "row-embeddings",
        required: &["vector"],
        defaults: &[
            ("limit", "10"),
            ("collection", "\"default\""),
            ("schema_name", "\"\""),
            ("attributes", "{}"),
        ],
        ..PLAIN
    },
    Rule {
        kind: "reranker",
        required: &["queries", "documents"],
        defaults: &[("limit", "10")],
        ..PLAIN
    },
    Rule {
        kind: "rows",
        required: &["query"],
        defaults: &[("collection", "\"default\""), ("variables", "{}")],
        json_text: &["data"],
        ..PLAIN
    },
    Rule {
        kind: "nlp-query",
        required: &["question"],
        defaults: &[("max_results", "100")],
        ..PLAIN
    },
    Rule {
        kind: "structured-query",
        required: &["question"],
        defaults: &[("collection", "\"default\"")],
        json_text: &["data"],
        ..PLAIN
    },
    Rule {
        kind: "structured-diag",
        required: &["operation", "sample"],
        json_text: &["descriptor"],
        kebab: &["detected_type", "schema_matches"],
        ..PLAIN
    },
    Rule {
        kind: "image-to-text",
        required: &["image"],
        ..PLAIN
    },
    Rule {
        kind: "cloze",
        defaults: &[("operation", "\"predict\"")],
        ..PLAIN
    },
];

fn rule(kind: &str) -> &'static Rule {
    RULES
        .iter()
        .find(|rule| rule.kind == kind)
        .unwrap_or(&PLAIN)
}

/// Any kind without a translator of its own.
pub struct Generic;

impl Translate for Generic {
    type Question = AnyRequest;
    type Answer = AnyResponse;

    fn question(body: &Fields<'_>, about: &About) -> Result<AnyRequest, Error> {
        let rule = rule(about.kind);
        for key in rule.required {
            if body.value(key).is_none() {
                return Err(fault(key, "is required"));
            }
        }
        let mut out = Body::new();
        for (key, default) in rule.defaults {
            let default = serde_json::from_str(default).unwrap_or(Value::Null);
            out.insert((*key).to_owned(), default);
        }
        for (key, value) in body.whole() {
            if !value.is_null() && key != "workspace" && key != "user" {
                out.insert(key.replace('-', "_"), terms(value, &to_bus));
            }
        }
        Ok(AnyRequest(out))
    }

    fn part(part: AnyResponse, about: &About) -> Body {
        let rule = rule(about.kind);
        let mut out = Body::new();
        for (key, value) in part.body {
            let empty = value.is_null() || value == json!([]) || value == json!("");
            if empty && OPTIONAL.contains(&key.as_str()) || value.is_null() {
                continue;
            }
            let value = match &value {
                Value::String(text) if rule.json_text.contains(&key.as_str()) => {
                    serde_json::from_str(text).unwrap_or(Value::Null)
                }
                other => terms(other, &to_api),
            };
            let name = if rule.kebab.contains(&key.as_str()) {
                key.replace('_', "-")
            } else {
                key
            };
            out.insert(name, value);
        }
        out
    }
}

/// Reply keys that are left out when empty.
const OPTIONAL: &[&str] = &[
    "explain_id",
    "explain_graph",
    "explain_triples",
    "message_type",
    "sources",
    "detected_type",
    "descriptor",
    "models",
];

/// Rewrites every term in a value, however deep.
fn terms(value: &Value, change: &dyn Fn(&Body) -> Option<Value>) -> Value {
    match value {
        Value::Object(map) => change(map).unwrap_or_else(|| {
            let inner = map
                .iter()
                .map(|(key, value)| (key.clone(), terms(value, change)));
            Value::Object(inner.collect())
        }),
        Value::Array(items) => items.iter().map(|item| terms(item, change)).collect(),
        other => other.clone(),
    }
}

/// An API term (`{"t": …}`) in the bus form.
fn to_bus(map: &Body) -> Option<Value> {
    let kind = map.get("t")?.as_str()?;
    let known = matches!(kind, "i" | "b" | "l" | "t");
    known
        .then(|| Term::from_api(&Value::Object(map.clone())))
        .flatten()
        .and_then(|term| serde_json::to_value(term).ok())
}

/// A bus term (all seven fields) or a bus triple in the API form.
fn to_api(map: &Body) -> Option<Value> {
    let is_term = ["type", "iri", "value", "datatype"]
        .iter()
        .all(|key| map.contains_key(*key));
    if is_term {
        let term: Term = serde_json::from_value(Value::Object(map.clone())).ok()?;
        return Some(term.to_api());
    }
    let is_triple = map.len() <= 4 && ["s", "p", "o"].iter().all(|key| map.contains_key(*key));
    if is_triple {
        let triple: tg_schemas::Triple = serde_json::from_value(Value::Object(map.clone())).ok()?;
        return Some(triple.to_api());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(kind: &'static str) -> About {
        About {
            kind,
            ..About::default()
        }
    }

    fn ask(kind: &'static str, body: Value) -> Result<Value, Error> {
        let body = body.as_object().cloned().unwrap();
        Generic::question(&Fields::new(&body), &about(kind)).map(|request| json!(request))
    }

    #[test]
    fn keys_become_snake_case_and_defaults_are_filled_in() {
        let request = ask(
            "graph-rag",
            json!({"query": "q", "edge-limit": 3, "workspace": "w", "graph": null}),
        )
        .unwrap();
        assert_eq!(request["edge_limit"], 3);
        assert_eq!(request["entity_limit"], 50);
        assert!(request.get("workspace").is_none() && request.get("graph").is_none());
        let error = ask("embeddings", json!({"texts": null})).unwrap_err();
        assert_eq!(error.message, "texts: is required");
    }

    #[test]
    fn terms_change_form_in_both_directions() {
        let response: AnyResponse = serde_json::from_value(json!({
            "error": null,
            "entities": [{"entity": Term::iri("urn:a"), "score": 0.5}],
        }))
        .unwrap();
        assert!(response.is_last());
        let body = Generic::part(response, &about("graph-embeddings"));
        assert_eq!(
            Value::Object(body),
            json!({"entities": [{"entity": {"t": "i", "i": "urn:a"}, "score": 0.5}]})
        );
        let request = ask("some-kind", json!({"seed": {"t": "i", "i": "urn:a"}})).unwrap();
        assert_eq!(request["seed"], json!(Term::iri("urn:a")));
    }

    #[test]
    fn a_session_ends_by_its_own_flag() {
        let chunk = |session: bool| -> AnyResponse {
            serde_json::from_value(json!({
                "response": "x", "end_of_stream": true, "end_of_session": session,
                "explain_triples": [], "explain_id": null
            }))
            .unwrap()
        };
        assert!(!chunk(false).is_last());
        assert!(chunk(true).is_last());
        assert_eq!(
            Value::Object(Generic::part(chunk(true), &about("graph-rag"))),
            json!({"response": "x", "end_of_stream": true, "end_of_session": true})
        );
        let failed: AnyResponse =
            serde_json::from_value(json!({"error": {"type": "t", "message": "m"}})).unwrap();
        assert_eq!(failed.error().unwrap().message, "m");
        assert!(failed.is_last());
    }

    #[test]
    fn json_text_is_decoded() {
        let response: AnyResponse =
            serde_json::from_value(json!({"data": "{\"a\": 1}", "errors": []})).unwrap();
        assert_eq!(
            Value::Object(Generic::part(response, &about("rows"))),
            json!({"data": {"a": 1}, "errors": []})
        );
    }
}
