//! What a client may propose to its user while they fill in an argument of a prompt, or of the address of a resource: ids of
//! documents. Questions and IRIs are not proposed.

use serde_json::{Value, json};

use super::message::{Request, RpcError};
use super::{prompts, resources};
use crate::engine::translate::Body;

/// What asks for it.
pub(crate) const COMPLETE: &str = "completion/complete";
/// The argument that is the id of a document.
const DOCUMENT: &str = "document_id";
/// Entries that are looked through.
const LOOKED: usize = 500;
/// Most values of an answer, by the protocol.
const MOST: usize = 100;

/// What an argument is completed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Ids of documents, by what was written so far.
    Documents(String),
    /// Nothing is known of it.
    Nothing,
}

/// What a request asks for.
///
/// # Errors
/// There is no such prompt, address or argument.
pub(crate) fn source(request: &Request) -> Result<Source, RpcError> {
    let none = Value::Null;
    let (of, argument) = (
        request.params.get("ref").unwrap_or(&none),
        request.params.get("argument").unwrap_or(&none),
    );
    let named = |value: &Value, key: &str| value[key].as_str().map(str::to_owned);
    let name = named(argument, "name");
    let name = name.ok_or_else(|| RpcError::params("argument.name: must be a string"))?;
    let written = named(argument, "value");
    let written = written.ok_or_else(|| RpcError::params("argument.value: must be a string"))?;
    let (known, document) = match of["type"].as_str() {
        Some("ref/prompt") => {
            let prompt = of["name"].as_str().unwrap_or_default();
            let known = prompts::argument(prompt);
            let unknown = || RpcError::params("ref.name: there is no such prompt");
            (known.ok_or_else(unknown)?, DOCUMENT)
        }
        Some("ref/resource") if of["uri"].as_str() == Some(&*resources::template()) => ("id", "id"),
        Some("ref/resource") => {
            return Err(RpcError::params("ref.uri: there is no such template"));
        }
        _ => {
            return Err(RpcError::params(
                "ref.type: must be ref/prompt or ref/resource",
            ));
        }
    };
    if name != known {
        return Err(RpcError::params("argument.name: there is no such argument"));
    }
    Ok(match known == document {
        true => Source::Documents(written),
        false => Source::Nothing,
    })
}

/// The request for what is looked through.
pub(crate) fn page() -> Body {
    let mut body = Body::new();
    body.insert("limit".to_owned(), LOOKED.into());
    body
}

/// The answer: of documents by the answer of the library, whose ids begin with what was written or whose titles have it.
pub(crate) fn values(written: &str, body: &Body) -> Value {
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let documents = body.get("document-metadatas").and_then(Value::as_array);
    let documents = documents.map_or(&[][..], Vec::as_slice).iter();
    let lower = written.to_lowercase();
    let mut ids = documents
        .filter(|one| {
            text(one, "id").starts_with(written)
                || text(one, "title").to_lowercase().contains(&lower)
        })
        .map(|one| text(one, "id"));
    let values: Vec<String> = ids.by_ref().take(MOST).collect();
    let more = ids.next().is_some() || body.get("next").is_some_and(Value::is_string);
    json!({"completion": {"values": values, "hasMore": more}})
}

#[cfg(test)]
mod tests {
    use super::super::message::Message;
    use super::*;

    fn of(params: Value) -> Result<Source, i64> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": COMPLETE, "params": params});
        let Ok(Message::Request(request)) = Message::read(body.as_object().cloned().unwrap())
        else {
            panic!("a request");
        };
        source(&request).map_err(|fault| fault.body()["error"]["code"].as_i64().unwrap())
    }

    #[test]
    fn ids_of_documents_are_completed_and_questions_are_not() {
        let prompt = |name: &str, argument: &str| {
            of(json!({"ref": {"type": "ref/prompt", "name": name},
                "argument": {"name": argument, "value": "ur"}}))
        };
        let documents = Ok(Source::Documents("ur".to_owned()));
        assert_eq!(prompt("summarise_document", "document_id"), documents);
        assert_eq!(prompt("explore_entity", "entity"), Ok(Source::Nothing));
        assert_eq!(prompt("explore_entity", "other"), Err(-32602));
        assert_eq!(prompt("nothing", "entity"), Err(-32602));
        let address = |uri: &str| {
            of(json!({"ref": {"type": "ref/resource", "uri": uri},
                "argument": {"name": "id", "value": "ur"}}))
        };
        assert_eq!(address("threadgraph://document/{id}"), documents);
        assert_eq!(address("file:///{id}"), Err(-32602));
        for wrong in [
            json!({}),
            json!({"ref": {"type": "ref/prompt", "name": "explore_entity"}}),
            json!({"ref": 3, "argument": {"name": "id", "value": ""}}),
        ] {
            assert_eq!(of(wrong), Err(-32602));
        }
    }

    #[test]
    fn values_begin_with_what_was_written_or_have_it_in_their_title() {
        let body = json!({"document-metadatas": [
            {"id": "urn:a", "title": "One"}, {"id": "b", "title": "The urn"}, {"id": "c"}]});
        let told = values("urn", body.as_object().unwrap());
        assert_eq!(
            told,
            json!({"completion": {"values": ["urn:a", "b"], "hasMore": false}})
        );
        let many: Vec<Value> = (0..MOST + 1)
            .map(|n| json!({"id": format!("d{n}")}))
            .collect();
        let many = json!({"document-metadatas": many});
        let told = values("d", many.as_object().unwrap());
        assert_eq!(told["completion"]["values"].as_array().unwrap().len(), MOST);
        assert_eq!(told["completion"]["hasMore"], true);
        let none = values("", &Body::new());
        assert_eq!(
            none,
            json!({"completion": {"values": [], "hasMore": false}})
        );
    }
}
