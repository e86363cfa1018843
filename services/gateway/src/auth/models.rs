//! Which models a key may ask for: those that its scopes name as `model:NAME`, where they name any.

use std::sync::Arc;

use serde_json::Value;
use tg_schemas::{Error, ErrorCode, limits};

use super::Identity;
use crate::engine::translate::Body;
use crate::error::RequestError;

/// Kinds of flow services that ask no model. Every other one asks one that nobody names, or may: an agent, a load that sets
/// a flow to work, an interface of any name.
const ASK_NONE: &[&str] = &[
    "mcp-tool",
    "triples",
    "sparql",
    "graph-embeddings",
    "document-embeddings",
    "row-embeddings",
    "keyword-index",
    "rows",
];
/// Models that are asked about at once.
const MOST: usize = limits::CHAT_MODELS;
/// What such a scope begins with.
const SCOPE: &str = "model:";
/// The one kind of flow service that names its model.
const CHAT: &str = "chat-completion";

/// The models that a key is held to; `None`: to none.
fn held_to(scopes: &Option<Arc<[String]>>) -> Option<Vec<&str>> {
    let scopes = scopes.as_deref().unwrap_or_default();
    let models: Vec<&str> = scopes
        .iter()
        .filter_map(|one| one.strip_prefix(SCOPE))
        .collect();
    (!models.is_empty()).then_some(models)
}

/// Whether a caller may ask for a model.
pub(crate) fn may(identity: &Identity, model: &str) -> bool {
    held_to(&identity.scopes).is_none_or(|models| models.contains(&model))
}

/// The models that a caller asks about who names none: those that the key is held to; none: all.
pub(crate) fn asked_about(identity: &Identity) -> Vec<Value> {
    let held = held_to(&identity.scopes).unwrap_or_default();
    held.into_iter().take(MOST).map(Value::from).collect()
}

/// Whether a caller may ask a kind of flow service so. Who is held to models names them in a chat; of other questions to
/// a model nobody can say which it will be.
///
/// # Errors
/// It may not.
pub(crate) fn check(identity: &Identity, kind: &str, body: &Body) -> Result<(), RequestError> {
    if held_to(&identity.scopes).is_none() || ASK_NONE.contains(&kind) {
        return Ok(());
    }
    if kind != CHAT {
        return Err(RequestError::AccessDenied);
    }
    let operation = body.get("operation").and_then(Value::as_str);
    if operation == Some("list-models") {
        return Ok(());
    }
    let first = body.get("model").into_iter();
    let further = body.get("models").and_then(Value::as_array);
    let mut all = first.chain(further.into_iter().flatten()).peekable();
    let is_named = all.peek().is_some();
    match is_named && all.all(|model| may(identity, model.as_str().unwrap_or_default())) {
        true => Ok(()),
        false => Err(refused()),
    }
}

/// Whether a caller may ask an agent: nobody can say in advance which models it will ask.
///
/// # Errors
/// The key is held to models.
pub(crate) fn check_agent(identity: &Identity) -> Result<(), RequestError> {
    match held_to(&identity.scopes) {
        None => Ok(()),
        Some(_) => Err(RequestError::ModelNotAllowed),
    }
}

/// Whether a caller may ask for a model that they name.
///
/// # Errors
/// They may not.
pub(crate) fn check_named(identity: &Identity, model: &str) -> Result<(), RequestError> {
    match may(identity, model) {
        true => Ok(()),
        false => Err(refused()),
    }
}

fn refused() -> RequestError {
    RequestError::Service(Error::new(
        ErrorCode::Forbidden,
        "model: must be one that this key may ask for",
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry;

    /// 44: a key that is held to a model.
    #[test]
    fn a_key_asks_for_the_models_that_its_scopes_name() {
        let mut identity = Identity::plain("u", "w");
        let body = |value: Value| value.as_object().cloned().unwrap();
        let ask = |identity: &Identity, kind, value| check(identity, kind, &body(value)).is_ok();
        assert!(may(&identity, "any") && ask(&identity, "prompt", json!({})));
        identity.scopes = Some(vec!["llm".to_owned()].into());
        assert!(may(&identity, "any") && ask(&identity, "prompt", json!({})));
        assert!(check_agent(&identity).is_ok());
        identity.scopes = Some(vec!["llm".to_owned(), "model:a/b".to_owned()].into());
        assert!(may(&identity, "a/b") && !may(&identity, "a"));
        for (kind, value, allowed) in [
            ("prompt", json!({}), false),
            ("text-completion", json!({}), false),
            (CHAT, json!({}), false),
            (CHAT, json!({"model": "a/b"}), true),
            (CHAT, json!({"model": "a/b", "models": ["c"]}), false),
            (CHAT, json!({"model": null}), false),
            (CHAT, json!({"operation": "list-models"}), true),
            (CHAT, json!({"operation": "health"}), false),
            (
                CHAT,
                json!({"operation": "health", "models": ["a/b"]}),
                true,
            ),
            (CHAT, json!({"operation": "route", "model": "c"}), false),
            ("thru", json!({}), false),
        ] {
            assert_eq!(
                ask(&identity, kind, value.clone()),
                allowed,
                "{kind} {value}"
            );
        }
        assert_eq!(check_agent(&identity), Err(RequestError::ModelNotAllowed));
        assert!(check_named(&identity, "a/b").is_ok() && check_named(&identity, "c").is_err());
        assert_eq!(asked_about(&identity), [json!("a/b")]);
        assert_eq!(asked_about(&Identity::plain("u", "w")), Vec::<Value>::new());
    }

    /// A new kind has to be put on one of the sides.
    #[test]
    fn a_held_key_reaches_no_model_by_any_other_kind() {
        let ask_some = [
            "agent",
            "text-completion",
            "chat-completion",
            "prompt",
            "text-load",
            "document-load",
            "graph-rag",
            "document-rag",
            "embeddings",
            "nlp-query",
            "structured-query",
            "structured-diag",
            "reranker",
            "image-to-text",
            "cloze",
            "decision-scoring",
            "field-extraction",
        ];
        let mut identity = Identity::plain("u", "w");
        identity.scopes = Some(vec!["model:m".to_owned()].into());
        for kind in registry::all_kinds().map(|kind| kind.name) {
            let asks = ask_some.contains(&kind);
            assert_ne!(
                asks,
                ASK_NONE.contains(&kind),
                "{kind} is on no side or both"
            );
            let told = check(&identity, kind, &Body::new());
            assert_eq!(told.is_err(), asks, "{kind}");
        }
        let all: Vec<_> = registry::all_kinds().map(|kind| kind.name).collect();
        assert!(
            ASK_NONE
                .iter()
                .chain(&ask_some)
                .all(|one| all.contains(one))
        );
    }
}
