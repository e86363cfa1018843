//! Prompts that people choose in their client: each says to its model how to use the tools for one kind of work.

use serde_json::{Value, json};

use super::message::{Request, RpcError};
use crate::engine::translate::Body;

/// What lists them.
pub(crate) const LIST: &str = "prompts/list";
/// What gives the text of one, by its name.
pub(crate) const GET: &str = "prompts/get";

/// A prompt with one argument.
struct Prompt {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    argument: (&'static str, &'static str),
    /// What stands before the argument, and behind it.
    text: (&'static str, &'static str),
}

const PROMPTS: &[Prompt] = &[
    Prompt {
        name: "answer_with_sources",
        title: "Answer with sources",
        about: "Answers a question from the documents and the knowledge graph, and cites what it rests on.",
        argument: ("question", "The question"),
        text: (
            "Answer this question from the knowledge of the workspace: ",
            "\n\nUse document_rag for what the documents say and graph_rag for how things are related. Cite the sources by \
             their numbers. Say so if neither answers it.",
        ),
    },
    Prompt {
        name: "explore_entity",
        title: "Explore an entity",
        about: "Tells what the knowledge graph states of one thing, and what is connected to it.",
        argument: ("entity", "IRI of the thing"),
        text: (
            "Describe what the knowledge graph states of ",
            ".\n\nUse query_triples with it as the subject, then with it as the object. Group what you find, and name the \
             things that it is connected to.",
        ),
    },
    Prompt {
        name: "summarise_document",
        title: "Summarise a document",
        about: "Reads a document to its end and sums it up.",
        argument: (
            "document_id",
            "Id of the document, as list_documents shows it",
        ),
        text: (
            "Summarise the document ",
            ".\n\nRead it with get_document, and go on with offset until its end. Begin with one sentence on what it is \
             about, then list its main points.",
        ),
    },
];

/// All of them.
pub(crate) fn listed() -> Value {
    let prompts = PROMPTS.iter().map(|prompt| {
        let (name, about) = prompt.argument;
        json!({
            "name": prompt.name, "title": prompt.title, "description": prompt.about,
            "arguments": [{"name": name, "description": about, "required": true}],
        })
    });
    json!({"prompts": prompts.collect::<Vec<Value>>()})
}

/// The name of the argument of one; `None`: there is no such prompt.
pub(crate) fn argument(prompt: &str) -> Option<&'static str> {
    let mut prompts = PROMPTS.iter();
    let found = prompts.find(|known| known.name == prompt)?;
    Some(found.argument.0)
}

/// The text of one.
///
/// # Errors
/// There is no such prompt, or its argument is missing or of another kind.
pub(crate) fn text(request: &Request) -> Result<Value, RpcError> {
    let name = request.text("name")?;
    let prompt = PROMPTS.iter().find(|prompt| prompt.name == name);
    let prompt = prompt.ok_or_else(|| {
        let shown: String = name.chars().take(64).collect();
        RpcError::params(format!("name: there is no prompt {shown}"))
    })?;
    let none = Body::new();
    let arguments = match request.params.get("arguments") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(arguments)) => arguments,
        Some(_) => return Err(RpcError::params("arguments: must be an object")),
    };
    let (name, _) = prompt.argument;
    if let Some(other) = arguments.keys().find(|key| *key != name) {
        let shown: String = other.chars().take(64).collect();
        let why = format!("arguments: {shown} is not an argument of {}", prompt.name);
        return Err(RpcError::params(why));
    }
    let given = arguments.get(name).and_then(Value::as_str);
    let given = given.filter(|given| !given.trim().is_empty());
    let given = given.ok_or_else(|| RpcError::params(format!("{name}: is required")))?;
    let (before, behind) = prompt.text;
    let text = format!("{before}{given}{behind}");
    Ok(json!({
        "description": prompt.about,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
    }))
}

#[cfg(test)]
mod tests {
    use super::super::message::Message;
    use super::super::tools::find;
    use super::*;

    fn get(params: Value) -> Result<Value, Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": GET, "params": params});
        let Ok(Message::Request(request)) = Message::read(body.as_object().cloned().unwrap())
        else {
            panic!("a request");
        };
        text(&request).map_err(RpcError::body)
    }

    #[test]
    fn a_prompt_has_its_argument_in_its_text() {
        let told = get(json!({"name": "explore_entity", "arguments": {"entity": "urn:a"}}));
        let told = told.unwrap();
        let text = told["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(text.contains("states of urn:a."), "{text}");
        for wrong in [
            json!({"name": "nothing"}),
            json!({"name": "explore_entity"}),
            json!({"name": "explore_entity", "arguments": [1]}),
            json!({"name": "explore_entity", "arguments": {"entity": " "}}),
            json!({"name": "explore_entity", "arguments": {"entity": "a", "other": "b"}}),
        ] {
            let told = get(wrong).unwrap_err();
            assert_eq!(told["error"]["code"], -32602, "{told}");
        }
    }

    #[test]
    fn each_tool_that_a_prompt_names_is_there() {
        let told = listed();
        assert_eq!(told["prompts"].as_array().unwrap().len(), PROMPTS.len());
        for prompt in PROMPTS {
            let words = prompt
                .text
                .1
                .split(|c: char| !c.is_ascii_lowercase() && c != '_');
            for word in words.filter(|word| word.contains('_')) {
                assert!(find(word).is_some(), "{}: {word}", prompt.name);
            }
        }
    }
}
