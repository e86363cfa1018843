//! An agent's chunks as text for people. Pure: chunks in, text out; what is shown of them is
//! decided here, where it goes is not.

use serde_json::Value;
use tg_schemas::Triple;

use crate::commands::graph::triples_of;
use crate::fields::text;

/// Width of a line of thought.
const WIDTH: usize = 78;

/// What a chunk holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Chunk {
    /// A piece of a thought, an action, an observation or the answer.
    Text { shown: Shown, content: String },
    /// A provenance event.
    Explain { id: String, triples: Vec<Triple> },
    /// The run asks whether a tool may be used.
    Confirm {
        message: String,
        tool: String,
        arguments: Value,
    },
    /// Of a kind this client does not know.
    Other,
}

/// The kinds of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Thought,
    Action,
    Observation,
    Answer,
}

impl Shown {
    /// The sign before each line; the answer has none.
    fn prefix(self) -> &'static str {
        match self {
            Self::Thought => "\u{1f914}  ",
            Self::Action => "\u{1f527}  ",
            Self::Observation => "\u{1f4a1}  ",
            Self::Answer => "",
        }
    }
}

impl Chunk {
    /// Reads a reply of the agent.
    pub(super) fn read(reply: &Value) -> Self {
        let kind = match text(reply, "message_type") {
            kind if kind.is_empty() => text(reply, "chunk_type"),
            kind => kind,
        };
        let shown = match kind.as_str() {
            "thought" => Shown::Thought,
            "action" => Shown::Action,
            "observation" => Shown::Observation,
            "answer" | "final-answer" => Shown::Answer,
            "explain" => {
                return Self::Explain {
                    id: text(reply, "explain_id"),
                    triples: triples_of(reply, "explain_triples"),
                };
            }
            "confirm" => return Self::asks(reply),
            _ => return Self::of_others(reply),
        };
        Self::Text {
            shown,
            content: text(reply, "content"),
        }
    }

    /// Reads a reply of retrieval or a model, or an event of a session.
    fn of_others(reply: &Value) -> Self {
        let content = match reply.get("data") {
            Some(data) => text(data, "delta"),
            None => text(reply, "response"),
        };
        match content.is_empty() {
            true => Self::Other,
            false => Self::Text {
                shown: Shown::Answer,
                content,
            },
        }
    }

    fn asks(reply: &Value) -> Self {
        let content = text(reply, "content");
        let asked: Value = serde_json::from_slice(content.as_bytes()).unwrap_or_default();
        Self::Confirm {
            message: text(reply, "message_id"),
            tool: text(&asked, "tool"),
            arguments: asked.get("arguments").cloned().unwrap_or_default(),
        }
    }

    /// The kind of text, if it is text.
    pub(super) fn shown(&self) -> Option<Shown> {
        match self {
            Self::Text { shown, .. } => Some(*shown),
            _ => None,
        }
    }
}

/// Turns chunks into text, keeping in mind what was printed last.
#[derive(Debug)]
pub(super) struct Renderer {
    verbose: bool,
    streaming: bool,
    section: Option<(Shown, Wrapper)>,
}

impl Renderer {
    /// Nothing is printed yet.
    pub(super) fn new(verbose: bool, streaming: bool) -> Self {
        Self {
            verbose,
            streaming,
            section: None,
        }
    }

    /// What comes before the first chunk.
    pub(super) fn opening(&self, question: &str) -> String {
        if !self.verbose {
            return String::new();
        }
        let mut wrapper = Wrapper::new("\u{2753}  ");
        format!("{}{}\n", wrapper.write(question), wrapper.end())
    }

    /// The text of one chunk.
    pub(super) fn chunk(&mut self, chunk: &Chunk) -> String {
        let Chunk::Text { shown, content } = chunk else {
            return String::new();
        };
        if content.is_empty() || (!self.verbose && *shown != Shown::Answer) {
            return String::new();
        }
        let mut printed = String::new();
        if !self.streaming || self.section.as_ref().map(|section| section.0) != Some(*shown) {
            printed.push_str(&self.closing());
            if !printed.is_empty() {
                printed.push('\n');
            }
            self.section = Some((*shown, Wrapper::new(shown.prefix())));
        }
        if let Some((_, wrapper)) = &mut self.section {
            printed.push_str(&wrapper.write(content));
        }
        printed
    }

    /// What comes after the last chunk.
    pub(super) fn closing(&mut self) -> String {
        match &mut self.section.take() {
            Some((_, wrapper)) => wrapper.end(),
            None => String::new(),
        }
    }
}

/// Wraps text that comes in pieces, with a prefix before each line; without one it changes nothing.
#[derive(Debug)]
struct Wrapper {
    prefix: &'static str,
    column: usize,
    started: bool,
}

impl Wrapper {
    fn new(prefix: &'static str) -> Self {
        Self {
            prefix,
            column: 0,
            started: false,
        }
    }

    fn write(&mut self, text: &str) -> String {
        self.started |= !text.is_empty();
        if self.prefix.is_empty() {
            return text.to_owned();
        }
        let mut printed = String::new();
        for part in text.split_inclusive([' ', '\n']) {
            let word = part.trim_end_matches([' ', '\n']);
            if self.column > 0 && self.column + word.chars().count() > WIDTH {
                printed.push('\n');
                self.column = 0;
            }
            if self.column == 0 {
                printed.push_str(self.prefix);
                self.column = self.prefix.chars().count();
            }
            printed.push_str(part);
            self.column += part.chars().count();
            if part.ends_with('\n') {
                self.column = 0;
            }
        }
        printed
    }

    /// The end of the section's last line.
    fn end(&self) -> String {
        let open = match self.prefix.is_empty() {
            true => self.started,
            false => self.column > 0,
        };
        if open { "\n" } else { "" }.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn play(verbose: bool, streaming: bool, replies: &[Value]) -> String {
        let mut view = Renderer::new(verbose, streaming);
        let mut printed: String = replies
            .iter()
            .map(|reply| view.chunk(&Chunk::read(reply)))
            .collect();
        printed.push_str(&view.closing());
        printed
    }

    fn dialog() -> Vec<Value> {
        vec![
            json!({"message_type": "explain", "explain_id": "urn:x"}),
            json!({"message_type": "thought", "content": "I must "}),
            json!({"message_type": "thought", "content": "look.", "end_of_message": true}),
            json!({"message_type": "observation", "content": "Two lines\nof text"}),
            json!({"message_type": "answer", "content": "It is "}),
            json!({"message_type": "answer", "content": "4."}),
            json!({"message_type": "answer", "end_of_dialog": true}),
        ]
    }

    #[test]
    fn the_answer_alone_is_printed_as_it_comes() {
        assert_eq!(play(false, true, &dialog()), "It is 4.\n");
    }

    #[test]
    fn verbose_sections_are_prefixed_and_apart() {
        assert_eq!(
            play(true, true, &dialog()),
            "\u{1f914}  I must look.\n\n\u{1f4a1}  Two lines\n\u{1f4a1}  of text\n\nIt is 4.\n"
        );
    }

    #[test]
    fn long_thoughts_are_wrapped_across_pieces() {
        let word = "word ".repeat(20);
        let printed = play(
            true,
            true,
            &[
                json!({"message_type": "thought", "content": word}),
                json!({"message_type": "thought", "content": word}),
            ],
        );
        assert!(printed.lines().count() >= 3);
        assert!(
            printed
                .lines()
                .all(|line| line.chars().count() <= WIDTH + 1)
        );
        assert!(printed.lines().all(|line| line.starts_with('\u{1f914}')));
    }

    #[test]
    fn whole_messages_end_their_lines() {
        let replies = [
            json!({"chunk_type": "answer", "content": "One."}),
            json!({"chunk_type": "final-answer", "content": "Two.", "end_of_dialog": true}),
        ];
        assert_eq!(play(false, false, &replies), "One.\n\nTwo.\n");
    }

    #[test]
    fn texts_of_other_streams_are_answers() {
        for reply in [
            json!({"message_type": "chunk", "response": "One."}),
            json!({"event": "token", "data": {"delta": "One."}}),
        ] {
            let chunk = Chunk::read(&reply);
            assert_eq!(chunk.shown(), Some(Shown::Answer), "{reply}");
        }
        let end = json!({"event": "done", "data": {"content": "One."}});
        assert_eq!(Chunk::read(&end), Chunk::Other);
    }
}
