//! Calls of functions as clients wrote them before there were tools: `functions`, `function_call`, and the role `function`.
//! Flow services know tools only.

use std::collections::VecDeque;

use serde_json::{Value, json};
use tg_schemas::Error;

use crate::engine::compat::asking::arguments;
use crate::engine::translate::Fields;
use crate::engine::translate::fields::fault;

/// Why a choice is refused.
const WRONG: &str = "must be none, auto or the name of a function";

/// Which function is to be called: a word, or the name of one.
///
/// # Errors
/// `bad-request`: it is neither.
pub(super) fn choice(fields: &Fields<'_>) -> Result<Option<String>, Error> {
    match fields.value("function_call") {
        None => Ok(None),
        Some(Value::String(word)) if ["auto", "none"].contains(&word.as_str()) => {
            Ok(Some(word.clone()))
        }
        Some(Value::Object(_)) => {
            let named = fields.object("function_call")?;
            named.map(|named| named.required_text("name")).transpose()
        }
        Some(_) => Err(fault("function_call", WRONG)),
    }
}

/// The calls of a chat that have no ids. A result without one is that of the last function called before it; of tools, results come in
/// the order of the calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    made: usize,
    last: Option<String>,
    /// Ids of calls of tools whose results have not come.
    open: VecDeque<String>,
}

impl Calls {
    /// Adds to the turn of a message the function that it calls, or the id of the call that it answers.
    ///
    /// # Errors
    /// `bad-request`: the call cannot be read.
    pub(super) fn join(&mut self, message: &Fields<'_>, turn: &mut Value) -> Result<(), Error> {
        if turn["role"] == "tool" {
            let names_none = turn.get("tool_call_id").is_none_or(|id| id == "");
            if names_none && let Some(id) = self.open.pop_front().or_else(|| self.last.clone()) {
                turn["tool_call_id"] = id.into();
            }
            return Ok(());
        }
        // Results come right behind their calls.
        self.open.clear();
        self.name(turn);
        let Some(call) = message.object("function_call")? else {
            return Ok(());
        };
        let calls = turn.get_mut("tool_calls").and_then(Value::as_array_mut);
        // Some clients write a call in both ways.
        let Some(calls) = calls.filter(|calls| calls.is_empty()) else {
            return Ok(());
        };
        let id = self.fresh();
        calls.push(json!({
            "id": id,
            "name": call.required_text("name")?,
            "arguments": arguments(&call, "arguments")?,
        }));
        self.last = Some(id);
        Ok(())
    }

    /// Gives ids to the calls of tools that have none: some servers give none, and their clients send the calls back so.
    fn name(&mut self, turn: &mut Value) {
        let calls = turn.get_mut("tool_calls").and_then(Value::as_array_mut);
        let nameless = calls.into_iter().flatten().filter(|call| call["id"] == "");
        for call in nameless {
            let id = self.fresh();
            call["id"] = id.as_str().into();
            self.open.push_back(id);
        }
    }

    /// A new id. Servers of Mistral read no ids but such of nine letters and digits.
    fn fresh(&mut self) -> String {
        self.made += 1;
        format!("fn{:07}", self.made)
    }
}

/// The call of an answer. A client that knows functions only knows one call of an answer.
pub(super) fn called(calls: &[Value]) -> Option<Value> {
    let call = calls.first()?;
    Some(json!({"name": call["name"], "arguments": call["arguments"]}))
}

/// Why an answer ended, as such a client knows it.
pub(super) fn reason(reason: &str) -> &str {
    match reason {
        "tool_calls" => "function_call",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_chosen_by_a_word_or_its_name() {
        let of = |asked: Value| {
            let body = json!({"function_call": asked});
            let chosen = choice(&Fields::new(body.as_object().unwrap()));
            chosen.map_err(|error| error.message)
        };
        assert_eq!(of(Value::Null), Ok(None));
        assert_eq!(of(json!("auto")), Ok(Some("auto".to_owned())));
        assert_eq!(of(json!({"name": "add"})), Ok(Some("add".to_owned())));
        assert_eq!(
            of(json!({})),
            Err("function_call.name: is required".to_owned())
        );
        assert_eq!(of(json!("any")), Err(format!("function_call: {WRONG}")));
    }

    #[test]
    fn an_answer_has_one_call() {
        let call = |name: &str| json!({"id": "c", "name": name, "arguments": "{}"});
        assert_eq!(called(&[]), None);
        assert_eq!(
            called(&[call("add"), call("see")]),
            Some(json!({"name": "add", "arguments": "{}"}))
        );
        assert_eq!(
            (reason("tool_calls"), reason("length")),
            ("function_call", "length")
        );
    }
}
