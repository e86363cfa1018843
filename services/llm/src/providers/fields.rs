//! Members of a chat request that some servers of a dialect, or some models, refuse, and the request without them.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::{Value, json};

/// Models that are remembered; of any further one it is found out anew with each question.
const MODELS: usize = 64;

/// Such a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Field {
    /// The wish for token counts at the end of a stream.
    StreamOptions,
    /// The longest answer, under the name that newer models do not know any more.
    MaxTokens,
    /// Turns of the role `system`.
    System,
    /// Turns that say nothing but call tools: they have no content.
    NoContent,
    /// Ids of calls that do not have the form of the server's own.
    CallIds,
    /// What the user says right behind the result of a tool.
    BehindResults,
    /// Turns of the assistant without what the model thought before.
    Unthought,
    /// The choice of tools that is the usual one.
    ToolChoice,
    /// A schema; JSON of any shape may be known.
    Schema,
    /// JSON of any shape.
    Json,
    /// The share of the likeliest words.
    TopP,
    /// The temperature.
    Temperature,
}

impl Field {
    /// In the order in which they are left out. Of two that do not go together the temperature stays.
    pub(super) const ALL: [Self; 12] = [
        Self::StreamOptions,
        Self::MaxTokens,
        Self::System,
        Self::NoContent,
        Self::CallIds,
        Self::BehindResults,
        Self::Unthought,
        Self::ToolChoice,
        Self::Schema,
        Self::Json,
        Self::TopP,
        Self::Temperature,
    ];

    /// What a refusal because of it says, in lower case.
    pub(super) fn words(self) -> &'static [&'static str] {
        const FORMAT: &[&str] = &[
            "response_format",
            "json_schema",
            "json_object",
            "json_validate_failed",
            "json mode",
            "structured output",
        ];
        match self {
            Self::StreamOptions => &["stream_options", "include_usage"],
            Self::MaxTokens => &["max_completion_tokens"],
            Self::System => &[
                "system role",
                "'system' role",
                "does not support 'system'",
                "system messages are not supported",
                "system message is not supported",
                "developer instruction is not enabled",
                "only user and assistant roles",
                "roles must alternate",
            ],
            Self::NoContent => &["'content' field must be a string"],
            // The templates of Mistral's models say so, too.
            Self::CallIds => &["tool call id was", "tool call ids should be alphanumeric"],
            Self::BehindResults => &["role 'user' after role 'tool'"],
            Self::Unthought => &["reasoning_content"],
            Self::ToolChoice => &["tool_choice", "tool choice"],
            Self::Schema | Self::Json => FORMAT,
            Self::TopP => &["top_p"],
            Self::Temperature => &["temperature"],
        }
    }

    /// Whether a request has it.
    pub(super) fn is_in(self, body: &Value) -> bool {
        let format = |kind: &str| body["response_format"]["type"] == kind;
        match self {
            Self::StreamOptions => body.get("stream_options").is_some(),
            Self::MaxTokens => body.get("max_tokens").is_some(),
            Self::System => turns(body).is_some_and(|turns| turns.iter().any(is_system)),
            Self::NoContent => turns(body).is_some_and(|turns| turns.iter().any(has_none)),
            Self::CallIds => ids(body).any(|id| !is_of_nine(id)),
            Self::BehindResults => is_behind_result(body),
            Self::Unthought => turns(body).is_some_and(|turns| turns.iter().any(is_unthought)),
            Self::ToolChoice => body["tool_choice"] == "auto",
            Self::Schema => format("json_schema"),
            Self::Json => format("json_object"),
            Self::TopP => has(body, "top_p"),
            Self::Temperature => has(body, "temperature"),
        }
    }

    /// Leaves it out of a request, or says the same in another way.
    pub(super) fn leave(self, body: &mut Value) {
        if !self.is_in(body) {
            return;
        }
        match self {
            Self::StreamOptions => drop(take(body, "stream_options")),
            Self::MaxTokens => {
                if let Some(most) = take(body, "max_tokens") {
                    body["max_completion_tokens"] = most;
                }
            }
            Self::System => tell_user(body),
            Self::NoContent => say_nothing(body),
            Self::CallIds => name_calls(body),
            Self::BehindResults => part_results(body),
            Self::Unthought => think_nothing(body),
            Self::ToolChoice => drop(take(body, "tool_choice")),
            Self::Schema => body["response_format"] = json!({"type": "json_object"}),
            Self::Json => drop(take(body, "response_format")),
            Self::TopP => drop(take(body, "top_p")),
            Self::Temperature => drop(take(body, "temperature")),
        }
    }
}

/// Whether a request has a member, at its top or among options.
fn has(body: &Value, name: &str) -> bool {
    body.get(name).or(body["options"].get(name)).is_some()
}

fn take(body: &mut Value, name: &str) -> Option<Value> {
    if let Some(options) = body.get_mut("options").and_then(Value::as_object_mut) {
        options.shift_remove(name);
    }
    body.as_object_mut()?.shift_remove(name)
}

fn turns(body: &Value) -> Option<&Vec<Value>> {
    body.get("messages").and_then(Value::as_array)
}

fn is_system(turn: &Value) -> bool {
    turn["role"] == "system"
}

fn has_none(turn: &Value) -> bool {
    turn.get("content").is_some_and(Value::is_null)
}

/// No content is an empty text.
fn say_nothing(body: &mut Value) {
    let turns = body.get_mut("messages").and_then(Value::as_array_mut);
    for turn in turns.into_iter().flatten().filter(|turn| has_none(turn)) {
        turn["content"] = "".into();
    }
}

/// How long Mistral's ids of calls are.
const NINE: usize = 9;

/// Whether the id of a call has the form that Mistral gives it.
fn is_of_nine(id: &str) -> bool {
    id.len() == NINE && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The ids of calls and of their results.
fn ids(body: &Value) -> impl Iterator<Item = &str> {
    let turns = turns(body).into_iter().flatten();
    turns.flat_map(|turn| {
        let calls = turn["tool_calls"].as_array();
        let calls = calls.into_iter().flatten().map(|call| &call["id"]);
        calls
            .chain([&turn["tool_call_id"]])
            .filter_map(Value::as_str)
    })
}

/// Names each call by its number, and its result alike. Ids that have the form stay.
fn name_calls(body: &mut Value) {
    let mut named: HashMap<String, usize> = HashMap::new();
    let mut rename = |id: &mut Value| {
        let Some(own) = id.as_str().filter(|id| !is_of_nine(id)) else {
            return;
        };
        let next = named.len();
        let at = *named.entry(own.to_owned()).or_insert(next);
        *id = format!("call{:05}", at % 100_000).into();
    };
    let turns = body.get_mut("messages").and_then(Value::as_array_mut);
    for turn in turns.into_iter().flatten() {
        let calls = turn.get_mut("tool_calls").and_then(Value::as_array_mut);
        let calls = calls.into_iter().flatten();
        calls
            .filter_map(|call| call.get_mut("id"))
            .for_each(&mut rename);
        turn.get_mut("tool_call_id")
            .into_iter()
            .for_each(&mut rename);
    }
}

/// Whether the user says something right behind the result of a tool.
fn follows(before: &Value, turn: &Value) -> bool {
    before["role"] == "tool" && turn["role"] == "user"
}

fn is_behind_result(body: &Value) -> bool {
    let mut pairs = turns(body).into_iter().flat_map(|turns| turns.windows(2));
    pairs.any(|pair| matches!(pair, [before, turn] if follows(before, turn)))
}

/// The assistant says a word between results and the user.
fn part_results(body: &mut Value) {
    let Some(turns) = body.get_mut("messages").and_then(Value::as_array_mut) else {
        return;
    };
    let mut parted: Vec<Value> = Vec::with_capacity(turns.len());
    for turn in turns.drain(..) {
        if parted.last().is_some_and(|before| follows(before, &turn)) {
            parted.push(json!({"role": "assistant", "content": "OK."}));
        }
        parted.push(turn);
    }
    *turns = parted;
}

/// What a model thought, as its server names it.
const THOUGHT: &str = "reasoning_content";

fn is_unthought(turn: &Value) -> bool {
    turn["role"] == "assistant" && turn.get(THOUGHT).is_none()
}

/// What was thought is not kept here: a blank stands for it, as servers refuse an empty text.
fn think_nothing(body: &mut Value) {
    let turns = body.get_mut("messages").and_then(Value::as_array_mut);
    let turns = turns.into_iter().flatten();
    for turn in turns.filter(|turn| is_unthought(turn)) {
        turn[THOUGHT] = " ".into();
    }
}

/// Instructions are the beginning of what the user says.
fn tell_user(body: &mut Value) {
    let Some(turns) = body.get_mut("messages").and_then(Value::as_array_mut) else {
        return;
    };
    let told: Vec<&str> = turns
        .iter()
        .filter(|turn| is_system(turn))
        .filter_map(|turn| turn["content"].as_str())
        .collect();
    let told = told.join("\n\n");
    turns.retain(|turn| !is_system(turn));
    let user = turns.iter_mut().find(|turn| turn["role"] == "user");
    match user.map(|turn| &mut turn["content"]) {
        Some(Value::String(text)) => *text = format!("{told}\n\n{text}"),
        Some(Value::Array(parts)) => parts.insert(0, json!({"type": "text", "text": told})),
        _ => turns.insert(0, json!({"role": "user", "content": told})),
    }
}

/// What the models of a server refuse: few enough to be looked through.
#[derive(Default)]
pub(super) struct Refused(Mutex<Vec<(String, Vec<Field>)>>);

impl Refused {
    /// By a model.
    pub(super) fn by(&self, model: &str) -> Vec<Field> {
        let models = self.0.lock();
        let known = models.iter().find(|(name, _)| name == model);
        known.map(|(_, fields)| fields.clone()).unwrap_or_default()
    }

    /// A model answers without them.
    pub(super) fn learn(&self, model: &str, learnt: &[Field]) {
        if learnt.is_empty() {
            return;
        }
        let mut models = self.0.lock();
        let has_room = models.len() < MODELS;
        match models.iter_mut().find(|(name, _)| name == model) {
            Some((_, fields)) => {
                for field in learnt {
                    if !fields.contains(field) {
                        fields.push(*field);
                    }
                }
            }
            None if has_room => models.push((model.to_owned(), learnt.to_vec())),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_the_same_without_the_member() {
        let whole = json!({
            "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1"}]},
                {"role": "tool", "tool_call_id": "call_1", "content": "2"}, {"role": "user", "content": "on"}],
            "stream_options": {"include_usage": true}, "max_tokens": 9, "tool_choice": "auto", "top_p": 0.5,
            "temperature": 0.3, "response_format": {"type": "json_schema", "json_schema": {}},
            "options": {"temperature": 0.3, "num_ctx": 1},
        });
        let mut body = whole.clone();
        Field::Schema.leave(&mut body);
        assert_eq!(body["response_format"], json!({"type": "json_object"}));
        for field in Field::ALL {
            assert_eq!(field.is_in(&body), field != Field::Schema, "{field:?}");
            field.leave(&mut body);
            assert!(!field.is_in(&body), "{field:?}");
        }
        let messages = json!([{"role": "user", "content": "be brief\n\nhello"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "call00000"}], "reasoning_content": " "},
            {"role": "tool", "tool_call_id": "call00000", "content": "2"},
            {"role": "assistant", "content": "OK.", "reasoning_content": " "},
            {"role": "user", "content": "on"}]);
        let left =
            json!({"messages": messages, "options": {"num_ctx": 1}, "max_completion_tokens": 9});
        assert_eq!(body, left);
        // A choice that is a wish stays.
        let mut wish = json!({"tool_choice": "required"});
        Field::ToolChoice.leave(&mut wish);
        assert_eq!(wish, json!({"tool_choice": "required"}));
        let picture = json!([{"type": "image_url"}]);
        let mut body = json!({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": picture}]});
        Field::System.leave(&mut body);
        assert_eq!(body["messages"][0]["content"][0]["text"], "s");
    }

    /// A chat that began with another model.
    #[test]
    fn calls_are_named_alike_in_their_results_and_keep_names_of_the_form() {
        let call = |id: &str| json!({"role": "assistant", "tool_calls": [{"id": id}, {"id": "aB3xK9mP2"}]});
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id});
        let mut body = json!({"messages": [call("call_x"), result("call_x"), result("aB3xK9mP2"),
            call("toolu_y"), result("toolu_y"), {"role": "user"}]});
        assert!(Field::CallIds.is_in(&body));
        Field::CallIds.leave(&mut body);
        let named: Vec<&str> = ids(&body).collect();
        let (first, second, own) = ("call00000", "call00001", "aB3xK9mP2");
        assert_eq!(named, [first, own, first, own, second, own, second]);
        assert!(!Field::CallIds.is_in(&body));
    }

    #[test]
    fn few_models_are_remembered() {
        let refused = Refused::default();
        for at in 0..MODELS + 3 {
            refused.learn(&at.to_string(), &[Field::TopP]);
        }
        refused.learn("0", &[Field::TopP, Field::Json]);
        assert_eq!(refused.by("0"), [Field::TopP, Field::Json]);
        assert!(refused.by(&MODELS.to_string()).is_empty());
    }
}
