//! `agent`: a dialog in chunks, and the one reply that sums the dialog up for callers who do not stream.

use serde_json::{Value, json};
use tg_schemas::msg::{AgentRequest, AgentResponse};
use tg_schemas::{Error, ErrorCode, limits};

use super::chat::{most_tokens, number};
use super::fields::{Body, Fields};
use super::part_body::{PartBody, chunk};
use super::{About, Translate, error_value};

/// The `agent` service.
pub struct Agent;

impl Translate for Agent {
    type Question = AgentRequest;
    type Answer = AgentResponse;

    /// Fields by which agents address each other (`correlation_id`, `thread` and their kin) are not for clients: a
    /// forged one could finish another caller's fan-out.
    fn question(body: &Fields<'_>, about: &About) -> Result<AgentRequest, Error> {
        let question = body.required_text("question")?;
        if question.len() > limits::AGENT_QUESTION {
            let most = limits::human(limits::AGENT_QUESTION);
            let text = format!("question: is larger than {most}");
            return Err(Error::new(ErrorCode::TooLarge, text));
        }
        Ok(AgentRequest {
            question,
            state: body.text("state")?,
            group: body.opt_texts("group")?,
            history: body.parsed("history")?.unwrap_or_default(),
            collection: body.collection()?,
            streaming: body.flag("streaming")?,
            session_id: body.text("session_id")?,
            conversation_id: body.text("conversation_id")?,
            pattern: body.text("pattern")?,
            task_type: body.text("task_type")?,
            framing: body.text("framing")?,
            model: body.text("model")?,
            max_tokens: most_tokens(body)?,
            temperature: number(body, "temperature")?,
            grace: about.grace,
            record: body.flag("record")?,
            // A client does not say for whom its usage counts: it could use up what another agent may spend.
            agent: match about.translated {
                true => body.text("agent")?,
                false => String::new(),
            },
            grant: [body.texts("grant")?, about.granted.clone()].concat(),
            ..AgentRequest::default()
        })
    }

    fn part(part: AgentResponse, _about: &About) -> Body {
        chunk(&part)
    }

    fn part_body(part: AgentResponse, _about: &About) -> PartBody {
        PartBody::Chunk(Box::new(part))
    }

    fn failure(error: &Error, mut part: AgentResponse) -> Body {
        part.content.clone_from(&error.message);
        part.message_type = "error".to_owned();
        (part.end_of_message, part.end_of_dialog) = (true, true);
        part.error = None;
        let mut body = chunk(&part);
        body.insert("error".to_owned(), error_value(error));
        body
    }
}

/// One kind of text, message by message.
#[derive(Debug, Default)]
struct Text {
    text: String,
    /// The last message has ended: more text starts a new line.
    ended: bool,
    /// A piece did not fit. What comes after it is left out as well, so that the text has no hole.
    full: bool,
}

impl Text {
    fn add(&mut self, content: &str, end: bool) {
        if !content.is_empty() && !self.full {
            let new_line = self.ended && !self.text.is_empty();
            let length = self.text.len() + usize::from(new_line) + content.len();
            self.full = length > limits::DIALOG_TEXT;
            if !self.full {
                if new_line {
                    self.text.push('\n');
                }
                self.text.push_str(content);
                self.ended = false;
            }
        }
        self.ended |= end;
    }

    /// What is said of a text that did not fit.
    fn too_long(&self, what: &str) -> Option<String> {
        let most = limits::human(limits::DIALOG_TEXT);
        self.full
            .then(|| format!("{what}: is longer than {most}; ask for it streamed"))
    }
}

/// The kind of message that announces parts of a run which are not kept any more.
pub(crate) const GAP: &str = "gap";

/// Announces that the parts of a run from a number up to the next one are not kept.
pub(crate) fn gap(first: u64, next: u64) -> Body {
    let told = json!({
        "message_type": GAP, "chunk_type": GAP, "content": "", "end_of_message": true,
        "end_of_dialog": false, GAP: {"first": first, "next": next},
    });
    told.as_object().cloned().unwrap_or_default()
}

/// The number of the part behind an announced gap. `None`: the part announces none.
pub(crate) fn behind_gap(part: &Body) -> Option<u64> {
    part.get(GAP)?.get("next")?.as_u64()
}

/// Sums a dialog up, chunk by chunk.
#[derive(Debug, Default)]
pub struct Summary {
    /// Parts of it are not kept.
    gaps: bool,
    thought: Text,
    observation: Text,
    answer: Text,
}

impl Summary {
    /// Takes a chunk as the client would see it.
    pub fn add(&mut self, chunk: &Body) {
        let text = |key: &str| chunk.get(key).and_then(Value::as_str).unwrap_or_default();
        let end = chunk.get("end_of_message") == Some(&Value::Bool(true));
        self.said(text("message_type"), text("content"), end);
    }

    /// Takes a chunk as the agent sent it, which says the same.
    pub fn add_part(&mut self, part: &AgentResponse) {
        self.said(&part.message_type, &part.content, part.end_of_message);
    }

    fn said(&mut self, kind: &str, content: &str, end: bool) {
        let of_kind = match kind {
            "thought" => &mut self.thought,
            "observation" => &mut self.observation,
            "answer" | "final-answer" => &mut self.answer,
            GAP => {
                self.gaps = true;
                return;
            }
            _ => return,
        };
        of_kind.add(content, end);
    }

    /// The last chunk with the whole texts, in the 2.11 keys and in those of the original description. A reply whose answer
    /// is too long fails; thoughts and observations that are end where there was no more room, with a warning.
    pub fn finish(self, mut last: Body) -> Body {
        let failed = last.contains_key("error");
        if !failed {
            match self.answer.too_long("answer") {
                Some(text) => fail(&mut last, &Error::new(ErrorCode::TooLarge, text)),
                None => _ = last.insert("content".into(), json!(self.answer.text)),
            }
        }
        let cut = [
            ("thought", &self.thought),
            ("observation", &self.observation),
        ];
        let gaps = self
            .gaps
            .then(|| "the run keeps only some of its parts: the texts have gaps".to_owned());
        let cut = cut.iter().filter_map(|(what, text)| text.too_long(what));
        for warning in cut.chain(gaps) {
            let told = last.entry("warnings").or_insert_with(|| json!([]));
            if let Value::Array(told) = told {
                told.push(json!(warning));
            }
        }
        last.insert("answer".into(), json!(self.answer.text));
        last.insert("thought".into(), json!(self.thought.text));
        last.insert("observation".into(), json!(self.observation.text));
        for (key, twin) in [
            ("message_type", "chunk-type"),
            ("end_of_message", "end-of-message"),
            ("end_of_dialog", "end-of-dialog"),
        ] {
            if let Some(value) = last.get(key).cloned() {
                last.insert(twin.into(), value);
            }
        }
        last
    }
}

/// Makes a last chunk one that failed.
fn fail(last: &mut Body, error: &Error) {
    last.insert("message_type".into(), json!("error"));
    last.insert("chunk_type".into(), json!("error"));
    last.insert("content".into(), json!(error.message));
    last.insert("error".into(), error_value(error));
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use tg_schemas::msg::{AnswerCost, ChatUsage};
    use tg_schemas::{Reply as _, Term, Triple};

    fn said(kind: &str, content: &str, end: bool, last: bool) -> AgentResponse {
        AgentResponse {
            message_type: kind.into(),
            content: content.into(),
            end_of_message: end,
            end_of_dialog: last,
            ..AgentResponse::default()
        }
    }

    #[test]
    fn the_question_is_required_and_internal_fields_are_dropped() {
        let error = question::<Agent>(json!({"streaming": true}), "").unwrap_err();
        assert_eq!(error.message, "question: is required");
        let request = question::<Agent>(
            json!({"question": "why?", "group": null, "state": null, "correlation_id": "x",
                   "parent_session_id": "y", "expected_siblings": 3, "thread": "z", "parent_thread": "z", "agent": "other",
                   "history": [{"thought": "t", "arguments": {"a": 1}}]}),
            "",
        )
        .unwrap();
        assert_eq!(request.collection, "default");
        assert_eq!(request.group, None);
        assert_eq!(request.history[0].arguments["a"], "1");
        assert!(request.correlation_id.is_empty() && request.parent_session_id.is_empty());
        assert!(request.thread.is_empty() && request.parent_thread.is_empty());
        assert_eq!((request.expected_siblings, &*request.agent), (0, ""));
        // The gateway's own endpoints name the agent that they were asked for.
        let about = About {
            translated: true,
            ..About::default()
        };
        let body = json!({"question": "why?", "agent": "ann"});
        let request = Agent::question(&Fields::new(body.as_object().unwrap()), &about).unwrap();
        assert_eq!(request.agent, "ann");
    }

    #[test]
    fn an_end_marker_has_no_content_and_both_spellings_of_its_kind() {
        assert_eq!(
            part::<Agent>(said("answer", "", true, true), ""),
            json!({"message_type": "answer", "chunk_type": "answer",
                   "end_of_message": true, "end_of_dialog": true})
        );
    }

    #[test]
    fn the_last_chunk_says_what_was_used_and_what_it_cost() {
        let last = AgentResponse {
            finish_reason: "stop".into(),
            usage: Some(ChatUsage {
                input: 5,
                output: 2,
                cache_read: 3,
                total: 7,
                ..ChatUsage::default()
            }),
            cost: Some(AnswerCost {
                usd: Some(0.0012),
                eur: None,
                source: "table".into(),
                sub_calls: 2,
            }),
            ..said("answer", "4", true, true)
        };
        let body = part::<Agent>(last, "");
        assert_eq!(
            body["usage"],
            json!({"input": 5, "output": 2, "cacheRead": 3, "cacheWrite": 0, "total": 7})
        );
        assert_eq!(
            body["cost"],
            json!({"usd": 0.0012, "source": "table", "sub_calls": 2})
        );
        assert_eq!(
            (&body["finish_reason"], &body["sub_calls"]),
            (&json!("stop"), &json!(2))
        );
    }

    #[test]
    fn explain_chunks_carry_compact_triples() {
        let chunk = AgentResponse {
            message_type: "explain".into(),
            explain_id: Some("urn:x".into()),
            explain_graph: Some(tg_schemas::vocabulary::RETRIEVAL_GRAPH.into()),
            explain_triples: vec![Triple::new(
                Term::iri("urn:a"),
                Term::iri("urn:p"),
                Term::literal("v"),
            )],
            ..AgentResponse::default()
        };
        let body = part::<Agent>(chunk, "");
        assert_eq!(body["explain_triples"][0]["o"], json!({"t": "l", "v": "v"}));
        assert_eq!(body["end_of_dialog"], false);
    }

    #[test]
    fn a_failure_keeps_type_and_message_and_ends_the_dialog() {
        let error = Error::typed("agent-error", "gave up");
        let body = Agent::failure(&error, AgentResponse::failure(error.clone()));
        assert_eq!(
            Value::Object(body),
            json!({"message_type": "error", "chunk_type": "error", "content": "gave up",
                   "end_of_message": true, "end_of_dialog": true,
                   "error": {"type": "agent-error", "message": "gave up"}})
        );
    }

    #[test]
    fn a_dialog_is_summed_up_in_whole_texts() {
        let chunks = [
            said("thought", "first ", false, false),
            said("thought", "thought", true, false),
            said("observation", "seen", true, false),
            said("thought", "second", true, false),
            said("answer", "forty", false, false),
            said("answer", "-two", false, false),
            said("answer", "", true, true),
        ];
        let (mut summary, mut by_parts) = (Summary::default(), Summary::default());
        let mut last = Body::new();
        for chunk in chunks {
            by_parts.add_part(&chunk);
            last = Agent::part(chunk, &About::default());
            summary.add(&last);
        }
        let same = Value::Object(by_parts.finish(last.clone()));
        let reply = Value::Object(summary.finish(last));
        assert_eq!(same, reply);
        assert_eq!(reply["answer"], "forty-two");
        assert_eq!(reply["content"], "forty-two");
        assert_eq!(reply["thought"], "first thought\nsecond");
        assert_eq!(reply["observation"], "seen");
        assert_eq!(reply["chunk-type"], "answer");
        assert_eq!(reply["end-of-dialog"], true);
        assert_eq!(reply["end_of_dialog"], true);
    }

    /// Sums up a dialog in which `kind` says so many bytes and a word after them.
    fn long(kind: &str, bytes: usize) -> Value {
        let piece = "x".repeat(1 << 20);
        let mut summary = Summary::default();
        let mut say = |kind: &str, content: &str, last: bool| {
            let chunk = Agent::part(said(kind, content, false, last), &About::default());
            summary.add(&chunk);
            chunk
        };
        for _ in 0..bytes / piece.len() {
            say(kind, &piece, false);
        }
        say(kind, "later", false);
        let last = say("answer", "forty-two", true);
        Value::Object(summary.finish(last))
    }

    #[test]
    fn a_text_that_is_too_long_has_no_hole_and_is_told_of() {
        for kind in ["thought", "observation"] {
            let reply = long(kind, 5 << 20);
            assert_eq!(reply[kind].as_str().unwrap().len(), limits::DIALOG_TEXT);
            assert!(!reply[kind].as_str().unwrap().contains("later"), "{kind}");
            let told = format!("{kind}: is longer than 4 MiB; ask for it streamed");
            assert_eq!(reply["warnings"], json!([told]));
            assert_eq!(
                (&reply["content"], &reply["error"]),
                (&json!("forty-two"), &Value::Null)
            );
        }
        let whole = long("thought", 3 << 20);
        assert!(whole["thought"].as_str().unwrap().ends_with("xlater"));
        assert_eq!(whole["warnings"], Value::Null);
    }

    #[test]
    fn an_answer_that_is_too_long_fails() {
        let reply = long("answer", 5 << 20);
        let told = "answer: is longer than 4 MiB; ask for it streamed";
        assert_eq!(
            reply["error"],
            json!({"type": "too-large", "message": told})
        );
        assert_eq!(reply["content"], told);
        assert_eq!(
            (&reply["message_type"], &reply["chunk-type"]),
            (&json!("error"), &json!("error"))
        );
        assert_eq!(reply["answer"].as_str().unwrap().len(), limits::DIALOG_TEXT);
    }
}
