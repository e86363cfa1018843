//! What a client of chat completions asks, as `chat-completion` reads it.

use serde_json::{Map, Value, json};
use tg_schemas::Error;

use crate::engine::compat::asking::{add_most, add_sampling, arguments, begun, model, result};
use crate::engine::compat::dialect::Asked;
use crate::engine::compat::responses::request::turns as turns_of_items;
use crate::engine::translate::fields::fault;
use crate::engine::translate::{Body, Fields};

/// Reads a request, and whether its answer says what it used. Fields that are not known mean nothing.
///
/// # Errors
/// `bad-request`, with the field that is missing or wrong, or that asks for what is not done here.
pub(super) fn read(body: &Body) -> Result<(Asked, bool), Error> {
    let fields = Fields::new(body);
    let model = model(&fields)?;
    let messages = turns(&fields)?;
    if fields.integer_or("n", 1)? != 1 {
        return Err(fault("n", "must be 1: one answer is given"));
    }
    let streaming = fields.flag("stream")?;
    let options = fields.object("stream_options")?;
    let with_usage = options.map(|own| own.flag("include_usage")).transpose()?;
    let mut own = begun(&model, messages, tools(&fields)?, streaming);
    add_sampling(&fields, &mut own);
    add_most(&fields, &["max_completion_tokens", "max_tokens"], &mut own);
    match fields.value("stop") {
        None => {}
        Some(Value::String(one)) => {
            own.insert("stop".into(), json!([one]));
        }
        Some(_) => {
            own.insert("stop".into(), fields.texts("stop")?.into());
        }
    }
    if let Some(choice) = choice(&fields)? {
        own.insert("tool_choice".into(), choice.into());
    }
    own.extend(format(&fields)?);
    let asked = Asked {
        body: own,
        model,
        streaming,
    };
    Ok((asked, with_usage.unwrap_or(false)))
}

/// The chat. Cursor sends the items of a response under `input` in the place of messages.
fn turns(fields: &Fields<'_>) -> Result<Vec<Value>, Error> {
    let messages = fields.objects("messages")?;
    if messages.is_empty() && fields.value("input").is_some() {
        return turns_of_items(fields);
    }
    if messages.is_empty() {
        return Err(fault("messages", "must have at least one message"));
    }
    messages.iter().map(turn).collect()
}

/// The text of a message, itself or in parts, and the addresses of its pictures. What a model thought is left out: no model here
/// reads it again.
fn content(message: &Fields<'_>) -> Result<(String, Vec<Value>), Error> {
    if !matches!(message.value("content"), Some(Value::Array(_))) {
        return Ok((message.text("content")?, Vec::new()));
    }
    let (mut text, mut images) = (String::new(), Vec::new());
    for part in message.objects("content")? {
        match part.text("type")?.as_str() {
            "text" => text += &part.text("text")?,
            "refusal" => text += &part.text("refusal")?,
            "thinking" | "redacted_thinking" | "reasoning" => {}
            "image_url" => images.push(picture(&part)?.into()),
            _ => {
                let wrong = "must be text or image_url: other parts are not read here";
                return Err(part.fault("type", wrong));
            }
        }
    }
    Ok((text, images))
}

/// The address of a picture: below a key, or as some clients write it, itself. How closely it is to be looked at is left to the
/// model.
fn picture(part: &Fields<'_>) -> Result<String, Error> {
    if let Some(Value::String(address)) = part.value("image_url") {
        return Ok(address.clone());
    }
    let image = part.object("image_url")?;
    let image = image.ok_or_else(|| part.fault("image_url", "is required"))?;
    image.required_text("url")
}

fn turn(message: &Fields<'_>) -> Result<Value, Error> {
    let role = message.required_text("role")?;
    let role = match role.as_str() {
        "developer" => "system",
        "function" => "tool",
        "system" | "user" | "assistant" | "tool" => role.as_str(),
        _ => {
            let text = "must be system, developer, user, assistant or tool";
            return Err(message.fault("role", text));
        }
    };
    let (text, images) = content(message)?;
    if role == "tool" {
        let mut own = result(text, images, message.opt_text("tool_call_id")?);
        if let Some(name) = message.opt_text("name")? {
            own["name"] = name.into();
        }
        return Ok(own);
    }
    let mut own = json!({"role": role, "content": text});
    if !images.is_empty() {
        if role != "user" {
            let wrong = "must be text: only the user and tools send pictures";
            return Err(message.fault("content", wrong));
        }
        own["images"] = images.into();
    }
    let mut calls = Vec::new();
    for call in message.objects("tool_calls")? {
        let function = call.object("function")?;
        let function = function.ok_or_else(|| call.fault("function", "is required"))?;
        calls.push(json!({
            "id": call.text("id")?,
            "name": function.required_text("name")?,
            "arguments": arguments(&function, "arguments")?,
        }));
    }
    own["tool_calls"] = calls.into();
    if let Some(name) = message.opt_text("name")? {
        own["name"] = name.into();
    }
    Ok(own)
}

/// The tools that the model is offered. Tools of other types are left out beside functions, and refused alone.
fn tools(fields: &Fields<'_>) -> Result<Vec<Value>, Error> {
    let named = fields.objects("tools")?;
    let has_functions = named.iter().any(is_function);
    let offered = named
        .iter()
        .filter(|tool| !has_functions || is_function(tool));
    offered.map(tool).collect()
}

fn is_function(tool: &Fields<'_>) -> bool {
    tool.value("type").is_none_or(|kind| kind == "function")
}

/// A function: below a key, or flat, as responses have it.
fn tool(tool: &Fields<'_>) -> Result<Value, Error> {
    let function = match tool.object("function")? {
        Some(function) => function,
        None if tool.value("name").is_some() => tool.clone(),
        None => return Err(tool.fault("function", "is required")),
    };
    let mut own = json!({
        "name": function.required_text("name")?,
        "description": function.text("description")?,
    });
    if let Some(parameters) = function.map("parameters")? {
        own["parameters"] = Value::Object(parameters.clone());
    }
    Ok(own)
}

/// Which tool is to be called: a word, or the name of one.
fn choice(fields: &Fields<'_>) -> Result<Option<String>, Error> {
    match fields.value("tool_choice") {
        None => Ok(None),
        Some(Value::String(word)) if ["auto", "none", "required"].contains(&word.as_str()) => {
            Ok(Some(word.clone()))
        }
        // As servers of Mistral have it.
        Some(Value::String(word)) if word == "any" => Ok(Some("required".to_owned())),
        Some(Value::Object(_)) => {
            let missing = || fault("tool_choice.function", "is required");
            let choice = fields.object("tool_choice")?.ok_or_else(missing)?;
            match (choice.text("type")?.as_str(), choice.object("function")?) {
                // As a word, in the form of other APIs.
                (word @ ("auto" | "none" | "required"), None) => Ok(Some(word.to_owned())),
                ("any", None) => Ok(Some("required".to_owned())),
                (_, Some(function)) => function.required_text("name").map(Some),
                ("function" | "tool", None) => {
                    choice.opt_text("name")?.map(Some).ok_or_else(missing)
                }
                _ => Err(missing()),
            }
        }
        Some(_) => {
            let text = "must be auto, none, required or a function";
            Err(fault("tool_choice", text))
        }
    }
}

/// The shape of the answer.
fn format(fields: &Fields<'_>) -> Result<Map<String, Value>, Error> {
    let mut own = Map::new();
    let Some(format) = fields.object("response_format")? else {
        return Ok(own);
    };
    match format.text("type")?.as_str() {
        "text" | "" => {}
        "json_object" => {
            own.insert("response_format".into(), "json".into());
        }
        "json_schema" => {
            let told = format.object("json_schema")?;
            let schema = told.map(|told| told.map("schema").map(Option::<&Body>::cloned));
            let schema = schema.transpose()?.flatten();
            let schema = schema.ok_or_else(|| format.fault("json_schema.schema", "is required"))?;
            own.insert("response_format".into(), "json".into());
            own.insert("schema".into(), Value::Object(schema));
        }
        _ => return Err(format.fault("type", "must be text, json_object or json_schema")),
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: Value) -> Result<(Asked, bool), Error> {
        read(body.as_object().unwrap())
    }

    #[test]
    fn a_request_is_read_into_the_words_of_the_flow() {
        let (asked, with_usage) = of(json!({
            "model": "m", "stream": true, "stream_options": {"include_usage": true},
            "max_completion_tokens": 9, "stop": "END", "user": "u", "n": 1,
            "messages": [
                {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "assistant", "content": null, "tool_calls":
                    [{"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "c", "content": "2"},
            ],
            "tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}],
            "tool_choice": {"type": "function", "function": {"name": "add"}},
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
        }))
        .unwrap();
        assert!(asked.streaming);
        assert!(with_usage);
        let body = Value::Object(asked.body);
        assert_eq!(
            body["messages"][0],
            json!({"role": "system", "content": "ab", "tool_calls": []})
        );
        assert_eq!(body["messages"][1]["tool_calls"][0]["name"], "add");
        assert_eq!(body["messages"][2]["tool_call_id"], "c");
        assert_eq!(
            (&body["max_tokens"], &body["stop"]),
            (&json!(9), &json!(["END"]))
        );
        assert_eq!(
            (&body["tool_choice"], &body["schema"]["type"]),
            (&json!("add"), &json!("object"))
        );
        assert_eq!(body["tools"][0]["name"], "add");
    }

    #[test]
    fn pictures_are_read_beside_the_text() {
        let (asked, _) = of(
            json!({"model": "m", "messages": [{"role": "user", "content": [
                {"type": "text", "text": "What is "},
                {"type": "image_url", "image_url": {"url": "https://h/a.png", "detail": "low"}},
                {"type": "text", "text": "this?"},
            ]}]}),
        )
        .unwrap();
        let turn = &asked.body["messages"][0];
        assert_eq!(
            (&turn["content"], &turn["images"]),
            (&json!("What is this?"), &json!(["https://h/a.png"]))
        );
    }

    #[test]
    fn parts_and_tools_are_read_in_the_forms_of_other_apis() {
        let (asked, _) = of(json!({
            "model": "m", "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": "data:a"}]},
                {"role": "assistant", "content": [
                    {"type": "reasoning", "reasoning": "hm"}, {"type": "thinking", "thinking": []},
                    {"type": "refusal", "refusal": "no"}], "tool_calls":
                    [{"id": "c", "type": "function", "function": {"name": "see", "arguments": {"a": 1}}}]},
                {"role": "tool", "tool_call_id": "c", "content": [
                    {"type": "text", "text": "seen"}, {"type": "image_url", "image_url": {"url": "data:b"}}]},
            ],
            "tools": [
                {"type": "function", "name": "see", "parameters": {"type": "object"}},
                {"type": "custom", "custom": {"name": "apply_patch"}},
            ],
        }))
        .unwrap();
        let turns = &asked.body["messages"];
        assert_eq!(turns[0]["images"], json!(["data:a"]));
        assert_eq!(
            (
                &turns[1]["content"],
                &turns[1]["tool_calls"][0]["arguments"]
            ),
            (&json!("no"), &json!("{\"a\":1}"))
        );
        assert_eq!(
            turns[2],
            json!({"role": "tool", "content": "seen", "tool_call_id": "c"})
        );
        assert_eq!(turns[3]["images"], json!(["data:b"]));
        let tools = asked.body["tools"].as_array().unwrap();
        assert_eq!((tools.len(), &tools[0]["name"]), (1, &json!("see")));
    }

    /// A request as Cursor sends it to the address of an own server.
    #[test]
    fn items_of_a_response_in_the_place_of_messages_are_the_chat() {
        let (asked, _) = of(json!({
            "model": "m", "stream": true, "user": "u", "reasoning": {"effort": "medium"},
            "input": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": [{"type": "input_text", "text": "q"}]},
                {"type": "function_call", "call_id": "c", "name": "see", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "2"}],
            "tools": [{"type": "function", "name": "see", "parameters": {"type": "object"}}],
        }))
        .unwrap();
        let turns = asked.body["messages"].as_array().unwrap();
        let roles: Vec<&Value> = turns.iter().map(|turn| &turn["role"]).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool"]);
        assert_eq!(turns[1]["content"], "q");
    }

    #[test]
    fn a_choice_of_tools_is_read_in_each_form() {
        let choice = |choice: Value| {
            let body = json!({"tool_choice": choice});
            super::choice(&Fields::new(body.as_object().unwrap())).unwrap()
        };
        for (asked, read) in [
            (json!("any"), "required"),
            (json!({"type": "auto"}), "auto"),
            (json!({"type": "any"}), "required"),
            (json!({"type": "tool", "name": "add"}), "add"),
            (json!({"type": "function", "name": "add"}), "add"),
            (json!({"function": {"name": "add"}}), "add"),
        ] {
            assert_eq!(choice(asked).as_deref(), Some(read));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let ask = |more: Value| {
            let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
            for (key, value) in more.as_object().unwrap() {
                body[key] = value.clone();
            }
            of(body).unwrap_err().message
        };
        for (more, told) in [
            (json!({"model": null}), "model: is required"),
            (
                json!({"messages": []}),
                "messages: must have at least one message",
            ),
            (
                json!({"messages": [{"role": "x"}]}),
                "messages[0].role: must be system, developer, user, assistant or tool",
            ),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}),
                "messages[0].content[0].type: must be text or image_url: other parts are not read here",
            ),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
                "messages[0].content[0].image_url: is required",
            ),
            (
                json!({"messages": [{"role": "system", "content": [
                    {"type": "image_url", "image_url": {"url": "data:a"}}]}]}),
                "messages[0].content: must be text: only the user and tools send pictures",
            ),
            (json!({"tools": [{}]}), "tools[0].function: is required"),
            (
                json!({"tool_choice": "some"}),
                "tool_choice: must be auto, none, required or a function",
            ),
            (
                json!({"response_format": {"type": "xml"}}),
                "response_format.type: must be text, json_object or json_schema",
            ),
            (json!({"stream": "yes"}), "stream: must be true or false"),
            (json!({"n": 2}), "n: must be 1: one answer is given"),
        ] {
            assert_eq!(ask(more), told);
        }
    }
}
