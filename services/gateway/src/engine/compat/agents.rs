//! Agents as models: `agent/NAME` is the agent of a flow, told what a row of configuration says of it. What it answers is made
//! into parts of a chat.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tg_schemas::Error;

use super::augment;
use super::dialect::said;
use crate::engine::translate::Body;
use crate::engine::translate::fields::fault;

/// The type of the rows.
pub(crate) const ROWS: &str = "agent-definition";
/// What the name of such a model begins with.
const PREFIX: &str = "agent/";
/// The agent as it is. A row of this name may say otherwise.
pub(crate) const OWN: &str = "default";

/// The agent that a model is.
pub(crate) fn named(model: &str) -> Option<&str> {
    model.strip_prefix(PREFIX)
}

/// The model that an agent is.
pub(crate) fn model(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// The names of the models that agents are, with these rows.
pub(crate) fn models<'a>(rows: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<&str> = rows.chain([OWN]).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(model).collect()
}

/// What an agent is told beside the question.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Definition {
    framing: String,
    group: Option<Vec<String>>,
}

impl Definition {
    /// By its name and its row. One that cannot be read is none, as for agents that give work away.
    pub(crate) fn find(name: &str, row: Option<&str>) -> Option<Self> {
        match row {
            Some(row) => serde_json::from_slice(row.as_bytes()).ok(),
            None => (name == OWN).then(Self::default),
        }
    }

    /// The body of `agent`, from that of a chat. Texts of the system are added to what the agent is told. Earlier turns stand
    /// before the question.
    ///
    /// # Errors
    /// `bad-request`: the chat brings tools or a schema, or does not end in a question.
    pub(crate) fn question(&self, chat: &Body) -> Result<Body, Error> {
        let Turns {
            system,
            earlier,
            last,
        } = Turns::read(chat)?;
        let mut question = of(last, "content");
        if !earlier.is_empty() {
            let lines = earlier.iter();
            let lines = lines.map(|turn| format!("{}: {}", of(turn, "role"), of(turn, "content")));
            let lines: Vec<String> = lines.collect();
            question = format!(
                "The conversation so far:\n{}\n\nThe question now:\n{question}",
                lines.join("\n")
            );
        }
        let texts = system.iter().map(|turn| of(turn, "content"));
        let texts: Vec<String> = [self.framing.clone()].into_iter().chain(texts).collect();
        let texts = texts.into_iter().filter(|text| !text.is_empty());
        let mut own = Map::from_iter([
            ("question".to_owned(), question.into()),
            (
                "framing".to_owned(),
                texts.collect::<Vec<_>>().join("\n\n").into(),
            ),
            (
                "streaming".to_owned(),
                chat.get("streaming").cloned().unwrap_or_default(),
            ),
        ]);
        if let Some(group) = &self.group {
            own.insert("group".to_owned(), json!(group));
        }
        Ok(own)
    }

    /// The body of `agent`, from that of a chat with a model that is to use the tools of the workspace. The model of the chat
    /// answers, with the temperature and the most tokens that the chat names.
    ///
    /// # Errors
    /// As of [`Self::question`].
    pub(crate) fn in_place_of_model(&self, chat: &Body) -> Result<Body, Error> {
        if chat.contains_key("response_format") {
            let text = "server-tools must be off where a schema is asked for";
            return Err(fault(augment::HEADER, text));
        }
        let mut own = self.question(chat)?;
        for key in ["model", "max_tokens", "temperature"] {
            if let Some(value) = chat.get(key) {
                own.insert(key.to_owned(), value.clone());
            }
        }
        Ok(own)
    }
}

/// The turns of a chat that an agent is asked.
struct Turns<'a> {
    system: Vec<&'a Value>,
    earlier: Vec<&'a Value>,
    last: &'a Value,
}

/// The text of a turn under a key.
fn of(turn: &Value, key: &str) -> String {
    turn[key].as_str().unwrap_or_default().to_owned()
}

impl<'a> Turns<'a> {
    /// # Errors
    /// `bad-request`: the chat brings tools or a schema, or does not end in a question.
    fn read(chat: &'a Body) -> Result<Self, Error> {
        let list = |key: &str| chat.get(key).and_then(Value::as_array);
        if list("tools").is_some_and(|tools| !tools.is_empty()) {
            return Err(fault("tools", "must be empty: an agent has its own tools"));
        }
        if chat.contains_key("response_format") {
            return Err(fault(
                "model",
                "must not be an agent where a schema is asked for",
            ));
        }
        let turns = list("messages").map_or(&[][..], Vec::as_slice);
        if turns.iter().any(|turn| turn.get("images").is_some()) {
            return Err(fault(
                "messages",
                "must have no pictures: agents read texts",
            ));
        }
        let (system, mut said): (Vec<&Value>, Vec<&Value>) =
            turns.iter().partition(|turn| turn["role"] == "system");
        let Some(last) = said.pop() else {
            return Err(fault("messages", "must have a message of the user"));
        };
        if last["role"] != "user" {
            return Err(fault("messages", "must end in a message of the user"));
        }
        Ok(Self {
            system,
            earlier: said,
            last,
        })
    }
}

/// The body of `chat` of the sessions, from that of a chat: for an agent of a file or of the workspace.
///
/// # Errors
/// As of [`Definition::question`].
pub(crate) fn session_question(name: &str, chat: &Body) -> Result<Body, Error> {
    let turns = Turns::read(chat)?;
    let before = turns.system.iter().chain(&turns.earlier);
    let earlier: Vec<Value> = before
        .map(|turn| json!({"role": of(turn, "role"), "content": of(turn, "content")}))
        .collect();
    let streaming = chat.get("streaming").cloned().unwrap_or(Value::Bool(false));
    Ok(Map::from_iter([
        ("operation".to_owned(), "chat".into()),
        ("name".to_owned(), name.into()),
        ("message".to_owned(), of(turns.last, "content").into()),
        ("earlier".to_owned(), earlier.into()),
        ("streaming".to_owned(), streaming),
    ]))
}

/// A part of the answer of such an agent, as a part of a chat.
pub(crate) fn session_part(mut chunk: Body) -> Body {
    let token = chunk.get("event").is_some_and(|event| event == "token");
    let data = chunk.remove("data").or_else(|| chunk.remove("result"));
    let Some(Value::Object(mut data)) = data else {
        return Body::new();
    };
    let mut own = ended(&data);
    if let Some(text) = data.remove("delta").filter(|_| token) {
        own.insert("delta".to_owned(), text);
    }
    own
}

/// The whole answer of such an agent, as that of a chat.
pub(crate) fn session_whole(mut last: Body) -> Body {
    // The last event of a turn that is streamed has it, too.
    let result = last.remove("result").or_else(|| last.remove("data"));
    let Some(Value::Object(mut result)) = result else {
        return Body::new();
    };
    let mut own = ended(&result);
    if let Some(text) = result.remove("content") {
        own.insert("content".to_owned(), text);
    }
    own
}

/// A part of an agent's answer, as a part of a chat.
pub(crate) fn part(chunk: &Body) -> Body {
    let mut own = ended(chunk);
    let key = match said(chunk, "message_type") {
        Some("thought" | "confirm") => "thinking",
        Some("answer" | "final-answer") => "delta",
        _ => return own,
    };
    if let Some(text) = said(chunk, "content") {
        own.insert(key.to_owned(), text.into());
    }
    own
}

/// A whole answer of an agent, summed up, as that of a chat.
pub(crate) fn whole(summed: &Body) -> Body {
    let mut own = ended(summed);
    for (key, name) in [("answer", "content"), ("thought", "thinking")] {
        if let Some(text) = said(summed, key) {
            own.insert(name.to_owned(), text.into());
        }
    }
    own
}

/// What the last chunk reports besides texts.
fn ended(chunk: &Body) -> Body {
    let mut own = Body::new();
    if let Some(used) = chunk.get("usage") {
        let usage = json!({
            "input": used["input"], "output": used["output"], "total": used["total"],
            "cache_read": used["cacheRead"], "cache_write": used["cacheWrite"],
        });
        own.insert("usage".to_owned(), usage);
    }
    if let Some(cost) = chunk.get("cost") {
        own.insert("cost".to_owned(), cost.clone());
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(value: Value) -> Body {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_model_is_an_agent_by_its_prefix_and_one_without_a_row_is_only_the_flows_own() {
        assert_eq!(named("agent/reviewer"), Some("reviewer"));
        assert_eq!(named("near/agent"), None);
        assert_eq!(Definition::find("other", None), None);
        assert_eq!(Definition::find("default", Some("[")), None);
        assert_eq!(
            Definition::find("default", None),
            Some(Definition::default())
        );
        let names = models(["z", "default"].into_iter());
        assert_eq!(names, ["agent/default", "agent/z"]);
    }

    #[test]
    fn a_chat_becomes_a_question_with_what_was_said_before() {
        let row = r#"{"framing": "Review code.", "group": ["code"], "capabilities": []}"#;
        let definition = Definition::find("reviewer", Some(row)).unwrap();
        let chat = body(json!({"streaming": true, "tools": [], "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "a?"}, {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c?"}]}));
        assert_eq!(
            Value::Object(definition.question(&chat).unwrap()),
            json!({
                "question": "The conversation so far:\nuser: a?\nassistant: b\n\nThe question now:\nc?",
                "framing": "Review code.\n\nBe brief.", "group": ["code"], "streaming": true,
            })
        );
        let own = Definition::default();
        let told = |chat: Value| own.question(&body(chat)).unwrap_err().message;
        let user = json!([{"role": "user", "content": "q"}]);
        assert_eq!(
            told(json!({"messages": user, "tools": [{"name": "add"}]})),
            "tools: must be empty: an agent has its own tools"
        );
        assert_eq!(
            told(json!({"messages": user, "response_format": "json"})),
            "model: must not be an agent where a schema is asked for"
        );
        let image = json!([{"role": "user", "content": "q", "images": ["data:a"]}]);
        assert_eq!(
            told(json!({"messages": image})),
            "messages: must have no pictures: agents read texts"
        );
        assert_eq!(
            told(json!({"messages": [{"role": "assistant", "content": "q"}]})),
            "messages: must end in a message of the user"
        );
    }

    #[test]
    fn a_chat_that_may_use_tools_keeps_its_model() {
        let own = Definition::find("default", Some(r#"{"group": ["code"]}"#)).unwrap();
        let chat = body(
            json!({"model": "m", "max_tokens": 9, "temperature": 0.5, "top_p": 1, "tools": [],
            "streaming": false, "messages": [{"role": "user", "content": "q"}]}),
        );
        assert_eq!(
            Value::Object(own.in_place_of_model(&chat).unwrap()),
            json!({"question": "q", "framing": "", "group": ["code"], "streaming": false,
                "model": "m", "max_tokens": 9, "temperature": 0.5})
        );
        let schema = body(
            json!({"messages": [{"role": "user", "content": "q"}], "response_format": "json"}),
        );
        assert_eq!(
            own.in_place_of_model(&schema).unwrap_err().message,
            "spass-augment: server-tools must be off where a schema is asked for"
        );
    }

    #[test]
    fn a_chat_with_an_agent_of_sessions_keeps_its_turns() {
        let chat = body(json!({"streaming": true, "messages": [
            {"role": "user", "content": "a?"}, {"role": "assistant", "content": "b"},
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "c?"}]}));
        let asked = session_question("maven", &chat).unwrap();
        assert_eq!(
            (&asked["name"], &asked["message"]),
            (&json!("maven"), &json!("c?"))
        );
        let roles: Vec<&Value> = asked["earlier"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["role"])
            .collect();
        assert_eq!(roles, ["system", "user", "assistant"]);
        assert_eq!(asked["streaming"], true);
        let told = |chunk: Value| Value::Object(session_part(body(chunk)));
        let token = json!({"event": "token", "data": {"delta": "x"}});
        assert_eq!(told(token), json!({"delta": "x"}));
        assert_eq!(told(json!({"event": "token-reset", "data": {}})), json!({}));
        let done = json!({"event": "done", "data": {"content": "x", "usage": {"input": 1, "output": 2,
            "total": 3, "cacheRead": 0, "cacheWrite": 0}, "cost": {"source": "table"}}});
        let done = told(done);
        assert_eq!(
            (&done["usage"]["total"], &done["cost"]["source"]),
            (&json!(3), &json!("table"))
        );
        assert!(done.get("delta").is_none());
        let whole = session_whole(body(
            json!({"result": {"content": "x", "cost": {"source": "local"}}}),
        ));
        assert_eq!(whole["content"], "x");
    }

    #[test]
    fn thoughts_and_answers_are_parts_of_a_chat_and_other_chunks_are_not() {
        let of = |kind: &str| {
            let chunk = json!({"message_type": kind, "content": "x", "end_of_dialog": false});
            Value::Object(part(&body(chunk)))
        };
        assert_eq!(of("thought"), json!({"thinking": "x"}));
        assert_eq!(of("answer"), json!({"delta": "x"}));
        for other in ["explain", "observation", "action"] {
            assert_eq!(of(other), json!({}), "{other}");
        }
        let last = body(
            json!({"message_type": "answer", "answer": "42", "thought": "hm",
            "usage": {"input": 1, "output": 2, "total": 3, "cacheRead": 0, "cacheWrite": 0},
            "cost": {"source": "table", "sub_calls": 2}}),
        );
        let whole = Value::Object(whole(&last));
        assert_eq!(
            (
                &whole["content"],
                &whole["thinking"],
                &whole["usage"]["total"]
            ),
            (&json!("42"), &json!("hm"), &json!(3))
        );
        assert_eq!(whole["cost"]["sub_calls"], 2);
    }
}
