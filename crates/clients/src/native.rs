//! Tools that a model calls by the means of its API, where a prompt would have it write their calls. What it calls is passed on
//! in the form of the prompt, so that whoever hears the reply knows one form.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tg_mesh::Cx;
use tg_schemas::msg::{
    ChatCompletionRequest, ChatCompletionResponse, ChatTool, ChatToolCall, ChatTurn,
    PromptResponse, TextCompletionRequest,
};
use tg_schemas::processors::{shared, text_completion, text_completion_rag};
use tg_schemas::{Topic, limits};

use crate::flow_records;

/// What the model is sent beside the prompt.
const HOW: &str = "The tools are given to you by the API. Call them that way, several at once where none of them needs \
                   what another returns, and do not write `Action:` and `Args:`. What you write without calling a tool is \
                   your final answer.";
/// Labels of a reply in the form of the prompt, as they begin a line.
const LABELS: [&str; 6] = [
    "Thought",
    "Action",
    "Actions",
    "Final Answer",
    "Args",
    "Observation",
];

/// The chats of a flow's model, and the tools that it may call in them.
#[derive(Clone)]
pub(crate) struct Native {
    /// Where chats are answered.
    pub(crate) topic: Topic,
    /// Where the same model answers texts, and the parameters of who answers there.
    texts: Vec<(Topic, BTreeMap<String, String>)>,
    tools: Vec<ChatTool>,
}

impl Native {
    /// `None` where the flow has no model of ours.
    pub(crate) fn of_flow(cx: &Cx, tools: Vec<ChatTool>) -> Option<Self> {
        let of = |id: &str, request: &str| {
            let row = flow_records::processor(cx.config(), cx.workspace(), cx.flow(), id)?;
            let topic = Topic::parse(row.topics.get(request)?).ok()?;
            Some((topic, row.parameter_texts()))
        };
        let own = of(text_completion::PROCESSOR.id, text_completion::REQUEST.name)?;
        let rag = of(
            text_completion_rag::PROCESSOR.id,
            text_completion_rag::REQUEST.name,
        );
        Some(Self {
            topic: cx.topic(shared::CHAT_COMPLETION).ok()?,
            texts: std::iter::once(own).chain(rag).collect(),
            tools,
        })
    }

    /// The chat that a question to a model is. `None`: there are no tools, or another model would answer.
    pub(crate) fn chat(
        &self,
        model: &Topic,
        asked: &TextCompletionRequest,
    ) -> Option<ChatCompletionRequest> {
        let settings = asked.settings.clone().unwrap_or_default();
        if self.tools.is_empty() || settings.service.is_some() {
            return None;
        }
        let (_, of_flow) = self.texts.iter().find(|(topic, _)| topic == model)?;
        let stated = of_flow.get("model").cloned().unwrap_or_default();
        let warmth = of_flow
            .get("temperature")
            .and_then(|text| text.trim().parse().ok());
        let turn = |role: &str, content: String| ChatTurn {
            role: role.to_owned(),
            content,
            ..ChatTurn::default()
        };
        let system = match asked.system.trim() {
            "" => HOW.to_owned(),
            own => format!("{own}\n\n{HOW}"),
        };
        Some(ChatCompletionRequest {
            operation: "completion".to_owned(),
            model: [settings.model, stated]
                .into_iter()
                .find(|model| !model.is_empty()),
            models: settings.models,
            messages: vec![turn("system", system), turn("user", asked.prompt.clone())],
            tools: self.tools.clone(),
            temperature: settings.temperature.or(warmth),
            max_tokens: settings.max_tokens,
            streaming: asked.streaming,
            ..ChatCompletionRequest::default()
        })
    }
}

/// A reply as far as it came. Whether a text is the answer or the thought before a call is known at its end.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    text: String,
}

impl Reply {
    /// A part of a chat as a part of a text; `None`: it says nothing yet.
    pub(crate) fn part(&mut self, part: ChatCompletionResponse) -> Option<PromptResponse> {
        for piece in [&part.delta, &part.content] {
            // A longer one is none that any model of ours passes on.
            if self.text.len() + piece.len() <= limits::MODEL_TEXT {
                self.text.push_str(piece);
            }
        }
        let is_over = part.end_of_stream;
        if !is_over && part.thinking.is_empty() && part.error.is_none() {
            return None;
        }
        let text = match is_over && part.error.is_none() {
            true => written(&self.text, &part.tool_calls),
            false => String::new(),
        };
        let used = part.usage;
        Some(PromptResponse {
            error: part.error,
            text,
            thinking: part.thinking,
            end_of_stream: is_over,
            // None was named where there is none.
            in_token: used.map(|used| used.input).filter(|input| *input > 0),
            out_token: used.map(|used| used.output),
            cache_read: used.map(|used| used.cache_read),
            cache_write: used.map(|used| used.cache_write),
            model: part.model,
            backend: part.backend,
            attempts: part.attempts,
            cost: part.cost,
            ..PromptResponse::default()
        })
    }
}

/// The label that a line begins with.
fn label(line: &str) -> Option<&'static str> {
    let (head, _) = line.split_once(':')?;
    let head = head.trim_matches(|c: char| c.is_whitespace() || matches!(c, '#' | '*'));
    let mut labels = LABELS.into_iter();
    labels.find(|label| label.eq_ignore_ascii_case(head))
}

/// A reply in the form of the prompt. One that has that form already stays as it is.
fn written(text: &str, calls: &[ChatToolCall]) -> String {
    let said = text.trim();
    let labels: Vec<_> = said.lines().filter_map(label).collect();
    let is_call = labels.contains(&"Action") && labels.contains(&"Args");
    let has_form = is_call
        || labels.contains(&"Actions")
        || labels.contains(&"Final Answer")
        || said.lines().next().and_then(label).is_some();
    match calls {
        [] if said.is_empty() || has_form => said.to_owned(),
        [] => format!("Final Answer: {said}"),
        [one] => format!(
            "{}Action: {}\nArgs: {}",
            thought(said),
            name(one),
            arguments(one).map_or_else(
                || one.arguments.clone(),
                |map| Value::Object(map).to_string()
            )
        ),
        all => match all.iter().find(|one| arguments(one).is_none()) {
            // None of them is made: the parser says what is wrong with this one.
            Some(bad) => format!(
                "{}Action: {}\nArgs: {}",
                thought(said),
                name(bad),
                bad.arguments
            ),
            None => {
                let all = all.iter().map(
                    |one| json!({"name": name(one), "arguments": arguments(one).unwrap_or_default()}),
                );
                format!("{}Actions: {}", thought(said), Value::from_iter(all))
            }
        },
    }
}

/// What was said before a call. A call that is written there, too, is not made twice.
fn thought(said: &str) -> String {
    let own = said.lines();
    let own = own.take_while(|line| matches!(label(line), None | Some("Thought")));
    let own = own.collect::<Vec<_>>().join("\n");
    let is_labelled = own.lines().next().and_then(label).is_some();
    match own.trim() {
        "" => String::new(),
        own if is_labelled => format!("{own}\n"),
        own => format!("Thought: {own}\n"),
    }
}

/// The name of a tool, which is one line.
fn name(call: &ChatToolCall) -> &str {
    call.name.lines().next().unwrap_or_default()
}

/// What a tool is given; `None`: it is not an object.
fn arguments(call: &ChatToolCall) -> Option<Map<String, Value>> {
    match call.arguments.trim() {
        "" => Some(Map::new()),
        text => serde_json::from_slice(text.as_bytes()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::msg::ChatUsage;

    use super::*;

    fn call(name: &str, arguments: &str) -> ChatToolCall {
        ChatToolCall {
            id: "c".into(),
            name: name.into(),
            arguments: arguments.into(),
        }
    }

    #[test]
    fn calls_and_answers_are_written_in_the_form_of_the_prompt() {
        let add = call("add", "{ \"a\": 1 }");
        let one = |text| written(text, std::slice::from_ref(&add));
        assert_eq!(one(""), "Action: add\nArgs: {\"a\":1}");
        assert_eq!(
            one(" I add. "),
            "Thought: I add.\nAction: add\nArgs: {\"a\":1}"
        );
        let twice = "Thought: I add.\nAction: add\nArgs: {\"a\": 1}";
        assert_eq!(one(twice), "Thought: I add.\nAction: add\nArgs: {\"a\":1}");
        let both = [add, call("now", "")];
        assert_eq!(
            written("", &both),
            r#"Actions: [{"name":"add","arguments":{"a":1}},{"name":"now","arguments":{}}]"#
        );
        assert_eq!(
            written("", &[call("add", "[1")]),
            "Action: add\nArgs: [1",
            "the parser says what is wrong with it"
        );
        assert_eq!(
            written("It is 3.\nNote: so.", &[]),
            "Final Answer: It is 3.\nNote: so."
        );
        let broken = [call("now", ""), call("add", "{\"a\": ")];
        assert_eq!(written("", &broken), "Action: add\nArgs: {\"a\": ");
        for as_it_is in [
            "I look.\n\nAction: add\nArgs: {}",
            "",
            "**Final Answer:** 3",
            "Thought: hm\nFinal Answer: 3",
        ] {
            assert_eq!(written(as_it_is, &[]), as_it_is);
        }
    }

    #[test]
    fn a_reply_is_passed_on_at_its_end_and_thoughts_at_once() {
        let mut reply = Reply::default();
        let part = |delta: &str, thinking: &str| ChatCompletionResponse {
            delta: delta.into(),
            thinking: thinking.into(),
            ..ChatCompletionResponse::default()
        };
        let thinking = reply.part(part("", "hm")).unwrap();
        assert_eq!((&*thinking.thinking, &*thinking.text), ("hm", ""));
        assert_eq!(reply.part(part("It ", "")), None);
        let end = ChatCompletionResponse {
            model: Some("m".into()),
            usage: Some(ChatUsage {
                input: 3,
                output: 2,
                ..ChatUsage::default()
            }),
            end_of_stream: true,
            ..part("is 3.", "")
        };
        let end = reply.part(end).unwrap();
        assert_eq!(end.text, "Final Answer: It is 3.");
        assert_eq!((end.in_token, end.out_token), (Some(3), Some(2)));
        assert!(end.end_of_stream && end.model.as_deref() == Some("m"));
    }
}
