//! What a client of completions asks, as `chat-completion` reads it: the prompt is the one message of the user. `text-completion`
//! cannot be asked for a model.

use serde_json::{Value, json};
use tg_schemas::Error;

use crate::engine::compat::asking::{add_most, add_sampling, add_stop, begun, model, with_usage};
use crate::engine::compat::dialect::Asked;
use crate::engine::translate::fields::fault;
use crate::engine::translate::{Body, Fields};

/// Reads a request, and whether its answer says what it used. Fields that are not known mean nothing.
///
/// # Errors
/// `bad-request`, with the field that is missing or wrong, or that asks for what is not done here.
pub(super) fn read(body: &Body) -> Result<(Asked, bool), Error> {
    let fields = Fields::new(body);
    let model = model(&fields)?;
    let prompt = prompt(&fields)?;
    for key in ["n", "best_of"] {
        if fields.integer_or(key, 1)? != 1 {
            return Err(fault(key, "must be 1: one answer is given"));
        }
    }
    if !fields.text("suffix")?.is_empty() {
        let why = "must be left out: models here write behind a text, and not into it";
        return Err(fault("suffix", why));
    }
    if fields.flag("echo")? {
        let why = "must be false: the answer is what the model wrote";
        return Err(fault("echo", why));
    }
    let streaming = fields.flag("stream")?;
    let turn = json!({"role": "user", "content": prompt});
    let mut own = begun(&model, vec![turn], Vec::new(), streaming);
    add_sampling(&fields, &mut own);
    add_most(&fields, &["max_tokens"], &mut own);
    add_stop(&fields, &mut own)?;
    let asked = Asked {
        body: own,
        model,
        streaming,
    };
    Ok((asked, with_usage(&fields)?))
}

/// The prompt: a text, or a list of one.
fn prompt(fields: &Fields<'_>) -> Result<String, Error> {
    let wrong = || {
        fault(
            "prompt",
            "must be one text: lists and tokens are not read here",
        )
    };
    match fields.value("prompt") {
        None => Err(fault("prompt", "is required")),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(texts)) => match &texts[..] {
            [Value::String(text)] => Ok(text.clone()),
            _ => Err(wrong()),
        },
        Some(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(more: Value) -> Result<(Asked, bool), Error> {
        let mut body = json!({"model": "m", "prompt": "Once"});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        read(body.as_object().unwrap())
    }

    #[test]
    fn a_prompt_is_the_one_message_of_a_chat() {
        let (asked, with_usage) = of(json!({"max_tokens": 9, "stop": ["."], "stream": true,
            "stream_options": {"include_usage": true}, "best_of": 1, "suffix": null, "echo": false}))
        .unwrap();
        assert!(asked.streaming && with_usage);
        assert_eq!(
            Value::Object(asked.body),
            json!({"model": "m", "tools": [], "streaming": true, "max_tokens": 9, "stop": ["."],
                "messages": [{"role": "user", "content": "Once"}]})
        );
        let (asked, _) = of(json!({"prompt": ["Once"]})).unwrap();
        assert_eq!(asked.body["messages"][0]["content"], "Once");
    }

    #[test]
    fn what_is_wrong_or_not_done_here_is_named() {
        let lists = "prompt: must be one text: lists and tokens are not read here";
        for (more, told) in [
            (json!({"prompt": null}), "prompt: is required"),
            (json!({"prompt": ["a", "b"]}), lists),
            (json!({"prompt": [1, 2]}), lists),
            (json!({"n": 2}), "n: must be 1: one answer is given"),
            (
                json!({"best_of": 3}),
                "best_of: must be 1: one answer is given",
            ),
            (
                json!({"suffix": "end"}),
                "suffix: must be left out: models here write behind a text, and not into it",
            ),
            (
                json!({"echo": true}),
                "echo: must be false: the answer is what the model wrote",
            ),
        ] {
            assert_eq!(of(more).unwrap_err().message, told);
        }
    }
}
