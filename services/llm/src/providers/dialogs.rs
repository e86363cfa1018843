//! Chats of several turns, and the tools that they offer, as each dialect writes them.

use serde_json::{Map, Value, json};
use tg_schemas::msg::{ChatTool, ChatTurn};

use crate::model::Dialog;
use crate::picture::Picture;

/// Arguments as an object; what is none is an empty one.
fn object(arguments: &str) -> Value {
    let read: Option<Map<String, Value>> = serde_json::from_slice(arguments.as_bytes()).ok();
    Value::Object(read.unwrap_or_default())
}

/// The schema of what a tool takes. Some servers refuse one of objects that names none of their properties, as tools without
/// arguments have it.
fn parameters(tool: &ChatTool) -> Value {
    let mut own = Value::Object(tool.parameters.clone().unwrap_or_default());
    if own == json!({}) {
        own["type"] = "object".into();
    }
    if own["type"] == "object" && own["properties"].is_null() {
        own["properties"] = json!({});
    }
    own
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
    if dialog.offers_tools() {
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
            // A text of blanks is refused.
            _ if turn.content.trim().is_empty() => {}
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
    // Ends of blanks are refused.
    let stop = dialog.stop.iter().filter(|text| !text.trim().is_empty());
    let stop: Vec<&String> = stop.collect();
    if !stop.is_empty() {
        body["stop_sequences"] = json!(stop);
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::msg::ChatToolCall;

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
    fn a_tool_without_arguments_has_a_schema_without_properties() {
        let of = |schema: Value| {
            let tool = ChatTool {
                parameters: schema.as_object().cloned(),
                ..ChatTool::default()
            };
            parameters(&tool)
        };
        let none = json!({"type": "object", "properties": {}});
        for empty in [
            Value::Null,
            json!({}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": null}),
        ] {
            assert_eq!(of(empty), none);
        }
        let other = json!({"anyOf": [{"type": "object"}]});
        assert_eq!(of(other.clone()), other);
    }

    /// Anthropic refuses texts and ends that are blanks alone.
    #[test]
    fn blanks_alone_are_left_out_for_anthropic() {
        let dialog = Dialog {
            turns: vec![
                turn("user", "one"),
                turn("assistant", " \n"),
                turn("user", "two"),
            ],
            stop: vec!["\n".to_owned(), "END".to_owned()],
            ..Dialog::default()
        };
        let mut body = json!({});
        anthropic(&dialog, &mut body);
        let texts = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]);
        assert_eq!(
            body["messages"],
            json!([{"role": "user", "content": texts}])
        );
        assert_eq!(body["stop_sequences"], json!(["END"]));
        let dialog = Dialog {
            stop: vec!["\n\n".to_owned()],
            ..dialog
        };
        let mut body = json!({});
        anthropic(&dialog, &mut body);
        assert!(body.get("stop_sequences").is_none());
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
}
