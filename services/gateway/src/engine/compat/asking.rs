//! What requests of all APIs have in common, as `chat-completion` reads it.

use std::collections::BTreeSet;

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tg_schemas::Error;

use crate::engine::translate::fields::fault;
use crate::engine::translate::{Body, Fields};

/// The model, which every API requires.
pub(super) fn model(fields: &Fields<'_>) -> Result<String, Error> {
    let model = fields.required_text("model")?;
    match model.is_empty() {
        true => Err(fault("model", "is required")),
        false => Ok(model),
    }
}

/// The beginning of a question.
pub(super) fn begun(model: &str, messages: Vec<Value>, tools: Vec<Value>, streaming: bool) -> Body {
    let mut own = Body::new();
    own.insert("model".into(), model.into());
    own.insert("messages".into(), shown_by_user(messages).into());
    own.insert("tools".into(), tools.into());
    own.insert("streaming".into(), streaming.into());
    own
}

/// What a result says that is a picture alone.
const A_PICTURE: &str = "The result is the picture that follows.";

/// The turn of a result, with the addresses of its pictures.
pub(super) fn result(text: String, images: Vec<Value>, call: Option<String>) -> Value {
    let text = match text.is_empty() && !images.is_empty() {
        true => A_PICTURE.to_owned(),
        false => text,
    };
    let mut turn = json!({"role": "tool", "content": text});
    if let Some(call) = call {
        turn["tool_call_id"] = call.into();
    }
    if !images.is_empty() {
        turn["images"] = images.into();
    }
    turn
}

/// The same turns, in which the user shows the pictures of results, behind all results that follow each other: models read
/// pictures of the user only.
fn shown_by_user(turns: Vec<Value>) -> Vec<Value> {
    let images_of = |turn: &mut Value| match turn.as_object_mut()?.remove("images") {
        Some(Value::Array(images)) => Some(images),
        _ => None,
    };
    let of_user = |images: Vec<Value>| json!({"role": "user", "content": "", "images": images});
    let mut shown = Vec::with_capacity(turns.len());
    let mut images: Vec<Value> = Vec::new();
    for mut turn in turns {
        if turn["role"] == "tool" {
            images.extend(images_of(&mut turn).into_iter().flatten());
        } else if !images.is_empty() {
            let mut all = std::mem::take(&mut images);
            if turn["role"] == "user" {
                all.extend(images_of(&mut turn).into_iter().flatten());
                turn["images"] = all.into();
            } else {
                shown.push(of_user(all));
            }
        }
        shown.push(turn);
    }
    if !images.is_empty() {
        shown.push(of_user(images));
    }
    shown
}

/// The text of a message or a result, itself or in parts, and the addresses of its pictures. Parts are read by their names in chats and
/// in responses alike, as clients move from the one to the other. What a model thought is left out: no model here reads it again. How
/// closely a picture is to be looked at is left to the model. `others`: why other parts are refused.
pub(super) fn content(
    item: &Fields<'_>,
    key: &str,
    others: &str,
) -> Result<(String, Vec<Value>), Error> {
    if !matches!(item.value(key), Some(Value::Array(_))) {
        return Ok((item.text(key)?, Vec::new()));
    }
    let (mut text, mut images) = (String::new(), Vec::new());
    for part in item.objects(key)? {
        match part.text("type")?.as_str() {
            "text" | "input_text" | "output_text" => text += &part.text("text")?,
            "refusal" => text += &part.text("refusal")?,
            "thinking" | "redacted_thinking" | "reasoning" => {}
            "image_url" | "input_image" => images.push(picture(&part)?.into()),
            _ => return Err(part.fault("type", others)),
        }
    }
    Ok((text, images))
}

/// The address of a picture: below a key, or itself.
fn picture(part: &Fields<'_>) -> Result<String, Error> {
    if let Some(Value::String(address)) = part.value("image_url") {
        return Ok(address.clone());
    }
    let image = part.object("image_url")?;
    let image = image.ok_or_else(|| part.fault("image_url", "is required"))?;
    image.required_text("url")
}

/// The shape of the answer, as an object says it. Its schema is below a key of its own, or beside the type, as servers of other projects
/// have it. `field`: what a schema that is missing is called.
pub(super) fn add_format(format: &Fields<'_>, field: &str, own: &mut Body) -> Result<(), Error> {
    let needs_schema = match format.text("type")?.as_str() {
        "text" | "" => return Ok(()),
        "json_object" => false,
        "json_schema" => true,
        _ => return Err(format.fault("type", "must be text, json_object or json_schema")),
    };
    let below = format.object("json_schema")?;
    let below = below.map(|told| told.map("schema")).transpose()?.flatten();
    let schema = match below {
        Some(schema) => Some(schema),
        None => format.map("schema")?,
    };
    if schema.is_none() && needs_schema {
        return Err(format.fault(field, "is required"));
    }
    own.insert("response_format".into(), "json".into());
    if let Some(schema) = schema {
        own.insert("schema".into(), Value::Object(schema.clone()));
    }
    Ok(())
}

/// The arguments of an earlier call as a text. Some clients keep them as an object.
pub(super) fn arguments(call: &Fields<'_>, key: &str) -> Result<String, Error> {
    match call.value(key) {
        Some(Value::Object(arguments)) => Ok(Value::Object(arguments.clone()).to_string()),
        _ => call.text(key).map(as_json),
    }
}

/// The key of arguments that are not JSON.
const CUT_OFF: &str = "cut_off";

/// The same arguments as JSON. A client keeps them as the model wrote them, also where the answer ended within them. Templates of
/// some models read them, and their servers refuse the whole chat where they cannot.
fn as_json(arguments: String) -> String {
    let bare = arguments.trim().is_empty();
    if bare || serde_json::from_slice::<IgnoredAny>(arguments.as_bytes()).is_ok() {
        return arguments;
    }
    json!({CUT_OFF: arguments}).to_string()
}

/// A tool as the model is offered it. Its client names the schema of what it takes by a word of its API.
pub(super) fn declared(tool: &Fields<'_>, schema: &str) -> Result<Value, Error> {
    let mut own = json!({
        "name": tool.required_text("name")?,
        "description": tool.text("description")?,
    });
    if let Some(parameters) = tool.map(schema)? {
        own["parameters"] = Value::Object(parameters.clone());
    }
    Ok(own)
}

/// Which tool is to be called: a word, or what an object says, which each API has in its own form.
pub(super) fn choice(
    fields: &Fields<'_>,
    named: impl FnOnce(&Fields<'_>) -> Result<String, Error>,
) -> Result<Option<String>, Error> {
    match (fields.value("tool_choice"), fields.object("tool_choice")) {
        (None, _) => Ok(None),
        (Some(Value::String(word)), _) if ["auto", "none", "required"].contains(&word.as_str()) => {
            Ok(Some(word.clone()))
        }
        (_, Ok(Some(choice))) => named(&choice).map(Some),
        _ => Err(no_choice()),
    }
}

/// What is said of a choice that is none.
pub(super) fn no_choice() -> Error {
    fault("tool_choice", "must be auto, none, required or a function")
}

/// Keeps of the offered tools those that a choice allows, and says how the model chooses among them.
///
/// # Errors
/// `bad-request`: the mode is another one, or the choice names no function that is offered.
pub(super) fn allowed(choice: &Fields<'_>, offered: &mut Vec<Value>) -> Result<String, Error> {
    let mode = choice.name_or("mode", "auto")?;
    if !["auto", "required"].contains(&mode.as_str()) {
        return Err(choice.fault("mode", "must be auto or required"));
    }
    let mut names = BTreeSet::new();
    for tool in choice.objects("tools")? {
        let function = tool.object("function")?.unwrap_or(tool);
        // Tools of a provider have no name, and are offered to no model here.
        names.extend(function.opt_text("name")?);
    }
    offered.retain(|tool| {
        let name = tool["name"].as_str();
        name.is_some_and(|name| names.contains(name))
    });
    match offered.is_empty() {
        true => Err(choice.fault("tools", "must name a function of tools")),
        false => Ok(mode),
    }
}

/// What ends the answer: a text, or several. Providers refuse empty ones and empty lists.
pub(super) fn add_stop(fields: &Fields<'_>, own: &mut Body) -> Result<(), Error> {
    let mut stop = match fields.value("stop") {
        Some(Value::String(one)) => vec![one.clone()],
        _ => fields.texts("stop")?,
    };
    stop.retain(|text| !text.is_empty());
    if !stop.is_empty() {
        own.insert("stop".into(), stop.into());
    }
    Ok(())
}

/// Whether a stream says in a piece of its own what it used.
pub(super) fn with_usage(fields: &Fields<'_>) -> Result<bool, Error> {
    let options = fields.object("stream_options")?;
    let usage = options.map(|own| own.flag("include_usage")).transpose()?;
    Ok(usage.unwrap_or(false))
}

/// How the model chooses its words, as the request says it.
pub(super) fn add_sampling(fields: &Fields<'_>, own: &mut Body) {
    for key in ["temperature", "top_p"] {
        if let Some(value) = fields.value(key) {
            own.insert(key.into(), value.clone());
        }
    }
}

/// Most tokens of the answer, under the first of the names that the API has for it. -1 is none, as local servers have it.
pub(super) fn add_most(fields: &Fields<'_>, names: &[&str], own: &mut Body) {
    let most = names.iter().find_map(|name| fields.value(name));
    if let Some(most) = most.filter(|most| most.as_i64() != Some(-1)) {
        own.insert("max_tokens".into(), most.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(turns: Value) -> Value {
        shown_by_user(turns.as_array().cloned().unwrap()).into()
    }

    #[test]
    fn pictures_of_results_are_shown_by_the_user_behind_the_last_result() {
        let called = json!({"role": "assistant", "content": "", "tool_calls": []});
        let of = |call: &str| result(String::new(), vec![json!(call)], Some(call.to_owned()));
        let plain =
            |call: &str| json!({"role": "tool", "content": A_PICTURE, "tool_call_id": call});
        let user = |images: Value| json!({"role": "user", "content": "", "images": images});
        assert_eq!(
            shown(json!([called, of("a"), of("b")])),
            json!([called, plain("a"), plain("b"), user(json!(["a", "b"]))])
        );
        assert_eq!(
            shown(json!([of("a"), called, of("b")])),
            json!([
                plain("a"),
                user(json!(["a"])),
                called,
                plain("b"),
                user(json!(["b"]))
            ])
        );
        let said = json!({"role": "user", "content": "q", "images": ["c"]});
        let all = json!({"role": "user", "content": "q", "images": ["a", "c"]});
        assert_eq!(shown(json!([of("a"), said])), json!([plain("a"), all]));
    }

    #[test]
    fn arguments_that_are_cut_off_become_json() {
        let read = |arguments: Value| {
            let body = json!({"arguments": arguments});
            arguments_of(&body)
        };
        for same in ["{\"a\": [1]}", "{}", ""] {
            assert_eq!(read(json!(same)), same);
        }
        assert_eq!(read(json!({"a": 1})), "{\"a\":1}");
        let cut = read(json!("{\"path\": \"a"));
        let cut: Value = serde_json::from_slice(cut.as_bytes()).unwrap();
        assert_eq!(cut, json!({"cut_off": "{\"path\": \"a"}));
    }

    fn arguments_of(body: &Value) -> String {
        arguments(&Fields::new(body.as_object().unwrap()), "arguments").unwrap()
    }

    #[test]
    fn a_choice_keeps_the_tools_that_it_allows() {
        let of = |choice: Value| {
            let mut offered = vec![json!({"name": "add"}), json!({"name": "see"})];
            let mode = allowed(&Fields::new(choice.as_object().unwrap()), &mut offered);
            mode.map(|mode| (mode, offered))
                .map_err(|error| error.message)
        };
        let see = vec![json!({"name": "see"})];
        let flat = json!({"mode": "required", "tools": [
            {"type": "function", "name": "see"}, {"type": "image_generation"}]});
        assert_eq!(of(flat), Ok(("required".to_owned(), see.clone())));
        let below = json!({"tools": [{"type": "function", "function": {"name": "see"}}]});
        assert_eq!(of(below), Ok(("auto".to_owned(), see)));
        for (choice, told) in [
            (json!({"mode": "none"}), "mode: must be auto or required"),
            (json!({"tools": []}), "tools: must name a function of tools"),
            (
                json!({"tools": [{"name": "other"}]}),
                "tools: must name a function of tools",
            ),
        ] {
            assert_eq!(of(choice), Err(told.to_owned()));
        }
    }

    #[test]
    fn empty_ends_are_none() {
        let stop = |body: Value| {
            let mut own = Body::new();
            add_stop(&Fields::new(body.as_object().unwrap()), &mut own).unwrap();
            own.remove("stop")
        };
        for none in [
            json!({}),
            json!({"stop": null}),
            json!({"stop": ""}),
            json!({"stop": [""]}),
        ] {
            assert_eq!(stop(none), None);
        }
        assert_eq!(stop(json!({"stop": ["", "END"]})), Some(json!(["END"])));
    }

    #[test]
    fn a_schema_stands_below_its_key_or_beside_the_type() {
        let of = |format: Value| {
            let mut own = Body::new();
            let read = add_format(
                &Fields::new(format.as_object().unwrap()),
                "schema",
                &mut own,
            );
            read.map(|()| own.remove("schema"))
                .map_err(|error| error.message)
        };
        let schema = json!({"type": "object"});
        for format in [
            json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}),
            json!({"type": "json_schema", "name": "n", "schema": schema}),
            json!({"type": "json_object", "schema": schema}),
        ] {
            assert_eq!(of(format), Ok(Some(schema.clone())));
        }
        assert_eq!(of(json!({"type": "json_object"})), Ok(None));
        let missing = of(json!({"type": "json_schema", "json_schema": {}}));
        assert_eq!(missing, Err("schema: is required".to_owned()));
    }

    #[test]
    fn a_limit_of_minus_one_is_none() {
        let most = |body: Value| {
            let mut own = Body::new();
            let names = ["max_completion_tokens", "max_tokens"];
            add_most(&Fields::new(body.as_object().unwrap()), &names, &mut own);
            own.remove("max_tokens")
        };
        assert_eq!(most(json!({"max_tokens": -1})), None);
        assert_eq!(most(json!({"max_tokens": 7})), Some(json!(7)));
        let both = json!({"max_tokens": 7, "max_completion_tokens": 9});
        assert_eq!(most(both), Some(json!(9)));
        // What is wrong is named by the service.
        assert_eq!(most(json!({"max_tokens": 0})), Some(json!(0)));
    }
}
