//! Calls of tools in an answer, put together from the pieces in which servers of the dialects of OpenAI and Ollama send them. Nothing
//! of an answer but its calls is read here.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use tg_schemas::msg::ChatToolCall;

/// Most tools that an answer calls; further ones are dropped.
pub(super) const MOST_CALLS: usize = 128;

/// A piece of a call, in the dialect of OpenAI; Ollama's have arguments that are objects.
#[derive(Deserialize)]
pub(super) struct CallDelta {
    #[serde(default, deserialize_with = "number")]
    index: Option<usize>,
    #[serde(default, deserialize_with = "label")]
    id: Option<String>,
    function: Option<FunctionDelta>,
}

/// Which call a piece is of. Some servers write the number as a text.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Number(number) => number.as_u64().and_then(|one| usize::try_from(one).ok()),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

/// The id of a call. Some servers write a number.
fn label<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

impl CallDelta {
    /// Pieces of a message in the dialect of OpenAI; what is none is passed over. Older servers call one function at most.
    pub(super) fn of(message: &Value) -> Vec<Self> {
        let pieces = message.get("tool_calls").and_then(Value::as_array);
        let pieces = pieces.into_iter().flatten();
        let mut pieces: Vec<Self> = pieces
            .filter_map(|piece| Self::deserialize(piece).ok())
            .collect();
        let one = message
            .get("function_call")
            .and_then(|one| FunctionDelta::deserialize(one).ok());
        if let (Some(function), true) = (one, pieces.is_empty()) {
            pieces.push(Self {
                index: None,
                id: None,
                function: Some(function),
            });
        }
        pieces
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Value,
}

/// Calls of an answer, put together from their pieces.
#[derive(Default)]
pub(super) struct Calls {
    all: Vec<(usize, ChatToolCall)>,
    /// Numbers under which a call was dropped as there were enough: what comes under them later belongs to none that is kept.
    dropped: Vec<usize>,
}

impl Calls {
    /// Adds pieces. One without a number is of its place; a single one that names no tool says more of the last call.
    pub(super) fn add(&mut self, pieces: Option<Vec<CallDelta>>) {
        let pieces = pieces.unwrap_or_default();
        let is_single = pieces.len() == 1;
        for (place, piece) in pieces.into_iter().enumerate() {
            let function = piece.function.unwrap_or_default();
            let name = function.name.unwrap_or_default();
            let arguments = match function.arguments {
                Value::Null => String::new(),
                Value::String(text) => text,
                object => object.to_string(),
            };
            let newest = self.all.last().map(|(index, _)| *index);
            let newest = newest.filter(|_| is_single && name.is_empty());
            let index = piece.index.or(newest).unwrap_or(place);
            let id = piece.id.as_deref();
            if self.is_told(index, id, &name, &arguments) {
                continue;
            }
            if self.is_over(index, id, &name, &arguments) {
                self.begin_another(index);
            }
            self.begin(index, id, &name);
            self.more(index, &arguments);
        }
    }

    /// Whether a piece is the call of a number once more: some servers end with the whole of it. Made twice it may do harm.
    fn is_told(&self, index: usize, id: Option<&str>, name: &str, arguments: &str) -> bool {
        let call = self.last(index).map(|at| &self.all[at].1);
        call.is_some_and(|call| {
            let is_other = id.is_some_and(|id| !id.is_empty() && id != call.id);
            let is_same = call.name == name && call.arguments == arguments;
            is_same && !is_other && !name.is_empty() && is_whole(arguments)
        })
    }

    /// Whether the call of a number is whole, and a piece begins another one under the same number. Gemini numbers all calls 0 and
    /// gives them no ids. A server that repeats the name with each piece never begins the arguments anew, but for an empty object.
    fn is_over(&self, index: usize, id: Option<&str>, name: &str, arguments: &str) -> bool {
        if name.is_empty() || !begins(arguments) {
            return false;
        }
        let call = self.last(index).map(|at| &self.all[at].1);
        call.is_some_and(|call| {
            let is_same = id.is_some_and(|id| !id.is_empty() && id == call.id);
            is_whole(&call.arguments) && !(is_same && call.arguments == "{}")
        })
    }

    /// Adds calls each of which is whole.
    pub(super) fn add_whole(&mut self, pieces: Option<Vec<CallDelta>>) {
        let mut next = self.all.len();
        let numbered = pieces.into_iter().flatten().map(|piece| {
            let index = Some(next);
            next += 1;
            CallDelta { index, ..piece }
        });
        let numbered = numbered.collect();
        self.add(Some(numbered));
    }

    /// A call begins, or says more of itself. Some servers number all calls alike, others repeat the name with each piece.
    pub(super) fn begin(&mut self, index: usize, id: Option<&str>, name: &str) {
        let id = id.filter(|id| !id.is_empty());
        let is_other = |call: &ChatToolCall| {
            !name.is_empty() && !call.id.is_empty() && id.is_some_and(|id| id != call.id)
        };
        if self.last(index).is_some_and(|at| is_other(&self.all[at].1)) {
            self.begin_another(index);
        }
        let Some(call) = self.call(index) else { return };
        if let Some(id) = id {
            id.clone_into(&mut call.id);
        }
        if call.name != name {
            call.name += name;
        }
    }

    /// Begins another call under a number, or drops it where there are enough.
    fn begin_another(&mut self, index: usize) {
        if self.all.len() < MOST_CALLS {
            self.all.push((index, ChatToolCall::default()));
        } else if !self.dropped.contains(&index) {
            self.dropped.push(index);
        }
    }

    /// The last call of a number.
    fn last(&self, index: usize) -> Option<usize> {
        self.all.iter().rposition(|(at, _)| *at == index)
    }

    /// More of its arguments. Some servers send an empty object before the one that they mean.
    pub(super) fn more(&mut self, index: usize, arguments: &str) {
        if let Some(call) = self.call(index) {
            if call.arguments == "{}" && begins(arguments) {
                call.arguments.clear();
            }
            call.arguments += arguments;
        }
    }

    fn call(&mut self, index: usize) -> Option<&mut ChatToolCall> {
        if self.dropped.contains(&index) {
            return None;
        }
        let at = match self.last(index) {
            Some(at) => at,
            None if self.all.len() == MOST_CALLS => return None,
            None => {
                self.all.push((index, ChatToolCall::default()));
                self.all.len() - 1
            }
        };
        Some(&mut self.all[at].1)
    }

    /// All of them. One without an id, or with the id of an earlier one, is given one, as its result has to name it.
    pub(super) fn take(&mut self) -> Vec<ChatToolCall> {
        let mut ids: Vec<String> = Vec::new();
        self.dropped.clear();
        let calls = std::mem::take(&mut self.all).into_iter();
        let named = calls.enumerate().map(|(at, (_, mut call))| {
            if call.id.is_empty() {
                call.id = format!("call_{at}");
            }
            while ids.contains(&call.id) {
                call.id = format!("{}_{at}", call.id);
            }
            ids.push(call.id.clone());
            if call.arguments.is_empty() {
                "{}".clone_into(&mut call.arguments);
            }
            call
        });
        named.filter(|call| !call.name.is_empty()).collect()
    }
}

/// Whether a piece of arguments is the beginning of an object.
fn begins(arguments: &str) -> bool {
    arguments.trim_start().starts_with('{')
}

/// Whether arguments are a whole object.
fn is_whole(arguments: &str) -> bool {
    // Few pieces end in a brace: few are parsed.
    arguments.trim_end().ends_with('}')
        && serde_json::from_slice::<Map<String, Value>>(arguments.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_put_together_from_their_pieces() {
        let mut calls = Calls::default();
        for piece in [
            json!([{"index": 0, "id": "a", "function": {"name": "add", "arguments": ""}}]),
            json!([{"index": 0, "function": {"arguments": "{\"a\""}}]),
            json!([{"index": 1, "function": {"name": "now"}}]),
            json!([{"index": 0, "function": {"arguments": ":1}"}}]),
        ] {
            calls.add(serde_json::from_value(piece).unwrap());
        }
        let told = calls.take();
        assert_eq!(
            (told[0].id.as_str(), told[0].arguments.as_str()),
            ("a", r#"{"a":1}"#)
        );
        assert_eq!(
            (told[1].id.as_str(), told[1].arguments.as_str()),
            ("call_1", "{}")
        );
        // All of one number, and a name that is said again.
        for (id, arguments) in [("a", "{}"), ("b", "{\"a\""), ("b", ":1}")] {
            let piece = json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": "add", "arguments": arguments}}, 3]});
            calls.add(Some(CallDelta::of(&piece)));
        }
        let told = calls.take();
        let told: Vec<_> = told
            .iter()
            .map(|call| (call.name.as_str(), call.arguments.as_str()))
            .collect();
        assert_eq!(told, [("add", "{}"), ("add", r#"{"a":1}"#)]);
        let older =
            json!({"tool_calls": null, "function_call": {"name": "add", "arguments": "{}"}});
        assert_eq!(CallDelta::of(&older).len(), 1);
        assert_eq!(
            CallDelta::of(&json!({"tool_calls": [{"index": null, "function": null}]})).len(),
            1
        );
        let whole = json!([{"function": {"name": "add", "arguments": {"a": 1}}}]);
        calls.add_whole(serde_json::from_value(whole.clone()).unwrap());
        calls.add_whole(serde_json::from_value(whole).unwrap());
        assert_eq!(calls.take().len(), 2);
    }

    /// The pieces of each case as real servers send them, one event each.
    #[test]
    fn calls_are_told_apart_whatever_their_numbers_and_ids_are() {
        let one = |piece: Value| json!({ "tool_calls": [piece] });
        let gemini = |name: &str, city: &str| {
            let arguments = format!("{{\"city\":\"{city}\"}}");
            one(json!({"index": 0, "id": "", "function": {"name": name, "arguments": arguments}}))
        };
        let more = |text: &str| one(json!({"function": {"arguments": text}}));
        let named = |text: &str| {
            let function = json!({"name": "add", "arguments": text});
            one(json!({"index": 0, "id": null, "function": function}))
        };
        let begun = |index: Value, id: Value, name: &str| {
            one(json!({"index": index, "id": id, "function": {"name": name, "arguments": ""}}))
        };
        let first_empty =
            json!({"index": 0, "id": "a", "function": {"name": "add", "arguments": "{}"}});
        for (pieces, expected) in [
            (
                vec![
                    gemini("weather", "Oslo"),
                    gemini("weather", "Rome"),
                    gemini("time", "Oslo"),
                ],
                vec![
                    ("weather", r#"{"city":"Oslo"}"#),
                    ("weather", r#"{"city":"Rome"}"#),
                    ("time", r#"{"city":"Oslo"}"#),
                ],
            ),
            // The whole call comes twice.
            (
                vec![gemini("weather", "Oslo"), gemini("weather", "Oslo")],
                vec![("weather", r#"{"city":"Oslo"}"#)],
            ),
            // The name is repeated, and the last piece is empty.
            (
                vec![named("{\"a\""), named(":{\"b\":1}}"), named("")],
                vec![("add", r#"{"a":{"b":1}}"#)],
            ),
            // An empty object stands before what is meant.
            (
                vec![one(first_empty.clone()), more("{\"a\""), more(":1}")],
                vec![("add", r#"{"a":1}"#)],
            ),
            (
                vec![
                    one(first_empty.clone()),
                    one(
                        json!({"index": 0, "id": "a", "function": {"name": "add", "arguments": "{\"a\":1}"}}),
                    ),
                ],
                vec![("add", r#"{"a":1}"#)],
            ),
            (vec![one(first_empty)], vec![("add", "{}")]),
            // What says more of a call has no number.
            (
                vec![
                    begun(json!(0), json!("a"), "now"),
                    begun(json!(1), json!("b"), "add"),
                    more("{\"a\""),
                    more(":1}"),
                ],
                vec![("now", "{}"), ("add", r#"{"a":1}"#)],
            ),
            // Numbers are texts, and ids are numbers.
            (
                vec![
                    begun(json!("0"), json!(7), "add"),
                    begun(json!("1"), json!(8), "now"),
                ],
                vec![("add", "{}"), ("now", "{}")],
            ),
        ] {
            let mut calls = Calls::default();
            for piece in &pieces {
                calls.add(Some(CallDelta::of(piece)));
            }
            let told = calls.take();
            let told: Vec<_> = told
                .iter()
                .map(|call| (call.name.as_str(), call.arguments.as_str()))
                .collect();
            assert_eq!(told, expected, "{pieces:?}");
        }
    }

    #[test]
    fn further_calls_are_dropped_and_change_none_before() {
        let mut calls = Calls::default();
        let one = |id: &str, name: &str, arguments: &str| {
            let function = json!({"name": name, "arguments": arguments});
            let piece = json!({"index": 0, "id": id, "function": function});
            Some(CallDelta::of(&json!({ "tool_calls": [piece] })))
        };
        for at in 0..MOST_CALLS + 2 {
            calls.add(one("", "add", &format!("{{\"a\":{at}}}")));
        }
        calls.add(one("z", "now", "{\"b\""));
        calls.add(one("", "", ":1}"));
        let told = calls.take();
        assert_eq!(told.len(), MOST_CALLS);
        for (at, call) in told.iter().enumerate() {
            let whole = format!("{{\"a\":{at}}}");
            assert_eq!((&*call.name, &*call.arguments), ("add", &*whole));
        }
        calls.add(one("", "add", "{}"));
        assert_eq!(calls.take().len(), 1);
    }

    #[test]
    fn no_two_calls_of_an_answer_have_one_id() {
        let call = |id: &str| json!({"id": id, "function": {"name": "add", "arguments": "{}"}});
        let mut calls = Calls::default();
        let message = json!({"tool_calls": [call("a"), call("a"), call("call_3"), call("")]});
        calls.add(Some(CallDelta::of(&message)));
        let told = calls.take();
        let ids: Vec<&str> = told.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a", "a_1", "call_3", "call_3_3"]);
        for arguments in ["{\"a\":1}", "{\"a\":2}"] {
            let function = json!({"name": "add", "arguments": arguments});
            let piece = json!({"index": 0, "id": "a", "function": function});
            calls.add(Some(CallDelta::of(&json!({ "tool_calls": [piece] }))));
        }
        let told = calls.take();
        let ids: Vec<&str> = told.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a", "a_1"], "{told:?}");
    }
}
