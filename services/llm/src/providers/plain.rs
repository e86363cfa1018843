//! The event of an OpenAI stream as nearly all are: a piece of text and nothing else that counts. It is read as it stands; one in
//! which anything else is said is read from a tree, which takes some thirty allocations.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// A member that is not there, or null.
#[derive(Default, Deserialize)]
struct Absent;

/// What is named here and has no meaning may be anything. Whatever is not named makes it no plain event.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "serde reads them to refuse any other")]
struct Event<'a> {
    #[serde(default)]
    id: IgnoredAny,
    #[serde(default)]
    object: IgnoredAny,
    #[serde(default)]
    created: IgnoredAny,
    #[serde(default)]
    system_fingerprint: IgnoredAny,
    #[serde(default)]
    service_tier: IgnoredAny,
    #[serde(default)]
    usage: Absent,
    #[serde(borrow, default)]
    model: Cow<'a, str>,
    #[serde(borrow)]
    choices: [Choice<'a>; 1],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "serde reads them to refuse any other")]
struct Choice<'a> {
    #[serde(default)]
    index: IgnoredAny,
    #[serde(default)]
    logprobs: IgnoredAny,
    #[serde(default)]
    finish_reason: Absent,
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "serde reads them to refuse any other")]
struct Delta<'a> {
    #[serde(default)]
    role: IgnoredAny,
    #[serde(default)]
    refusal: IgnoredAny,
    #[serde(default)]
    reasoning: Absent,
    #[serde(default)]
    reasoning_content: Absent,
    #[serde(default)]
    tool_calls: Absent,
    #[serde(default)]
    function_call: Absent,
    #[serde(borrow)]
    content: Cow<'a, str>,
}

/// The model, which may be empty, and the text of a plain event, which is not; `None`: it is to be read from a tree.
pub(super) fn piece(data: &str) -> Option<(Cow<'_, str>, String)> {
    let event: Event<'_> = serde_json::from_slice(data.as_bytes()).ok()?;
    let [choice] = event.choices;
    let text = choice.delta.content;
    let is_text = !text.is_empty();
    is_text.then(|| (event.model, text.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_text_alone_is_read_as_it_stands() {
        for (data, model, text) in [
            (r#"{"choices":[{"delta":{"content":"a"}}]}"#, "", "a"),
            (
                r#"{"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":null,
                    "choices":[{"index":0,"delta":{"content":"\"b\n"},"finish_reason":null,"logprobs":null}],"usage":null}"#,
                "m",
                "\"b\n",
            ),
            (
                r#" {"choices": [{"delta": {"role": "assistant", "refusal": null, "tool_calls": null,
                    "content": "\ud83d\ude00"}}]} "#,
                "",
                "😀",
            ),
        ] {
            let read = piece(data).map(|(model, text)| (model.into_owned(), text));
            assert_eq!(read, Some((model.to_owned(), text.to_owned())), "{data}");
        }
    }

    #[test]
    fn what_says_more_is_read_from_a_tree() {
        for data in [
            "",
            "[]",
            "{}",
            r#"{"choices":[]}"#,
            r#"{"choices":[{"delta":{}}]}"#,
            r#"{"choices":[{"delta":{"content":""}}]}"#,
            r#"{"choices":[{"delta":{"content":null}}]}"#,
            r#"{"choices":[{"delta":{"content":["a"]}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"delta":{"content":"a","reasoning":"r"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","thinking":"r"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","tool_calls":[]}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"message":{}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"error":{"code":1}}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"model":null}"#,
            r#"{"choices":[{"delta":{"content":"a"}}]} more"#,
        ] {
            assert_eq!(piece(data), None, "{data}");
        }
    }
}
