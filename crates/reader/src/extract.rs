//! What a text says, as lines of JSON in the forms that the extraction prompts ask for. Quotes; adds nothing.

use serde_json::{Value, json};

use super::definition;
use super::grammar::{self, Statement};
use super::prose;

/// Most lines of one reply.
const MOST: usize = 200;

/// What is said when a text says nothing of the kind.
const NONE: &str = "[]";

/// Lines of JSON.
pub(super) fn lines(values: &[Value]) -> String {
    if values.is_empty() {
        return NONE.to_owned();
    }
    let lines: Vec<String> = values.iter().take(MOST).map(Value::to_string).collect();
    lines.join("\n")
}

/// Things and what the text says they are.
pub(super) fn definitions(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    walk(text, |sentence, before| {
        if let Some(one) = definition::definition(sentence, before)
            && !found.contains(&one)
        {
            found.push(one);
        }
    });
    found
}

/// Facts that the text states.
pub(super) fn statements(text: &str) -> Vec<Statement> {
    let mut found: Vec<Statement> = Vec::new();
    walk(text, |sentence, before| {
        for statement in grammar::statements(sentence, before).1 {
            if !found.contains(&statement) {
                found.push(statement);
            }
        }
    });
    found
}

/// Looks at each sentence, with what the one before it was about.
fn walk(text: &str, mut look: impl FnMut(&str, Option<&str>)) {
    let mut before: Option<String> = None;
    for sentence in prose::sentences(text) {
        look(&sentence, before.as_deref());
        before = grammar::statements(&sentence, before.as_deref()).0;
    }
}

/// Reply to the prompt for definitions; `key` names the thing.
pub(super) fn definition_lines(text: &str, key: &str) -> String {
    let found = definitions(text);
    let values: Vec<Value> = found
        .into_iter()
        .map(|(name, definition)| json!({key: name, "definition": definition}))
        .collect();
    lines(&values)
}

/// Reply to the prompt for relationships.
pub(super) fn relationship_lines(text: &str) -> String {
    let values: Vec<Value> = statements(text).iter().map(relationship).collect();
    lines(&values)
}

fn relationship(statement: &Statement) -> Value {
    json!({
        "subject": statement.subject,
        "predicate": statement.predicate,
        "object": statement.object,
        "object-entity": statement.entity,
    })
}

/// Both kinds, each line saying which it is.
pub(super) fn knowledge_lines(text: &str) -> String {
    let mut values: Vec<Value> = definitions(text)
        .into_iter()
        .map(|(name, text)| json!({"type": "definition", "entity": name, "definition": text}))
        .collect();
    for statement in statements(text) {
        let mut value = relationship(&statement);
        value["type"] = "relationship".into();
        values.push(value);
    }
    lines(&values)
}
