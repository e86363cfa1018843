//! Chats of several turns and calls of tools, as each dialect writes them.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tg_schemas::msg::{ChatTool, ChatToolCall, ChatTurn};

use crate::model::Dialog;
use crate::picture::Picture;

/// Most tools that an answer calls; further ones are dropped.
pub(super) const MOST_CALLS: usize = 128;

/// A piece of a call, in the dialect of OpenAI; Ollama's have arguments that are objects.
#[derive(Deserialize)]
pub(super) struct CallDelta {
    index: Option<usize>,
    id: Option<String>,
    function: Option<FunctionDelta>,
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
pub(super) struct Calls(Vec<(usize, ChatToolCall)>);

impl Calls {
    /// Adds pieces; one without a number is of its place.
    pub(super) fn add(&mut self, pieces: Option<Vec<CallDelta>>) {
        for (place, piece) in pieces.into_iter().flatten().enumerate() {
            let index = piece.index.unwrap_or(place);
            let function = piece.function.unwrap_or_default();
            let name = function.name.unwrap_or_default();
            self.begin(index, piece.id.as_deref(), &name);
            match function.arguments {
                Value::Null => {}
                Value::String(text) => self.more(index, &text),
                object => self.more(index, &object.to_string()),
            }
        }
    }

    /// Adds calls each of which is whole.
    pub(super) fn add_whole(&mut self, pieces: Option<Vec<CallDelta>>) {
        let mut next = self.0.len();
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
        if self.last(index).is_some_and(|at| is_other(&self.0[at].1)) && self.0.len() < MOST_CALLS {
            self.0.push((index, ChatToolCall::default()));
        }
        let Some(call) = self.call(index) else { return };
        if let Some(id) = id {
            id.clone_into(&mut call.id);
        }
        if call.name != name {
            call.name += name;
        }
    }

    /// The last call of a number.
    fn last(&self, index: usize) -> Option<usize> {
        self.0.iter().rposition(|(at, _)| *at == index)
    }

    /// More of its arguments.
    pub(super) fn more(&mut self, index: usize, arguments: &str) {
        if let Some(call) = self.call(index) {
            call.arguments += arguments;
        }
    }

    fn call(&mut self, index: usize) -> Option<&mut ChatToolCall> {
        let at = match self.last(index) {
            Some(at) => at,
            None if self.0.len() == MOST_CALLS => return None,
            None => {
                self.0.push((index, ChatToolCall::default()));
                self.0.len() - 1
            }
        };
        Some(&mut self.0[at].1)
    }

    /// All of them. One without an id is given one, as its result has to name it.
    pub(super) fn take(&mut self) -> Vec<ChatToolCall> {
        let calls = std::mem::take(&mut self.0).into_iter();
        let named = calls.enumerate().map(|(at, (_, mut call))| {
            if call.id.is_empty() {
                call.id = format!("call_{at}");
            }
            if call.arguments.is_empty() {
                "{}".clone_into(&mut call.arguments);
            }
            call
        });
        named.filter(|call| !call.name.is_empty()).collect()
    }
}

/// Arguments as an object; what is none is an empty one.
fn object(arguments: &str) -> Value {
    let read: Option<Map<String, Value>> = serde_json::from_slice(arguments.as_bytes()).ok();
    Value::Object(read.unwrap_or_default())
}

fn parameters(tool: &ChatTool) -> Value {
    let none = || json!({"type": "object", "properties": {}});
    tool.parameters.clone().map_or_else(none, Value::Object)
}

/// The turns in the dialect of OpenAI.
pub(super) fn openai_turns(dialog: &Dialog) -> Vec<Value> {
    let turns = dialog.turns.iter().enumerate();
    turns
        .map(|(at, turn)| {
            let mut own = openai_turn(turn);
            let pictures = dialog.pictures_of(at);
            let pictures = pictures
                .map(|one| json!({"type": "image_url", "image_url": {"url": one.data_uri()}}));
            let pictures: Vec<Value> = pictures.collect();
            if !pictures.is_empty() {
                let text = Some(&turn.content).filter(|text| !text.is_empty());
                let text = text.map(|text| json!({"type": "text", "text": text}));
                own["content"] = text.into_iter().chain(pictures).collect();
            }
            own
        })
        .collect()
}

fn openai_turn(turn: &ChatTurn) -> Value {
    let mut own = json!({"role": turn.role, "content": turn.content});
    if !turn.tool_calls.is_empty() {
        let calls = turn.tool_calls.iter().map(|call| {
            let function = json!({"name": call.name, "arguments": call.arguments});
            json!({"id": call.id, "type": "function", "function": function})
        });
        own["tool_calls"] = calls.collect();
        if turn.content.is_empty() {
            own["content"] = Value::Null;
        }
    }
    if let Some(id) = &turn.tool_call_id {
        own["tool_call_id"] = json!(id);
    }
    if let Some(name) = &turn.name {
        own["name"] = json!(name);
    }
    own
}

fn openai_tools(dialog: &Dialog) -> Vec<Value> {
    let tool = |tool: &ChatTool| {
        json!({"type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": parameters(tool),
        }})
    };
    dialog.tools.iter().map(tool).collect()
}

/// The wishes for an answer in the dialect of OpenAI.
pub(super) fn openai_wishes(dialog: &Dialog, body: &mut Value) {
    if !dialog.tools.is_empty() {
        body["tools"] = openai_tools(dialog).into();
        if let Some(choice) = dialog.tool_choice.as_deref() {
            body["tool_choice"] = match choice {
                "auto" | "none" | "required" => json!(choice),
                name => json!({"type": "function", "function": {"name": name}}),
            };
        }
    }
    if let Some(share) = dialog.top_p {
        body["top_p"] = json!(share);
    }
    if !dialog.stop.is_empty() {
        body["stop"] = json!(dialog.stop);
    }
}

/// A dialog in Ollama's dialect: arguments are objects, and wishes are options.
pub(super) fn ollama(dialog: &Dialog, body: &mut Value) {
    let turn = |(at, turn): (usize, &ChatTurn)| {
        let mut own = json!({"role": turn.role, "content": turn.content});
        let pictures = dialog.pictures_of(at).map(|one| one.base64.as_str());
        let pictures: Vec<&str> = pictures.collect();
        if !pictures.is_empty() {
            own["images"] = json!(pictures);
        }
        if !turn.tool_calls.is_empty() {
            let calls = turn.tool_calls.iter().map(|call| {
                json!({"function": {"name": call.name, "arguments": object(&call.arguments)}})
            });
            own["tool_calls"] = calls.collect();
        }
        if let (Some(name), "tool") = (&turn.name, turn.role.as_str()) {
            own["tool_name"] = json!(name);
        }
        own
    };
    body["messages"] = dialog.turns.iter().enumerate().map(turn).collect();
    if !dialog.tools.is_empty() && dialog.tool_choice.as_deref() != Some("none") {
        body["tools"] = openai_tools(dialog).into();
    }
    let options = &mut body["options"];
    if let Some(share) = dialog.top_p {
        options["top_p"] = json!(share);
    }
    if !dialog.stop.is_empty() {
        options["stop"] = json!(dialog.stop);
    }
}

/// A picture in Anthropic's dialect.
pub(super) fn image(picture: &Picture) -> Value {
    let source =
        json!({"type": "base64", "media_type": picture.media_type, "data": picture.base64});
    json!({"type": "image", "source": source})
}

/// A dialog in Anthropic's dialect: instructions stand apart, results of tools are said by the user, and turns of one
/// side that follow each other are one.
pub(super) fn anthropic(dialog: &Dialog, body: &mut Value) {
    let mut messages: Vec<Value> = Vec::new();
    let turns = dialog.turns.iter().enumerate();
    for (at, turn) in turns.filter(|(_, turn)| turn.role != "system") {
        let role = match turn.role.as_str() {
            "assistant" => "assistant",
            _ => "user",
        };
        let pictures = dialog.pictures_of(at).map(image);
        let mut blocks: Vec<Value> = pictures.collect();
        match &turn.tool_call_id {
            Some(id) if turn.role == "tool" => blocks.push(json!({
                "type": "tool_result", "tool_use_id": id, "content": turn.content,
            })),
            _ if turn.content.is_empty() => {}
            _ => blocks.push(json!({"type": "text", "text": turn.content})),
        }
        blocks.extend(turn.tool_calls.iter().map(|call| {
            json!({
                "type": "tool_use", "id": call.id, "name": call.name,
                "input": object(&call.arguments),
            })
        }));
        match messages.last_mut() {
            Some(last) if last["role"] == role => {
                if let Some(content) = last["content"].as_array_mut() {
                    content.append(&mut blocks);
                }
            }
            _ if blocks.is_empty() => {}
            _ => messages.push(json!({"role": role, "content": blocks})),
        }
    }
    body["messages"] = messages.into();
    if !dialog.tools.is_empty() {
        let tool = |tool: &ChatTool| {
            json!({
                "name": tool.name, "description": tool.description,
                "input_schema": parameters(tool),
            })
        };
        body["tools"] = dialog.tools.iter().map(tool).collect();
        if let Some(choice) = dialog.tool_choice.as_deref() {
            body["tool_choice"] = match choice {
                "auto" | "none" => json!({"type": choice}),
                "required" => json!({"type": "any"}),
                name => json!({"type": "tool", "name": name}),
            };
        }
    }
    if let Some(share) = dialog.top_p {
        body["top_p"] = json!(share);
    }
    if !dialog.stop.is_empty() {
        body["stop_sequences"] = json!(dialog.stop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(role: &str, content: &str) -> ChatTurn {
        ChatTurn {
            role: role.to_owned(),
            content: content.to_owned(),
            ..ChatTurn::default()
        }
    }

    fn dialog() -> Dialog {
        let call = ChatToolCall {
            id: "c1".to_owned(),
            name: "add".to_owned(),
            arguments: r#"{"a":1}"#.to_owned(),
        };
        Dialog {
            turns: vec![
                turn("system", "be brief"),
                turn("user", "one"),
                ChatTurn {
                    tool_calls: vec![call],
                    ..turn("assistant", "")
                },
                ChatTurn {
                    tool_call_id: Some("c1".to_owned()),
                    ..turn("tool", "2")
                },
                turn("user", "and?"),
            ],
            tools: vec![ChatTool {
                name: "add".to_owned(),
                ..ChatTool::default()
            }],
            tool_choice: Some("add".to_owned()),
            stop: vec!["END".to_owned()],
            top_p: Some(0.5),
            pictures: Vec::new(),
        }
    }

    #[test]
    fn turns_and_tools_are_written_in_each_dialect() {
        let dialog = dialog();
        let turns = openai_turns(&dialog);
        assert_eq!(turns[2]["content"], Value::Null);
        assert_eq!(
            turns[2]["tool_calls"][0]["function"]["arguments"],
            r#"{"a":1}"#
        );
        assert_eq!(turns[3]["tool_call_id"], "c1");
        let mut body = json!({});
        openai_wishes(&dialog, &mut body);
        assert_eq!(body["tool_choice"]["function"]["name"], "add");
        assert_eq!(body["stop"], json!(["END"]));

        let mut body = json!({"options": {}});
        ollama(&dialog, &mut body);
        assert_eq!(
            body["messages"][2]["tool_calls"][0]["function"]["arguments"]["a"],
            1
        );

        let mut body = json!({});
        anthropic(&dialog, &mut body);
        let messages = body["messages"].as_array().unwrap();
        let roles: Vec<_> = messages
            .iter()
            .map(|one| one["role"].as_str().unwrap())
            .collect();
        assert_eq!(roles, ["user", "assistant", "user"]);
        assert_eq!(messages[1]["content"][0]["input"]["a"], 1);
        assert_eq!(messages[2]["content"][0]["tool_use_id"], "c1");
        assert_eq!(messages[2]["content"][1]["text"], "and?");
        assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "add"}));
    }

    #[test]
    fn pictures_stand_in_their_turns_in_each_dialect() {
        let picture = Picture {
            media_type: "image/png",
            base64: "iVBORw0KGgo=".to_owned(),
        };
        let dialog = Dialog {
            pictures: vec![(4, picture.clone()), (4, picture)],
            ..dialog()
        };
        let turns = openai_turns(&dialog);
        assert_eq!(turns[1]["content"], "one");
        assert_eq!(turns[4]["content"][0]["text"], "and?");
        assert_eq!(
            turns[4]["content"][2]["image_url"]["url"],
            "data:image/png;base64,iVBORw0KGgo="
        );
        let mut body = json!({"options": {}});
        ollama(&dialog, &mut body);
        assert_eq!(
            body["messages"][4]["images"],
            json!(["iVBORw0KGgo=", "iVBORw0KGgo="])
        );
        assert!(body["messages"][1].get("images").is_none());
        let mut body = json!({});
        anthropic(&dialog, &mut body);
        // After the result of the tool, in the turn of the same side.
        let blocks = body["messages"][2]["content"].as_array().unwrap();
        let kinds: Vec<_> = blocks.iter().map(|one| one["type"].as_str()).collect();
        let kinds: Vec<_> = kinds.into_iter().flatten().collect();
        assert_eq!(kinds, ["tool_result", "image", "image", "text"]);
        assert_eq!(blocks[1]["source"]["media_type"], "image/png");
    }

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
}
