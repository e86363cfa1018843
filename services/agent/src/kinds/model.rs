//! Tools that ask a model by a prompt: `text-completion` (prompt `question`) and `prompt`.

use std::collections::BTreeMap;

use tg_clients::prompt::Prompts;
use tg_schemas::Error;

use super::tool_call::{Arguments, Call, Output};
use crate::engine::decision::Usage;
use crate::prices;

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
    let prompts = Prompts::of_flow(call.cx).known_as(call.key.clone());
    let prompts = prompts.rendered_here(call.cx, call.prompts);
    let answer = prompts.whole(template, terms).await?;
    // The run's model is the one that decides.
    let mut usage = Usage {
        in_token: answer.spent.in_token.unwrap_or(0),
        out_token: answer.spent.out_token.unwrap_or(0),
        cache_read: answer.spent.cache_read.unwrap_or(0),
        cache_write: answer.spent.cache_write.unwrap_or(0),
        backend: answer.spent.backend.clone().unwrap_or_default(),
        attempts: answer.spent.attempts.unwrap_or(0),
        ..Usage::default()
    };
    let told = answer.spent.nanodollars;
    if let Some(model) = &answer.spent.model {
        usage.cost = prices::cost(call.cx, model, &usage, told);
        usage.list(model, false);
    }
    Ok(Output {
        text: answer.text,
        usage,
        ..Output::default()
    })
}
