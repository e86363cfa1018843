//! What a client of responses asks, as `chat-completion` reads it, and where its response is to be kept.

use serde_json::{Value, json};
use tg_schemas::Error;

use super::custom;
use super::kept::Wish;
use super::namespaces::{self, is_run_by_client};
use crate::engine::compat::asking::{
    self, add_format, add_most, add_sampling, add_stop, allowed, arguments, begun, content, model,
    result,
};
use crate::engine::compat::dialect::Asked;
use crate::engine::translate::fields::fault;
use crate::engine::translate::{Body, Fields};

/// What a response repeats of its request.
const REPEATED: [&str; 9] = [
    "instructions",
    "max_output_tokens",
    "metadata",
    "parallel_tool_calls",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_p",
];
/// Why nobody else's message has pictures.
const ONLY_USERS: &str = "must be text: only the user and tools send pictures";
/// Items of an earlier answer that say nothing to a model here.
const LEFT_OUT: [&str; 9] = [
    "reasoning",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_call",
    "mcp_approval_request",
    "mcp_approval_response",
];
/// Why other parts are refused.
const OTHER_PARTS: &str =
    "must be input_text, input_image or output_text: other parts are not read here";
/// Why no request can name a template.
const NO_TEMPLATES: &str = "must be null: templates are not kept here; send their text in input";

/// Reads a request, what a response repeats of it, and where it is to be kept. Fields that are not known mean nothing.
///
/// # Errors
/// `bad-request`, with the field that is missing or wrong, or that asks for what is not done here.
pub(super) fn read(body: &Body) -> Result<(Asked, Body, Wish), Error> {
    let fields = Fields::new(body);
    if fields.value("prompt").is_some() {
        return Err(fault("prompt", NO_TEMPLATES));
    }
    let wish = Wish::read(&fields)?;
    if fields.flag("background")? {
        let why = "must be false: a response is answered while its client waits";
        return Err(fault("background", why));
    }
    let model = model(&fields)?;
    let streaming = fields.flag("stream")?;
    let mut tools = tools(&fields)?;
    let choice = choice(&fields, &mut tools)?;
    let mut own = begun(&model, turns(&fields)?, tools, streaming);
    add_sampling(&fields, &mut own);
    // The other names are those of chats.
    let most = ["max_output_tokens", "max_completion_tokens", "max_tokens"];
    add_most(&fields, &most, &mut own);
    add_stop(&fields, &mut own)?;
    if let Some(choice) = choice {
        own.insert("tool_choice".into(), choice.into());
    }
    add_shape(&fields, &mut own)?;
    let repeated = REPEATED.iter().filter_map(|key| {
        let value = fields.value(key)?;
        let value = match *key {
            "tools" => offered(value),
            _ => value.clone(),
        };
        Some(((*key).to_owned(), value))
    });
    let repeated = repeated.collect();
    let asked = Asked {
        body: own,
        model,
        streaming,
    };
    Ok((asked, repeated, wish))
}

/// The chat, with the instructions first.
///
/// # Errors
/// `bad-request`, with the item that is missing, wrong or not read here.
pub(crate) fn turns(fields: &Fields<'_>) -> Result<Vec<Value>, Error> {
    let mut turns = Vec::new();
    let instructions = fields.text("instructions")?;
    if !instructions.is_empty() {
        turns.push(json!({"role": "system", "content": instructions}));
    }
    match fields.value("input") {
        None => return Err(fault("input", "is required")),
        Some(Value::String(text)) => turns.push(json!({"role": "user", "content": text})),
        Some(Value::Array(items)) if items.is_empty() => {
            return Err(fault("input", "must have at least one item"));
        }
        Some(Value::Array(_)) => {
            for item in fields.objects("input")? {
                add_item(&item, &mut turns)?;
            }
        }
        Some(_) => return Err(fault("input", "must be a text or a list of items")),
    }
    Ok(turns)
}

/// Adds an item. Calls of tools belong to what the assistant said just before them. What a model thought, and what a provider did by
/// tools of its own, is left out: no model here reads it again. A tool that takes a text has that text as its argument `input`.
fn add_item(item: &Fields<'_>, turns: &mut Vec<Value>) -> Result<(), Error> {
    match item.name_or("type", "message")?.as_str() {
        "message" => turns.push(message(item)?),
        "function_call" => add_call(item, arguments(item, "arguments")?, turns)?,
        "custom_tool_call" => {
            add_call(item, custom::arguments(&item.text("input")?), turns)?;
        }
        "function_call_output" | "custom_tool_call_output" => {
            let (text, images) = content(item, "output", OTHER_PARTS)?;
            turns.push(result(text, images, Some(item.required_text("call_id")?)));
        }
        other if LEFT_OUT.contains(&other) => {}
        _ => {
            let why = "must be message, function_call, function_call_output or reasoning: other items are not read here";
            return Err(item.fault("type", why));
        }
    }
    Ok(())
}

fn add_call(item: &Fields<'_>, arguments: String, turns: &mut Vec<Value>) -> Result<(), Error> {
    let call = json!({
        "id": item.required_text("call_id")?,
        "name": namespaces::name_of(item)?,
        "arguments": arguments,
    });
    let said = turns.last_mut().filter(|turn| turn["role"] == "assistant");
    match said.and_then(|turn| turn["tool_calls"].as_array_mut()) {
        Some(calls) => calls.push(call),
        None => turns.push(json!({"role": "assistant", "content": "", "tool_calls": [call]})),
    }
    Ok(())
}

fn message(item: &Fields<'_>) -> Result<Value, Error> {
    let role = match item.required_text("role")?.as_str() {
        "developer" | "system" => "system",
        "user" => "user",
        "assistant" => "assistant",
        _ => {
            let why = "must be system, developer, user or assistant";
            return Err(item.fault("role", why));
        }
    };
    let (text, images) = content(item, "content", OTHER_PARTS)?;
    let mut turn = json!({"role": role, "content": text, "tool_calls": []});
    if !images.is_empty() {
        if role != "user" {
            return Err(item.fault("content", ONLY_USERS));
        }
        turn["images"] = images.into();
    }
    Ok(turn)
}

/// The tools that the model is offered. Codex names tools of a provider beside its own in each request: they are left out, and the
/// response shows which tools there are. Where no other is named they are refused.
fn tools(fields: &Fields<'_>) -> Result<Vec<Value>, Error> {
    let named = fields.objects("tools")?;
    let has_some = named.iter().any(is_offered);
    let mut offered = Vec::new();
    for one in named.iter().filter(|tool| !has_some || is_offered(tool)) {
        match is_group(one) {
            true => add_group(one, &mut offered)?,
            false => offered.push(tool(one)?),
        }
    }
    Ok(offered)
}

fn is_offered(tool: &Fields<'_>) -> bool {
    is_of_client(tool) || is_group(tool)
}

fn is_of_client(tool: &Fields<'_>) -> bool {
    tool.value("type").is_some_and(is_run_by_client)
}

fn is_group(tool: &Fields<'_>) -> bool {
    namespaces::is_group(tool.value("type"), tool.value("tools"))
}

/// Adds the tools of a group that the client runs, under its name.
fn add_group(group: &Fields<'_>, offered: &mut Vec<Value>) -> Result<(), Error> {
    let name = group.required_text("name")?;
    for member in group
        .objects("tools")?
        .iter()
        .filter(|one| is_of_client(one))
    {
        let mut own = tool(member)?;
        let known = namespaces::joined(&name, own["name"].as_str().unwrap_or_default());
        own["name"] = known.into();
        offered.push(own);
    }
    Ok(())
}

/// Of the tools of a request those that the model is offered.
fn offered(tools: &Value) -> Value {
    let named = tools.as_array().map_or(&[][..], Vec::as_slice);
    let own = named.iter().filter(|tool| {
        let kind = &tool["type"];
        is_run_by_client(kind) || namespaces::is_group(Some(kind), Some(&tool["tools"]))
    });
    own.map(flat).collect()
}

/// A tool as responses have it, from one as chats have it.
fn flat(tool: &Value) -> Value {
    let Some(function) = tool["function"].as_object() else {
        return tool.clone();
    };
    let mut flat = function.clone();
    flat.insert("type".into(), tool["type"].clone());
    Value::Object(flat)
}

fn tool(tool: &Fields<'_>) -> Result<Value, Error> {
    match tool.text("type")?.as_str() {
        "function" => {}
        custom::KIND => return custom::offered(tool),
        _ => {
            let why = "must be function or custom: tools of providers are not run here";
            return Err(tool.fault("type", why));
        }
    }
    // Below a key, as chats have it.
    let below = tool.object("function")?;
    asking::declared(below.as_ref().unwrap_or(tool), "parameters")
}

/// Which tool is to be called: a word, or the name of one. It may allow some of the tools only.
fn choice(fields: &Fields<'_>, tools: &mut Vec<Value>) -> Result<Option<String>, Error> {
    asking::choice(fields, |choice| match choice.text("type")?.as_str() {
        "function" | custom::KIND => {
            let below = choice.object("function")?;
            namespaces::name_of(below.as_ref().unwrap_or(choice))
        }
        "allowed_tools" => allowed(choice, tools),
        _ => Err(asking::no_choice()),
    })
}

/// Adds the shape of the answer.
fn add_shape(fields: &Fields<'_>, own: &mut Body) -> Result<(), Error> {
    let text = fields.object("text")?;
    let format = text.map(|text| text.object("format")).transpose()?;
    match format.flatten() {
        Some(format) => add_format(&format, "schema", own),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: Value) -> Result<(Asked, Body), Error> {
        let (asked, repeated, _) = read(body.as_object().unwrap())?;
        Ok((asked, repeated))
    }

    #[test]
    fn a_text_or_items_become_turns() {
        let (asked, _) = of(
            json!({"model": "m", "input": "q", "instructions": "be brief",
            "store": false, "include": [], "reasoning": {"effort": "low"}}),
        )
        .unwrap();
        assert_eq!(
            asked.body["messages"],
            json!([{"role": "system", "content": "be brief"}, {"role": "user", "content": "q"}])
        );
        let (asked, _) = of(json!({
            "model": "m", "max_output_tokens": 9, "tool_choice": {"type": "function", "name": "add"},
            "tools": [{"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": true}],
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
            "input": [
                {"role": "developer", "content": "d"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
                {"type": "reasoning", "id": "r", "summary": []},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I add"}]},
                {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}"},
                {"type": "function_call", "call_id": "d", "name": "add", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "2"},
            ],
        }))
        .unwrap();
        let body = Value::Object(asked.body);
        let roles: Vec<&str> = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|turn| turn["role"].as_str().unwrap())
            .collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool"]);
        assert_eq!(body["messages"][2]["tool_calls"][1]["id"], "d");
        assert_eq!(body["messages"][3]["tool_call_id"], "c");
        assert_eq!(
            (
                &body["max_tokens"],
                &body["tool_choice"],
                &body["schema"]["type"]
            ),
            (&json!(9), &json!("add"), &json!("object"))
        );
    }

    #[test]
    fn pictures_are_read_beside_the_text() {
        let (asked, _) = of(json!({"model": "m", "input": [{"role": "user", "content": [
            {"type": "input_text", "text": "What?"},
            {"type": "input_image", "image_url": "https://h/a.png", "detail": "auto"},
        ]}]}))
        .unwrap();
        let turn = &asked.body["messages"][0];
        assert_eq!(
            (&turn["content"], &turn["images"]),
            (&json!("What?"), &json!(["https://h/a.png"]))
        );
    }

    /// As clients send it that were written for chats.
    #[test]
    fn what_is_named_as_in_chats_is_read() {
        let add = json!({"name": "add", "parameters": {"type": "object"}});
        let (asked, repeated) = of(json!({
            "model": "m", "max_tokens": 9, "stop": "END",
            "tools": [{"type": "function", "function": add}],
            "tool_choice": {"type": "function", "function": {"name": "add"}},
            "input": [
                {"role": "user", "content": [
                    {"type": "text", "text": "q"}, {"type": "image_url", "image_url": {"url": "data:a"}}]},
                {"type": "mcp_call", "id": "m", "server_label": "s", "name": "n", "arguments": "{}", "output": "o"},
            ],
        }))
        .unwrap();
        let body = Value::Object(asked.body);
        assert_eq!(
            (&body["max_tokens"], &body["stop"], &body["tool_choice"]),
            (&json!(9), &json!(["END"]), &json!("add"))
        );
        assert_eq!(body["tools"][0]["name"], "add");
        assert_eq!(body["messages"].as_array().map(Vec::len), Some(1));
        assert_eq!(body["messages"][0]["images"], json!(["data:a"]));
        assert_eq!(
            repeated["tools"],
            json!([{"type": "function", "name": "add", "parameters": {"type": "object"}}])
        );
    }

    /// Items as Codex keeps them: of tools that take a text, of searches of the provider, and pictures that a tool returned.
    #[test]
    fn items_that_codex_sends_back_are_read_or_left_out() {
        let (asked, _) = of(json!({"model": "m", "input": [
            {"role": "user", "content": "q"},
            {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}},
            {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** Begin"},
            {"type": "function_call", "call_id": "d", "namespace": "app", "name": "view_image", "arguments": {"path": "a"}},
            {"type": "custom_tool_call_output", "call_id": "c", "output": "Done"},
            {"type": "function_call_output", "call_id": "d",
                "output": [{"type": "input_image", "image_url": "data:a"}]},
        ]}))
        .unwrap();
        let turns = asked.body["messages"].as_array().unwrap();
        let roles: Vec<&Value> = turns.iter().map(|turn| &turn["role"]).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "tool", "user"]);
        let calls = turns[1]["tool_calls"].as_array().unwrap();
        assert_eq!(calls[1]["name"], "app__view_image");
        let arguments: Vec<&Value> = calls.iter().map(|call| &call["arguments"]).collect();
        assert_eq!(arguments, [r#"{"input":"*** Begin"}"#, r#"{"path":"a"}"#]);
        assert_eq!(turns[4]["images"], json!(["data:a"]));
        assert!(turns[3].get("images").is_none());
    }

    /// A request as Codex sends it: what is not named in it means nothing.
    #[test]
    fn tools_of_a_provider_are_left_out_beside_those_of_the_client() {
        let shell = json!({"type": "function", "name": "shell", "strict": false, "parameters": {"type": "object"}});
        let patch = json!({"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}});
        let files = json!({"type": "namespace", "name": "mcp__files__", "tools": [
            {"type": "function", "name": "read", "parameters": {"type": "object"}}]});
        let (asked, repeated) = of(json!({
            "model": "m", "instructions": "You are a coding agent.", "store": false, "stream": true,
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]}],
            "tools": [
                shell,
                patch,
                {"type": "web_search", "external_web_access": false},
                {"type": "namespace", "name": "mcp", "tools": [{"type": "web_search"}]},
                files,
            ],
            "tool_choice": "auto", "parallel_tool_calls": true, "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "medium", "summary": "auto"}, "prompt_cache_key": "k", "client_metadata": {},
            "text": {"verbosity": "low"},
        }))
        .unwrap();
        let offered = asked.body["tools"].as_array().unwrap();
        let names: Vec<&Value> = offered.iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["shell", "apply_patch", "mcp__files__read"]);
        assert_eq!(repeated["tools"], json!([shell, patch, files]));
        assert!(asked.streaming);
    }

    #[test]
    fn a_choice_may_allow_some_of_the_tools() {
        let (asked, repeated) = of(json!({
            "model": "m", "input": "q",
            "tools": [{"type": "function", "name": "add"}, {"type": "function", "name": "see"}],
            "tool_choice": {"type": "allowed_tools", "mode": "required",
                "tools": [{"type": "function", "name": "see"}]},
        }))
        .unwrap();
        let offered = asked.body["tools"].as_array().unwrap();
        assert_eq!((offered.len(), &offered[0]["name"]), (1, &json!("see")));
        assert_eq!(asked.body["tool_choice"], "required");
        assert_eq!(repeated["tools"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn what_is_wrong_or_not_done_here_is_named() {
        let ask = |more: Value| {
            let mut body = json!({"model": "m", "input": "q"});
            for (key, value) in more.as_object().unwrap() {
                body[key] = value.clone();
            }
            of(body).unwrap_err().message
        };
        for (more, told) in [
            (json!({"model": null}), "model: is required"),
            (json!({"input": null}), "input: is required"),
            (json!({"input": []}), "input: must have at least one item"),
            (
                json!({"prompt": {"id": "p"}}),
                "prompt: must be null: templates are not kept here; send their text in input",
            ),
            (
                json!({"background": true}),
                "background: must be false: a response is answered while its client waits",
            ),
            (
                json!({"input": [{"type": "item_reference", "id": "x"}]}),
                "input[0].type: must be message, function_call, function_call_output or reasoning: other items are not read here",
            ),
            (
                json!({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}),
                "input[0].content[0].type: must be input_text, input_image or output_text: other parts are not read here",
            ),
            (
                json!({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}),
                "input[0].content[0].image_url: is required",
            ),
            (
                json!({"input": [{"role": "developer", "content": [{"type": "input_image", "image_url": "data:a"}]}]}),
                "input[0].content: must be text: only the user and tools send pictures",
            ),
            (
                json!({"tools": [{"type": "web_search"}]}),
                "tools[0].type: must be function or custom: tools of providers are not run here",
            ),
        ] {
            assert_eq!(ask(more), told);
        }
    }
}
