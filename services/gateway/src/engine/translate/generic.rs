//! Kinds whose processors are not part of this release: their bodies are carried over by rule, so that a
//! foreign processor on the same broker can serve them.
//!
//! The rule: keys become snake case, terms change form. It checks nothing.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tg_schemas::rdf::Term;
use tg_schemas::{Error, ErrorCode, Message, Reply};

use super::fields::{Body, Fields};
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
        let flag = |key: &&str| self.body.get(*key).and_then(Value::as_bool);
        let ends = [
            "end_of_session",
            "end_of_dialog",
            "end_of_stream",
            "is_final",
        ];
        self.error.is_some() || ends.iter().find_map(flag).unwrap_or(true)
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

/// Any kind without a translator of its own.
pub struct Generic;

impl Translate for Generic {
    type Question = AnyRequest;
    type Answer = AnyResponse;

    fn question(body: &Fields<'_>, about: &About) -> Result<AnyRequest, Error> {
        let mut out = Body::new();
        if about.kind == "cloze" {
            out.insert("operation".to_owned(), "predict".into());
        }
        for (key, value) in body.whole() {
            if !value.is_null() && key != "workspace" && key != "user" {
                out.insert(key.replace('-', "_"), terms(value, &to_bus));
            }
        }
        Ok(AnyRequest(out))
    }

    fn part(part: AnyResponse, _about: &About) -> Body {
        part.body
            .into_iter()
            .filter(|(key, value)| !value.is_null() && (key != "models" || *value != json!([])))
            .map(|(key, value)| (key, terms(&value, &to_api)))
            .collect()
    }
}

/// By kind, the fields that only services of the system fill in: no translator takes them from a body either. With `parent_uri`
/// a trace would name whatever the caller likes as its origin.
const INTERNAL: [(&str, &[&str]); 8] = [
    ("graph-rag", &["parent_uri"]),
    ("document-rag", &["parent_uri"]),
    ("mcp-tool", &["caller_depth", "pictures"]),
    ("embeddings", &["operation", "packed"]),
    ("rows", &["export", "after"]),
    ("graph-embeddings", &["export", "after", "tell_model"]),
    ("document-embeddings", &["export", "after", "tell_model"]),
    ("row-embeddings", &["tell_model"]),
];

/// `thru/<kind>`: body and reply of a kind in the form of the bus, as they are, without the fields that only services of the system fill in.
///
/// # Errors
/// The body names an LLM service: with it a credential of the operator would go to whichever address the body says.
pub struct Raw;

impl Translate for Raw {
    type Question = AnyRequest;
    type Answer = AnyResponse;

    fn question(body: &Fields<'_>, about: &About) -> Result<AnyRequest, Error> {
        let mut body = body.whole().clone();
        for (_, internal) in INTERNAL.iter().filter(|(kind, _)| *kind == about.kind) {
            body.retain(|key, _| !internal.contains(&key.as_str()));
        }
        let settings = body.get("settings");
        // A list would be read as the fields in their order.
        let names = |settings: &Value| settings.is_array() || !settings["service"].is_null();
        if settings.is_some_and(names) {
            let text = "settings.service: only an agent of the workspace can name an LLM service";
            return Err(Error::new(ErrorCode::BadRequest, text));
        }
        Ok(AnyRequest(body))
    }

    fn part(part: AnyResponse, _about: &About) -> Body {
        part.body
    }
}

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

    fn ask(kind: &'static str, body: Value) -> Value {
        let body = body.as_object().cloned().unwrap();
        let about = About {
            kind,
            ..About::default()
        };
        json!(Generic::question(&Fields::new(&body), &about).unwrap())
    }

    #[test]
    fn keys_become_snake_case_and_nulls_are_left_out() {
        let request = ask(
            "cloze",
            json!({"max-items": 3, "workspace": "w", "graph": null}),
        );
        assert_eq!(request, json!({"operation": "predict", "max_items": 3}));
    }

    #[test]
    fn a_body_as_it_is_names_no_service_of_models() {
        let raw = |body: Value| {
            let body = body.as_object().cloned().unwrap();
            Raw::question(&Fields::new(&body), &About::default())
        };
        let service = json!({"provider": "openai", "url": "http://a", "credential": "env:KEY"});
        let named = json!({"service": service.clone()});
        for settings in [named, json!(["m", [], null, null, service])] {
            let stolen = raw(json!({"prompt": "x", "settings": settings}));
            assert!(stolen.unwrap_err().message.starts_with("settings.service:"));
        }
        for body in [
            json!({"prompt": "x"}),
            json!({"settings": {"model": "m", "service": null}}),
            json!({"settings": "x"}),
        ] {
            assert_eq!(json!(raw(body.clone()).unwrap()), body);
        }
    }

    #[test]
    fn a_body_as_it_is_fills_in_no_field_of_the_system() {
        for (kind, internal) in INTERNAL {
            let about = About {
                kind,
                ..About::default()
            };
            let mut body = Body::from_iter([("query".to_owned(), json!("q"))]);
            body.extend(internal.iter().map(|key| ((*key).to_owned(), json!("x"))));
            let asked = Raw::question(&Fields::new(&body), &about).unwrap();
            assert_eq!(json!(asked), json!({"query": "q"}), "{kind}");
        }
        let body = Body::from_iter([("operation".to_owned(), json!("list-tools"))]);
        let about = About {
            kind: "mcp-tool",
            ..About::default()
        };
        let asked = Raw::question(&Fields::new(&body), &about).unwrap();
        assert_eq!(json!(asked), json!({"operation": "list-tools"}));
    }

    #[test]
    fn terms_change_form_in_both_directions() {
        let response: AnyResponse = serde_json::from_value(json!({
            "error": null, "models": [],
            "entities": [{"entity": Term::iri("urn:a"), "score": 0.5}],
        }))
        .unwrap();
        assert!(response.is_last());
        let body = Generic::part(response, &About::default());
        assert_eq!(
            Value::Object(body),
            json!({"entities": [{"entity": {"t": "i", "i": "urn:a"}, "score": 0.5}]})
        );
        let request = ask("some-kind", json!({"seed": {"t": "i", "i": "urn:a"}}));
        assert_eq!(request["seed"], json!(Term::iri("urn:a")));
    }

    #[test]
    fn a_session_ends_by_its_own_flag() {
        let chunk = |session: bool| -> AnyResponse {
            serde_json::from_value(json!({"end_of_stream": true, "end_of_session": session}))
                .unwrap()
        };
        assert!(!chunk(false).is_last());
        assert!(chunk(true).is_last());
        let failed: AnyResponse =
            serde_json::from_value(json!({"error": {"type": "t", "message": "m"}})).unwrap();
        assert_eq!(failed.error().unwrap().message, "m");
        assert!(failed.is_last());
    }
}
