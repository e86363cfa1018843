//! Tools that ask the prompt service: `text-completion` (prompt `question`) and `prompt`.

use std::collections::BTreeMap;

use tg_schemas::Error;
use tg_schemas::msg::{PromptRequest, PromptResponse};

use super::{Arguments, Call, Output};
use crate::engine::decision::Usage;

const PROMPTS: &str = "prompt-request";
/// Prompt of a plain question.
const QUESTION: &str = "question";

pub(super) async fn question(call: &Call<'_>, arguments: Arguments) -> Result<Output, Error> {
    prompt(call, QUESTION, arguments).await
}

pub(super) async fn prompt(
    call: &Call<'_>,
    template: &str,
    arguments: Arguments,
) -> Result<Output, Error> {
    let terms: BTreeMap<String, String> = arguments
        .into_iter()
        .map(|(name, value)| (name, value.to_string()))
        .collect();
    let request = PromptRequest {
        id: template.to_owned(),
        terms,
        streaming: false,
    };
    let topic = call.cx.topic(PROMPTS)?;
    let mut ask = call.cx.ask_options();
    ask.id = Some(call.key.clone());
    let mut answer = call.cx.mesh.ask::<_, PromptResponse>(topic, &request, ask);
    let mut output = Output::default();
    while let Some(part) = answer.next().await {
        let part = part?;
        if let Some(error) = part.error {
            return Err(error);
        }
        output.text.push_str(if part.text.is_empty() {
            &part.object
        } else {
            &part.text
        });
        output.usage.add(&Usage {
            in_token: part.in_token.unwrap_or(0),
            out_token: part.out_token.unwrap_or(0),
            // The run's model is the one that decides.
            ..Usage::default()
        });
    }
    Ok(output)
}
