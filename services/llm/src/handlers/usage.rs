//! What a question to a model cost: reported to the metrics, and as a record where the flow has a reader of those.

use tg_mesh::{Cx, warn_of};
use tg_schemas::Error;
use tg_schemas::msg::Usage;
use tg_schemas::processors::shared;
use tokio::time::Instant;

use crate::engine::tokens::estimated;
use crate::model::Completion;
use crate::provider_client::ProviderClient;

/// Records what a question cost, also where it failed.
pub(super) async fn record(
    cx: &Cx,
    provider_client: &ProviderClient,
    asked: Option<&str>,
    began: Instant,
    done: &Result<Completion, Error>,
) {
    let usage = usage(cx, provider_client, asked, began, done);
    // A durable record for nobody would cost each call a confirmation.
    if !cx
        .topic(shared::USAGE)
        .is_ok_and(|topic| cx.is_read(&topic))
    {
        return;
    }
    if let Err(error) = cx.record(shared::USAGE, &usage).await {
        warn_of!(cx, %error.message, "usage record not written");
    }
}

fn usage(
    cx: &Cx,
    provider_client: &ProviderClient,
    asked: Option<&str>,
    began: Instant,
    done: &Result<Completion, Error>,
) -> Usage {
    let (completion, outcome) = match done {
        Ok(completion) => (completion.clone(), "ok".to_owned()),
        Err(error) => {
            let model = asked.unwrap_or(provider_client.client.model().default_model());
            (Completion::of(model), error.kind.clone())
        }
    };
    // A failed call has no answer to guess from.
    let said = completion.out_token;
    let written = said.unwrap_or_else(|| estimated(completion.characters));
    let tokens = completion.counts.tokens();
    let count = |name: &'static str, tokens: Option<i64>| {
        let tokens = tokens.unwrap_or(0).max(0) as u64;
        metrics::counter!(name, "processor" => cx.scope.processor.clone()).increment(tokens);
    };
    count("tg_input_tokens_total", completion.in_token);
    count("tg_output_tokens_total", Some(written));
    Usage {
        id: cx.id.to_string(),
        processor: cx.scope.processor.clone(),
        model: completion.model,
        in_token: completion.in_token.unwrap_or(0),
        out_token: written,
        cache_read: tokens.cache_read,
        cache_write: tokens.cache_write,
        estimated: said.is_none() && done.is_ok(),
        duration_ms: began.elapsed().as_millis() as i64,
        outcome,
    }
}
