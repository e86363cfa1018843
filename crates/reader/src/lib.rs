//! The model that serves when no provider is configured: an extractive reader without weights.
//!
//! It follows the contracts of our prompts. In the agent's dialog it picks a tool by the question, reads what
//! the tool returned and answers by quoting the best matching facts or sentences; what the graph does not
//! answer it asks the documents, if there is a tool for that. From texts it extracts
//! definitions, simple relationships, rows and ontology facts by the patterns of plain sentences. Questions
//! about given facts or passages it answers by quoting them with their numbers, or says that they do not
//! answer. It is deterministic and never adds a fact of its own. It is a start, not a language model, and its
//! name says so. Does no I/O, and no prompt makes it panic.

mod answer;
mod arithmetic;
mod asking;
mod choice;
mod concepts;
mod contract;
mod definition;
mod extract;
mod grammar;
mod json;
mod languages;
mod lexicon;
mod observation;
mod ontology;
mod parts;
mod passages;
mod plan;
mod prose;
mod queries;
mod question;
mod quoting;
mod react;
mod reading;
mod rows;
mod synthesis;
mod tables;
mod tools;
mod wanted;
mod words;

use serde_json::{Map, Value};

pub use words::count;

/// What the reader calls itself, whatever model a flow names.
pub const NAME: &str = "builtin (extractive, not a language model)";

/// Longest prompt that it is meant to read, in bytes.
pub const READABLE: usize = 4 << 20;

/// The shape that a reply is wanted in.
#[derive(Debug, Clone, Copy)]
pub enum Shape<'a> {
    /// Any text, as the prompt says.
    Text,
    /// Some JSON.
    Json,
    /// JSON that follows a schema.
    Schema(&'a Map<String, Value>),
}

/// The reply to a prompt, as one text.
pub fn reply(prompt: &str, shape: Shape<'_>) -> String {
    match shape {
        Shape::Schema(schema) => return json::instance(schema, prompt),
        Shape::Json => return "{}".to_owned(),
        Shape::Text => {}
    }
    if let Some(reply) = contract::reply(prompt) {
        return reply;
    }
    if let Some(prompt) = react::Prompt::read(prompt) {
        return match contract::knowledge(&prompt.question) {
            Some(lines) => react::Step::answer("The text itself says it.", lines).render(),
            None => plan::next(&prompt).render(),
        };
    }
    let text = passages::answer(prompt);
    if react::wants_grammar(prompt) {
        // Somebody else's agent template: at least the form is right.
        return react::Step::answer("I quote what the text says.", text).render();
    }
    text
}

/// Cuts a text into pieces that end after whitespace, a few words each.
pub fn pieces(text: &str) -> Vec<String> {
    const LEAST: usize = 12;
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        piece.push(c);
        let boundary = c.is_whitespace() && chars.peek().is_some_and(|next| !next.is_whitespace());
        if boundary && piece.len() >= LEAST {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
