//! The arguments of a call as the request of the operation behind its tool. Models write them: what is not known is
//! refused by its name, so that they may write it again.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_schemas::Error;

use super::message::object;
use super::tools::{COLLECTION, FLOW, Form, OFFSET, Tool};
use crate::engine::translate::fields::{Body, Fields, fault};

/// Kinds of documents that come as texts.
const KINDS: [&str; 3] = ["text/plain", "text/markdown", "text/html"];

/// What n8n adds to the arguments of each call.
const ADDED: [&str; 5] = ["tool", "toolCallId", "action", "sessionId", "chatInput"];

/// The arguments of a call. Some clients pass on the text that their model wrote.
pub(crate) fn arguments(given: Option<Value>) -> Option<Body> {
    match given {
        Some(Value::String(text)) if text.trim().is_empty() => Some(Body::new()),
        Some(Value::String(text)) => object(serde_json::from_slice(text.as_bytes()).ok()?),
        given => object(given),
    }
}

/// What a call asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    /// The flow.
    pub(crate) flow: String,
    /// The request of the operation, without its name.
    pub(crate) body: Body,
    /// Where the text of a document begins.
    pub(crate) offset: usize,
}

impl Asked {
    /// Reads arguments; `defaults` are the flow and the collection where they name none.
    ///
    /// # Errors
    /// `bad-request`, by the name of the argument.
    pub(crate) fn read(
        tool: &Tool,
        arguments: &Body,
        defaults: (&str, &str),
    ) -> Result<Self, Error> {
        let known = |name: &str| {
            let own = tool.arguments.iter().any(|argument| argument.name == name);
            own || (name == FLOW && tool.flow) || (name == COLLECTION && tool.collection)
        };
        let added = |name: &str| ADDED.contains(&name);
        if let Some(name) = arguments.keys().find(|name| !known(name) && !added(name)) {
            let shown: String = name.chars().take(64).collect();
            let why = format!("is not an argument of {}", tool.name);
            return Err(fault(&shown, &why));
        }
        let fields = Fields::new(arguments);
        let mut body = Body::new();
        let mut offset = 0;
        for argument in tool.arguments {
            let value = match argument.form {
                Form::Required => {
                    let text = fields.required_text(argument.name)?;
                    if text.trim().is_empty() {
                        return Err(fields.fault(argument.name, "is required"));
                    }
                    Some(text.into())
                }
                // Cursor writes what is left out as an empty text.
                _ if is_blank(&fields, argument.name) => match argument.form {
                    Form::Number(_, _, usual) => Some(usual.into()),
                    _ => None,
                },
                Form::Text => fields.opt_text(argument.name)?.map(Into::into),
                Form::Number(least, most, usual) => {
                    let number = fields.integer_or(argument.name, usual)?;
                    if !(least..=most).contains(&number) {
                        let why = match most {
                            i64::MAX => format!("must be {least} or more"),
                            _ => format!("must be from {least} to {most}"),
                        };
                        return Err(fields.fault(argument.name, &why));
                    }
                    if argument.name == OFFSET {
                        offset = usize::try_from(number).unwrap_or(usize::MAX);
                    }
                    Some(number.into())
                }
            };
            if let (Some(key), Some(value)) = (argument.key, value) {
                body.insert(key.to_owned(), value);
            }
        }
        let (flow, collection) = (
            fields.name_or(FLOW, defaults.0)?,
            fields.name_or(COLLECTION, defaults.1)?,
        );
        if tool.name == "add_document" {
            body = document(&fields, (&flow, &collection))?;
        } else if tool.collection {
            body.insert("collection".to_owned(), collection.into());
        }
        Ok(Self { flow, body, offset })
    }
}

fn is_blank(fields: &Fields<'_>, name: &str) -> bool {
    let text = fields.value(name).and_then(Value::as_str);
    text.is_some_and(|text| text.trim().is_empty())
}

/// A text for the library, and for a flow from there.
fn document(fields: &Fields<'_>, (flow, collection): (&str, &str)) -> Result<Body, Error> {
    let kind = fields.name_or("kind", KINDS[0])?;
    if !KINDS.contains(&kind.as_str()) {
        let why = format!("must be one of {}", KINDS.join(", "));
        return Err(fields.fault("kind", &why));
    }
    let id = fields.text("document_id")?;
    let text = fields.required_text("text")?;
    let body = json!({
        "document-metadata": {"id": id, "kind": kind, "title": fields.required_text("title")?},
        "processing-metadata": {"document-id": id, "flow": flow, "collection": collection},
        "content": STANDARD.encode(text),
    });
    Ok(match body {
        Value::Object(body) => body,
        _ => Body::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tools::find;
    use super::*;

    fn read(tool: &str, arguments: Value) -> Result<Asked, String> {
        let arguments = arguments.as_object().cloned().unwrap();
        let tool = find(tool).unwrap();
        Asked::read(tool, &arguments, ("f", "c")).map_err(|error| error.message)
    }

    #[test]
    fn arguments_become_the_request_of_the_operation() {
        let asked = read("ask_agent", json!({"question": "q"})).unwrap();
        assert_eq!(asked.flow, "f");
        assert_eq!(
            Value::Object(asked.body),
            json!({"question": "q", "collection": "c"})
        );
        let given =
            json!({"subject": "urn:s", "object": "o", "collection": "mine", "flow": "other"});
        let asked = read("query_triples", given).unwrap();
        assert_eq!(asked.flow, "other");
        assert_eq!(
            Value::Object(asked.body),
            json!({"s": "urn:s", "o": "o", "limit": 100, "collection": "mine"})
        );
        let asked = read("get_document", json!({"document_id": "urn:d", "offset": 7})).unwrap();
        assert_eq!(asked.offset, 7);
        assert_eq!(Value::Object(asked.body), json!({"document-id": "urn:d"}));
        let asked = read("fetch", json!({"id": "urn:d", "offset": 7})).unwrap();
        assert_eq!(asked.offset, 7);
        let asked = read("add_document", json!({"text": "hi", "title": "T"})).unwrap();
        assert_eq!(
            Value::Object(asked.body),
            json!({"document-metadata": {"id": "", "kind": "text/plain", "title": "T"},
                   "processing-metadata": {"document-id": "", "flow": "f", "collection": "c"},
                   "content": "aGk="})
        );
        let asked = read("list_flows", json!({"limit": 5})).unwrap();
        assert_eq!(Value::Object(asked.body), json!({"limit": 5}));
    }

    #[test]
    fn arguments_are_read_as_clients_write_them() {
        let told = |given: Value| arguments(Some(given)).map(Value::Object);
        let one = json!({"question": "q"});
        assert_eq!(told(json!(r#"{"question": "q"}"#)), Some(one.clone()));
        assert_eq!(told(one.clone()), Some(one));
        for none in [json!([]), json!(null), json!(""), json!("{}")] {
            assert_eq!(told(none), Some(json!({})));
        }
        for wrong in [json!([1]), json!("q"), json!(3)] {
            assert_eq!(told(wrong), None);
        }
        // As Cursor writes what is left out, and with what n8n adds.
        let given = json!({"subject": "urn:s", "predicate": "", "graph": " ", "limit": "",
            "toolCallId": "c", "sessionId": "s", "tool": "t", "action": "a", "chatInput": "q"});
        let asked = read("query_triples", given).unwrap();
        assert_eq!(
            Value::Object(asked.body),
            json!({"s": "urn:s", "limit": 100, "collection": "c"})
        );
        let unknown = read("query_triples", json!({"subjects": "urn:s"})).unwrap_err();
        assert!(unknown.starts_with("subjects: "), "{unknown}");
    }

    #[test]
    fn what_is_wrong_is_told_by_the_name_of_the_argument() {
        let told = |tool, arguments| read(tool, arguments).unwrap_err();
        assert_eq!(told("ask_agent", json!({})), "question: is required");
        assert_eq!(
            told("graph_rag", json!({"query": " "})),
            "query: is required"
        );
        assert_eq!(
            told("graph_rag", json!({"query": 3})),
            "query: must be a string"
        );
        assert_eq!(
            told("query_triples", json!({"limit": 1001})),
            "limit: must be from 1 to 1000"
        );
        assert_eq!(
            told("get_document", json!({"document_id": "d", "offset": -1})),
            "offset: must be 0 or more"
        );
        assert_eq!(
            told("list_flows", json!({"flow": "f"})),
            "flow: is not an argument of list_flows"
        );
        assert_eq!(
            told(
                "add_document",
                json!({"text": "a", "title": "b", "kind": "application/pdf"})
            ),
            "kind: must be one of text/plain, text/markdown, text/html"
        );
    }
}
