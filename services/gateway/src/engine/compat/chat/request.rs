//! What a client of chat completions asks, as `chat-completion` reads it.

use serde_json::{Value, json};
use tg_schemas::Error;

use super::functions;
use crate::engine::compat::asking::{
    self, add_format, add_most, add_sampling, add_stop, allowed, arguments, begun, content, model,
    result, with_usage,
};
use crate::engine::compat::dialect::Asked;
use crate::engine::compat::responses::request::turns as turns_of_items;
use crate::engine::translate::fields::fault;
use crate::engine::translate::{Body, Fields};

/// What a request says of the form of its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// A stream says in a piece of its own what it used.
    pub(super) with_usage: bool,
    /// The client knows functions and no tools.
    pub(super) functions: bool,
}

/// Reads a request, and the form of its answer. Fields that are not known mean nothing.
///
/// # Errors
/// `bad-request`, with the field that is missing or wrong, or that asks for what is not done here.
pub(super) fn read(body: &Body) -> Result<(Asked, Form), Error> {
    let fields = Fields::new(body);
    let model = model(&fields)?;
    let messages = turns(&fields)?;
    if fields.integer_or("n", 1)? != 1 {
        return Err(fault("n", "must be 1: one answer is given"));
    }
    let streaming = fields.flag("stream")?;
    let mut tools = tools(&fields)?;
    let functions = tools.is_empty() && fields.value("functions").is_some();
    let choice = match functions {
        true => {
            tools = offered_functions(&fields)?;
            functions::choice(&fields)?
        }
        false => choice(&fields, &mut tools)?,
    };
    let form = Form {
        with_usage: with_usage(&fields)?,
        functions,
    };
    let mut own = begun(&model, messages, tools, streaming);
    add_sampling(&fields, &mut own);
    add_most(&fields, &["max_completion_tokens", "max_tokens"], &mut own);
    add_stop(&fields, &mut own)?;
    if let Some(choice) = choice {
        own.insert("tool_choice".into(), choice.into());
    }
    if let Some(format) = fields.object("response_format")? {
        add_format(&format, "json_schema.schema", &mut own)?;
    }
    let asked = Asked {
        body: own,
        model,
        streaming,
    };
    Ok((asked, form))
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
    let mut calls = functions::Calls::default();
    let turns = messages.iter().map(|message| -> Result<Value, Error> {
        let mut turn = turn(message)?;
        calls.join(message, &mut turn)?;
        Ok(turn)
    });
    turns.collect()
}

/// Why other parts are refused.
const OTHER_PARTS: &str = "must be text or image_url: other parts are not read here";

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
    let (text, images) = content(message, "content", OTHER_PARTS)?;
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
    match tool.object("function")? {
        Some(function) => declared(&function),
        None if tool.value("name").is_some() => declared(tool),
        None => Err(tool.fault("function", "is required")),
    }
}

/// The functions of a client that knows no tools.
fn offered_functions(fields: &Fields<'_>) -> Result<Vec<Value>, Error> {
    let functions = fields.objects("functions")?;
    functions.iter().map(declared).collect()
}

fn declared(function: &Fields<'_>) -> Result<Value, Error> {
    asking::declared(function, "parameters")
}

/// Which tool is to be called: a word, or the name of one. It may allow some of the tools only.
fn choice(fields: &Fields<'_>, tools: &mut Vec<Value>) -> Result<Option<String>, Error> {
    // As servers of Mistral have it.
    if fields
        .value("tool_choice")
        .is_some_and(|word| word == "any")
    {
        return Ok(Some("required".to_owned()));
    }
    asking::choice(fields, |choice| {
        if choice.text("type")? == "allowed_tools" {
            let below = choice.object("allowed_tools")?;
            return allowed(below.as_ref().unwrap_or(choice), tools);
        }
        let missing = || fault("tool_choice.function", "is required");
        match (choice.text("type")?.as_str(), choice.object("function")?) {
            // As a word, in the form of other APIs.
            (word @ ("auto" | "none" | "required"), None) => Ok(word.to_owned()),
            ("any", None) => Ok("required".to_owned()),
            (_, Some(function)) => function.required_text("name"),
            ("function" | "tool", None) => choice.opt_text("name")?.ok_or_else(missing),
            _ => Err(missing()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: Value) -> Result<(Asked, Form), Error> {
        read(body.as_object().unwrap())
    }

    #[test]
    fn a_request_is_read_into_the_words_of_the_flow() {
        let (asked, form) = of(json!({
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
        assert!(form.with_usage && !form.functions);
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
                {"role": "user", "content": [{"type": "image_url", "image_url": "data:a"},
                    {"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:c"}]},
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
        assert_eq!(
            (&turns[0]["content"], &turns[0]["images"]),
            (&json!("see"), &json!(["data:a", "data:c"]))
        );
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

    /// As a client sends them back whose server gave them none.
    #[test]
    fn calls_without_ids_are_answered_in_their_order() {
        let call = |id: Value, name: &str| {
            let function = json!({"name": name, "arguments": "{}"});
            json!({"id": id, "type": "function", "function": function})
        };
        let (asked, _) = of(json!({"model": "m", "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "tool_calls": [call(Value::Null, "add"), call(json!(""), "see")]},
            {"role": "tool", "tool_call_id": null, "content": "1"},
            {"role": "tool", "content": "2"},
        ]}))
        .unwrap();
        let turns = &asked.body["messages"];
        for (at, id) in ["fn0000001", "fn0000002"].into_iter().enumerate() {
            assert_eq!(turns[1]["tool_calls"][at]["id"], id);
            assert_eq!(turns[2 + at]["tool_call_id"], id);
        }
    }

    #[test]
    fn a_choice_of_tools_is_read_in_each_form() {
        let choice = |choice: Value| {
            let body = json!({"tool_choice": choice});
            let mut tools = vec![json!({"name": "add"}), json!({"name": "see"})];
            let chosen = super::choice(&Fields::new(body.as_object().unwrap()), &mut tools);
            chosen.unwrap()
        };
        for (asked, read) in [
            (json!("any"), "required"),
            (json!({"type": "auto"}), "auto"),
            (json!({"type": "any"}), "required"),
            (json!({"type": "tool", "name": "add"}), "add"),
            (json!({"type": "function", "name": "add"}), "add"),
            (json!({"function": {"name": "add"}}), "add"),
            (
                json!({"type": "allowed_tools", "allowed_tools": {"mode": "required",
                    "tools": [{"type": "function", "function": {"name": "add"}}]}}),
                "required",
            ),
        ] {
            assert_eq!(choice(asked).as_deref(), Some(read));
        }
    }

    /// A chat of a client that was written before there were tools.
    #[test]
    fn functions_are_tools_and_a_result_is_that_of_the_call_before_it() {
        let (asked, form) = of(json!({
            "model": "m", "function_call": {"name": "add"},
            "functions": [{"name": "add", "description": "adds", "parameters": {"type": "object"}}],
            "messages": [
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": null, "function_call": {"name": "add", "arguments": "{"}},
                {"role": "function", "name": "add", "content": "2"},
                {"role": "assistant", "content": null, "function_call": {"name": "add", "arguments": "{}"}},
                {"role": "function", "name": "add", "content": "4"},
            ],
        }))
        .unwrap();
        assert!(form.functions);
        let body = Value::Object(asked.body);
        assert_eq!(
            (&body["tools"][0]["name"], &body["tool_choice"]),
            (&json!("add"), &json!("add"))
        );
        let turns = &body["messages"];
        let call = &turns[1]["tool_calls"][0];
        assert_eq!(
            (&call["name"], &call["arguments"]),
            (&json!("add"), &json!("{\"cut_off\":\"{\"}"))
        );
        assert_eq!(turns[2]["tool_call_id"], call["id"]);
        assert_eq!(turns[4]["tool_call_id"], turns[3]["tool_calls"][0]["id"]);
        assert_ne!(turns[2]["tool_call_id"], turns[4]["tool_call_id"]);
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
            (json!({"functions": [{}]}), "functions[0].name: is required"),
            (
                json!({"tools": [{"name": "add"}], "tool_choice": {"type": "allowed_tools",
                    "allowed_tools": {"tools": []}}}),
                "tool_choice.allowed_tools.tools: must name a function of tools",
            ),
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
