//! What a client of messages asks, as `chat-completion` reads it. Thoughts that it sends back are left out: no model here
//! reads them again.

use serde_json::{Map, Value, json};
use tg_schemas::Error;

use crate::engine::compat::asking::{self, add_most, add_sampling, begun, model};
use crate::engine::compat::dialect::Asked;
use crate::engine::translate::fields::fault;
use crate::engine::translate::{Body, Fields};

/// Reads a request, and whether its answer has thoughts. Fields that are not known mean nothing.
///
/// # Errors
/// `bad-request`, with the field that is missing or wrong, or that asks for what is not done here.
pub(super) fn read(body: &Body) -> Result<(Asked, bool), Error> {
    let fields = Fields::new(body);
    let model = model(&fields)?;
    let streaming = fields.flag("stream")?;
    let mut own = begun(&model, turns(&fields)?, tools(&fields)?, streaming);
    if fields
        .opt_list("mcp_servers")?
        .is_some_and(|all| !all.is_empty())
    {
        let why = "must be empty: servers of tools are configured in the workspace";
        return Err(fault("mcp_servers", why));
    }
    add_sampling(&fields, &mut own);
    add_most(&fields, &["max_tokens"], &mut own);
    let mut stop = fields.texts("stop_sequences")?;
    stop.retain(|text| !text.is_empty());
    if !stop.is_empty() {
        own.insert("stop".into(), stop.into());
    }
    if let Some(choice) = choice(&fields)? {
        own.insert("tool_choice".into(), choice.into());
    }
    own.extend(format(&fields)?);
    let thinking = fields.object("thinking")?;
    let thinking = thinking.map(|own| own.text("type")).transpose()?;
    let shown = thinking.is_some_and(|kind| kind == "enabled" || kind == "adaptive");
    let asked = Asked {
        body: own,
        model,
        streaming,
    };
    Ok((asked, shown))
}

/// Tokens that a picture counts as: the most that the API counts for one.
const PICTURE_TOKENS: usize = 1_600;

/// About how many tokens a request has, by its texts and the number of its pictures.
///
/// # Errors
/// As [`read`].
pub(crate) fn tokens(body: &Body) -> Result<(String, usize), Error> {
    let (asked, _) = read(body)?;
    let read = ["messages", "tools"].iter();
    let read = read.filter_map(|key| asked.body.get(*key));
    let (characters, pictures) = read.map(counts).fold((0, 0), added);
    let tokens = characters.div_ceil(4) + pictures * PICTURE_TOKENS;
    Ok((asked.model, tokens))
}

/// Characters of all texts in a value, and the number of its pictures. The data of a picture does not count as text.
fn counts(value: &Value) -> (usize, usize) {
    match value {
        Value::String(text) => (text.chars().count(), 0),
        Value::Array(items) => items.iter().map(counts).fold((0, 0), added),
        Value::Object(map) => {
            let each = map.iter().map(|(key, value)| match (key.as_str(), value) {
                ("images", Value::Array(images)) => (0, images.len()),
                _ => counts(value),
            });
            each.fold((0, 0), added)
        }
        _ => (0, 0),
    }
}

fn added(all: (usize, usize), one: (usize, usize)) -> (usize, usize) {
    (all.0 + one.0, all.1 + one.1)
}

/// The chat, with the system's text first.
fn turns(fields: &Fields<'_>) -> Result<Vec<Value>, Error> {
    let messages = fields.objects("messages")?;
    if messages.is_empty() {
        return Err(fault("messages", "must have at least one message"));
    }
    let mut turns = Vec::with_capacity(messages.len() + 1);
    let system = match fields.value("system") {
        Some(Value::Array(_)) => {
            let blocks = fields.objects("system")?;
            let texts: Result<Vec<String>, Error> = blocks.iter().map(text_block).collect();
            texts?.join("\n\n")
        }
        _ => fields.text("system")?,
    };
    if !system.is_empty() {
        turns.push(json!({"role": "system", "content": system}));
    }
    for message in &messages {
        add_turns(message, &mut turns)?;
    }
    Ok(turns)
}

/// A block that must be a text.
fn text_block(block: &Fields<'_>) -> Result<String, Error> {
    match block.text("type")?.as_str() {
        "text" => block.text("text"),
        _ => Err(block.fault("type", "must be text: other blocks are not read here")),
    }
}

/// The turns that a message is: each result of a tool is one of its own, before what the user says.
fn add_turns(message: &Fields<'_>, turns: &mut Vec<Value>) -> Result<(), Error> {
    let role = message.required_text("role")?;
    if !["user", "assistant", "system"].contains(&role.as_str()) {
        return Err(message.fault("role", "must be user, assistant or system"));
    }
    if !matches!(message.value("content"), Some(Value::Array(_))) {
        let content = message.text("content")?;
        turns.push(json!({"role": role, "content": content}));
        return Ok(());
    }
    let (mut text, mut images, mut calls) = (String::new(), Vec::new(), Vec::new());
    let mut results = 0;
    for block in message.objects("content")? {
        match (block.text("type")?.as_str(), role.as_str()) {
            ("text", _) => text += &block.text("text")?,
            ("document", "user") => text += &document(&block)?,
            ("image", "user") => images.push(picture(&block)?),
            // Claude Code notes with the last where another model answered.
            ("thinking" | "redacted_thinking" | "fallback", "assistant") => {}
            // What a provider did by its own tools, and what Claude Code reports of tools that came and went.
            (kind, "assistant")
                if kind.ends_with("_tool_use") || kind.ends_with("_tool_result") => {}
            ("tool_addition" | "tool_removal", "user" | "system") => {}
            ("search_result", "user") => text += &found(&block)?,
            ("tool_use", "assistant") => calls.push(call(&block)?),
            ("tool_result", "user") => {
                results += 1;
                turns.push(result(&block)?);
            }
            (_, role) => {
                let known = match role {
                    "user" => {
                        "must be text, image, tool_result or document: other blocks are not read here"
                    }
                    "assistant" => {
                        "must be text, tool_use or thinking: other blocks are not read here"
                    }
                    _ => "must be text: other blocks are not read here",
                };
                return Err(block.fault("type", known));
            }
        }
    }
    let is_turn = results == 0 && role != "system";
    if !text.is_empty() || !images.is_empty() || !calls.is_empty() || is_turn {
        let mut turn = json!({"role": role, "content": text, "tool_calls": calls});
        if !images.is_empty() {
            turn["images"] = images.into();
        }
        turns.push(turn);
    }
    Ok(())
}

/// The address of a picture: where it is, or its data.
fn picture(block: &Fields<'_>) -> Result<String, Error> {
    let source = block.object("source")?;
    let source = source.ok_or_else(|| block.fault("source", "is required"))?;
    match source.text("type")?.as_str() {
        "url" => source.required_text("url"),
        "base64" => {
            let kind = source.required_text("media_type")?;
            let data = source.required_text("data")?;
            Ok(format!("data:{kind};base64,{data}"))
        }
        _ => Err(source.fault("type", "must be base64 or url: files are not kept here")),
    }
}

/// The text of a document that comes as a text.
fn document(block: &Fields<'_>) -> Result<String, Error> {
    let source = block.object("source")?;
    let source = source.ok_or_else(|| block.fault("source", "is required"))?;
    match source.text("type")?.as_str() {
        "text" => source.required_text("data"),
        _ => Err(source.fault("type", "must be text: other documents are not read here")),
    }
}

fn call(block: &Fields<'_>) -> Result<Value, Error> {
    let input = block.map("input")?.cloned().unwrap_or_default();
    Ok(json!({
        "id": block.text("id")?,
        "name": block.required_text("name")?,
        "arguments": Value::Object(input).to_string(),
    }))
}

/// What a search found, under its title.
fn found(block: &Fields<'_>) -> Result<String, Error> {
    let texts: Result<Vec<String>, Error> =
        block.objects("content")?.iter().map(text_block).collect();
    let (title, source) = (block.text("title")?, block.text("source")?);
    Ok(format!("{title} ({source})\n{}\n", texts?.concat()))
}

/// The turn of a result. Its pictures are shown by the user behind it.
fn result(block: &Fields<'_>) -> Result<Value, Error> {
    let (mut text, mut images) = (String::new(), Vec::new());
    if matches!(block.value("content"), Some(Value::Array(_))) {
        for part in block.objects("content")? {
            match part.text("type")?.as_str() {
                "image" => images.push(picture(&part)?.into()),
                "document" => text += &document(&part)?,
                "search_result" => text += &found(&part)?,
                "tool_reference" => text += &format!("tool {}\n", part.text("tool_name")?),
                _ => text += &text_block(&part)?,
            }
        }
    } else {
        text = block.text("content")?;
    }
    if block.flag("is_error")? {
        text.insert_str(0, "error: ");
    }
    let call = block.required_text("tool_use_id")?;
    Ok(asking::result(text, images, Some(call)))
}

/// The tools that the model is offered. Tools that the provider would run are left out beside others, and refused alone.
fn tools(fields: &Fields<'_>) -> Result<Vec<Value>, Error> {
    let named = fields.objects("tools")?;
    let has_custom = named.iter().any(is_custom);
    let offered = named.iter().filter(|tool| !has_custom || is_custom(tool));
    offered.map(tool).collect()
}

fn is_custom(tool: &Fields<'_>) -> bool {
    tool.value("type").is_none_or(|kind| kind == "custom")
}

fn tool(tool: &Fields<'_>) -> Result<Value, Error> {
    if !is_custom(tool) {
        let why = "must be custom: tools of providers are not run here";
        return Err(tool.fault("type", why));
    }
    asking::declared(tool, "input_schema")
}

/// Which tool is to be called: a word, or the name of one.
fn choice(fields: &Fields<'_>) -> Result<Option<String>, Error> {
    let Some(choice) = fields.object("tool_choice")? else {
        return Ok(None);
    };
    match choice.text("type")?.as_str() {
        word @ ("auto" | "none") => Ok(Some(word.to_owned())),
        "any" => Ok(Some("required".to_owned())),
        "tool" => choice.required_text("name").map(Some),
        _ => Err(choice.fault("type", "must be auto, any, none or tool")),
    }
}

/// The shape of the answer.
fn format(fields: &Fields<'_>) -> Result<Map<String, Value>, Error> {
    let mut own = Map::new();
    let within = fields.object("output_config")?;
    let within = within.map(|config| config.object("format")).transpose()?;
    let format = match within.flatten() {
        Some(format) => Some(format),
        None => fields.object("output_format")?,
    };
    let Some(format) = format else {
        return Ok(own);
    };
    if format.text("type")? != "json_schema" {
        return Err(format.fault("type", "must be json_schema"));
    }
    let schema = format.map("schema")?.cloned();
    let schema = schema.ok_or_else(|| format.fault("schema", "is required"))?;
    own.insert("response_format".into(), "json".into());
    own.insert("schema".into(), Value::Object(schema));
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: Value) -> Result<(Asked, bool), Error> {
        read(body.as_object().unwrap())
    }

    #[test]
    fn blocks_become_turns_and_results_of_tools_come_before_what_is_said() {
        let (asked, _) = of(json!({
            "model": "m", "max_tokens": 9, "stream": true, "stop_sequences": ["", "END"],
            "system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}],
            "metadata": {"user_id": "u"}, "tool_choice": {"type": "any"}, "temperature": 0,
            "tools": [{"name": "add", "input_schema": {"type": "object"}}],
            "messages": [
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "I add"},
                    {"type": "tool_use", "id": "c", "name": "add", "input": {"a": 1}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "2"}]},
                    {"type": "text", "text": "go on"}]},
            ],
        }))
        .unwrap();
        let body = Value::Object(asked.body);
        assert_eq!(
            body["messages"],
            json!([
                {"role": "system", "content": "a\n\nb"},
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": "I add", "tool_calls":
                    [{"id": "c", "name": "add", "arguments": "{\"a\":1}"}]},
                {"role": "tool", "content": "2", "tool_call_id": "c"},
                {"role": "user", "content": "go on", "tool_calls": []},
            ])
        );
        assert_eq!(
            (&body["max_tokens"], &body["stop"], &body["tool_choice"]),
            (&json!(9), &json!(["END"]), &json!("required"))
        );
        assert_eq!(body["tools"][0]["parameters"]["type"], "object");
    }

    /// A message with a picture in base64 and one at an address.
    fn with_pictures() -> Value {
        json!({"model": "m", "messages": [{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            {"type": "text", "text": "What?"},
            {"type": "image", "source": {"type": "url", "url": "https://h/a.png"}},
        ]}]})
    }

    #[test]
    fn pictures_are_read_beside_the_text() {
        let (asked, _) = of(with_pictures()).unwrap();
        let turn = &asked.body["messages"][0];
        let images = json!(["data:image/png;base64,aGk=", "https://h/a.png"]);
        assert_eq!(
            (&turn["content"], &turn["images"]),
            (&json!("What?"), &images)
        );
    }

    /// A chat as Claude Code sends it back: what its provider's tools did, pictures that a tool returned, and tools that came later.
    #[test]
    fn blocks_that_claude_code_sends_back_are_read_or_left_out() {
        let source = json!({"type": "base64", "media_type": "image/png", "data": "aGk="});
        let (asked, _) = of(json!({
            "model": "m",
            "tools": [
                {"name": "Read", "input_schema": {"type": "object"}},
                {"type": "custom", "name": "Edit", "input_schema": {"type": "object"}},
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
            ],
            "messages": [
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": [
                    {"type": "fallback", "from": {"model": "a"}, "to": {"model": "m"}},
                    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                    {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
                    {"type": "text", "text": "I look"},
                    {"type": "tool_use", "id": "a", "name": "Read", "input": {}},
                    {"type": "tool_use", "id": "b", "name": "ToolSearch", "input": {}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image", "source": source}]},
                    {"type": "tool_result", "tool_use_id": "b", "content":
                        [{"type": "tool_reference", "tool_name": "WebFetch"}]}]},
                {"role": "system", "content": [
                    {"type": "text", "text": "more tools"}, {"type": "tool_addition", "tool": {"name": "x"}}]},
            ],
        }))
        .unwrap();
        let turns = asked.body["messages"].as_array().unwrap();
        let roles: Vec<&Value> = turns.iter().map(|turn| &turn["role"]).collect();
        assert_eq!(
            roles,
            ["user", "assistant", "tool", "tool", "user", "system"]
        );
        assert_eq!(turns[1]["content"], "I look");
        assert_eq!(turns[3]["content"], "tool WebFetch\n");
        assert_eq!(turns[4]["images"], json!(["data:image/png;base64,aGk="]));
        assert_eq!(turns[5]["content"], "more tools");
        assert_eq!(asked.body["tools"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn what_is_left_out_and_what_is_empty_is_fine() {
        let (asked, thoughts) = of(json!({
            "model": "m", "tools": [], "system": null, "stop_sequences": [],
            "messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}],
            "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
            "thinking": {"type": "enabled", "budget_tokens": 1024},
        }))
        .unwrap();
        assert!(!asked.body.contains_key("max_tokens"));
        assert_eq!(asked.body["schema"]["type"], "object");
        assert!(thoughts);
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
            (json!({"model": ""}), "model: is required"),
            (
                json!({"messages": []}),
                "messages: must have at least one message",
            ),
            (
                json!({"messages": [{"role": "tool"}]}),
                "messages[0].role: must be user, assistant or system",
            ),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "video"}]}]}),
                "messages[0].content[0].type: must be text, image, tool_result or document: other blocks are not read here",
            ),
            (
                json!({"messages": [{"role": "user", "content": [{"type": "image"}]}]}),
                "messages[0].content[0].source: is required",
            ),
            (
                json!({"messages": [{"role": "user", "content": [
                    {"type": "image", "source": {"type": "file", "file_id": "f"}}]}]}),
                "messages[0].content[0].source.type: must be base64 or url: files are not kept here",
            ),
            (
                json!({"messages": [{"role": "assistant", "content": [{"type": "image"}]}]}),
                "messages[0].content[0].type: must be text, tool_use or thinking: other blocks are not read here",
            ),
            (
                json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
                "tools[0].type: must be custom: tools of providers are not run here",
            ),
            (
                json!({"tool_choice": {"type": "some"}}),
                "tool_choice.type: must be auto, any, none or tool",
            ),
            (
                json!({"mcp_servers": [{"type": "url"}]}),
                "mcp_servers: must be empty: servers of tools are configured in the workspace",
            ),
            (json!({"system": 3}), "system: must be a string"),
        ] {
            assert_eq!(ask(more), told);
        }
    }

    #[test]
    fn tokens_are_counted_by_the_characters_of_all_texts() {
        let body = json!({"model": "m", "system": "12345678", "messages": [{"role": "user", "content": "12345678"}]});
        let (model, tokens) = tokens(body.as_object().unwrap()).unwrap();
        // The roles count as well.
        assert_eq!((model.as_str(), tokens), ("m", 7));
        let (_, tokens) = super::tokens(with_pictures().as_object().unwrap()).unwrap();
        // The role and five characters, and not the data of the pictures.
        assert_eq!(tokens, 3 + 2 * PICTURE_TOKENS);
    }
}
