//! What a program says that stays: JSON objects line by line. Pure.

use serde_json::Value;

use crate::engine::cost::Cost;
use crate::engine::decision::Usage;

/// Longest answer that is kept, in bytes.
const LONGEST: usize = 1 << 20;
/// Most dollars of one answer that are believed.
const DEAREST: f64 = 1e6;

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    /// Its text.
    pub(crate) text: String,
    /// What it took, as far as the program says.
    pub(crate) usage: Usage,
}

/// The answer to one message, while it comes.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// What came piece by piece.
    streamed: String,
    /// What came at once.
    whole: String,
}

fn push(to: &mut String, text: &str) {
    let mut room = LONGEST.saturating_sub(to.len()).min(text.len());
    while !text.is_char_boundary(room) {
        room -= 1;
    }
    to.push_str(&text[..room]);
}

impl Turn {
    /// Takes in a line. `None`: the answer goes on. What cannot be read is no part of it.
    ///
    /// # Errors
    /// The program failed, and this is what it says of that, for the log.
    pub(super) fn line(&mut self, line: &[u8]) -> Option<Result<Reply, String>> {
        let said: Value = serde_json::from_slice(line).ok()?;
        match said["type"].as_str()? {
            "stream_event" => self.piece(&said["event"]),
            "assistant" => {
                let errors = [&said["error"], &said["message"]["error"]];
                if let Some(error) = errors.into_iter().find(|error| !error.is_null()) {
                    return Some(Err(error.to_string()));
                }
                self.message(&said["message"]["content"]);
            }
            "result" => return Some(self.end(&said)),
            _ => {}
        }
        None
    }

    fn piece(&mut self, event: &Value) {
        let delta = &event["delta"];
        let is_text = event["type"] == "content_block_delta" && delta["type"] == "text_delta";
        if let Some(text) = delta["text"].as_str().filter(|_| is_text) {
            push(&mut self.streamed, text);
        }
    }

    fn message(&mut self, content: &Value) {
        if let Some(text) = content.as_str() {
            push(&mut self.whole, text);
        }
        for block in content.as_array().into_iter().flatten() {
            if let Some(text) = block["text"].as_str() {
                push(&mut self.whole, text);
            }
        }
    }

    fn end(&mut self, said: &Value) -> Result<Reply, String> {
        let told = said["result"].as_str().unwrap_or_default();
        if said["is_error"] == true {
            return Err(told.to_owned());
        }
        let mut text = String::new();
        push(&mut text, told);
        let streamed = std::mem::take(&mut self.streamed);
        let texts = [text, streamed, std::mem::take(&mut self.whole)];
        let text = texts.into_iter().find(|text| !text.trim().is_empty());
        Ok(Reply {
            text: text.unwrap_or_default().trim().to_owned(),
            usage: usage(said),
        })
    }
}

fn usage(said: &Value) -> Usage {
    let count = |name: &str| said["usage"][name].as_i64().unwrap_or(0).max(0);
    Usage {
        in_token: count("input_tokens"),
        out_token: count("output_tokens"),
        cache_read: count("cache_read_input_tokens"),
        cache_write: count("cache_creation_input_tokens"),
        cost: match said["total_cost_usd"].as_f64() {
            Some(dollars) if (0.0..=DEAREST).contains(&dollars) => Cost::told(nano(dollars)),
            _ => Cost::unknown(),
        },
        ..Usage::default()
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within bounds, and not negative"
)]
fn nano(dollars: f64) -> u64 {
    (dollars * 1e9).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &[&str]) -> Option<Result<Reply, String>> {
        let mut turn = Turn::default();
        lines.iter().find_map(|line| turn.line(line.as_bytes()))
    }

    const PIECE: &str = r#"{"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "It is "}}}"#;
    const WHOLE: &str =
        r#"{"type": "assistant", "message": {"content": [{"type": "text", "text": "whole"}]}}"#;

    #[test]
    fn an_answer_is_what_the_end_says_else_what_came() {
        let end = r#"{"type": "result", "is_error": false, "result": " 4 ", "total_cost_usd": 0.25,
            "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 1}}"#;
        let silent = r#"{"type": "result"}"#;
        let other = r#"{"type": "system", "subtype": "init"}"#;
        let reply = said(&[other, "no JSON", PIECE, end]).unwrap().unwrap();
        assert_eq!(reply.text, "4");
        let used = &reply.usage;
        let counts = [
            used.in_token,
            used.out_token,
            used.cache_read,
            used.cache_write,
        ];
        assert_eq!(counts, [5, 2, 3, 1]);
        assert_eq!(used.cost, Cost::told(250_000_000));
        let text = |lines: &[&str]| said(lines).unwrap().unwrap().text;
        assert_eq!(text(&[PIECE, PIECE, WHOLE, silent]), "It is It is");
        assert_eq!(text(&[WHOLE, silent]), "whole");
        assert_eq!(said(&[PIECE, WHOLE]), None, "it goes on");
    }

    #[test]
    fn a_failure_is_one() {
        let end = r#"{"type": "result", "is_error": true, "result": "no"}"#;
        assert_eq!(said(&[PIECE, end]), Some(Err("no".into())));
        let error = r#"{"type": "assistant", "error": "rate_limit"}"#;
        assert_eq!(said(&[error]), Some(Err("\"rate_limit\"".into())));
    }

    #[test]
    fn a_long_answer_is_cut_between_letters() {
        let mut text = String::new();
        for _ in 0..LONGEST {
            push(&mut text, "ä€");
        }
        assert!((LONGEST - 3..=LONGEST).contains(&text.len()));
    }
}
