//! What a question to a model cost: reported to the metrics, and as a record where the flow has a reader of those.

use tg_mesh::{Cx, warn_of};
use tg_schemas::Error;
use tg_schemas::msg::Usage;
use tg_schemas::processors::shared;
use tokio::time::Instant;

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
    count(cx, done);
    // A durable record for nobody would cost each call a confirmation.
    if !cx
        .topic(shared::USAGE)
        .is_ok_and(|topic| cx.is_read(&topic))
    {
        return;
    }
    let usage = usage(cx, provider_client, asked, began, done);
    if let Err(error) = cx.record(shared::USAGE, &usage).await {
        warn_of!(cx, %error.message, "usage record not written");
    }
}

/// Tokens that the model read and wrote. A failed call has no answer to guess from.
fn tokens(done: &Result<Completion, Error>) -> (i64, i64) {
    let Ok(completion) = done else {
        return (0, 0);
    };
    (completion.in_token.unwrap_or(0), completion.written())
}

/// For the metrics.
fn count(cx: &Cx, done: &Result<Completion, Error>) {
    let (read, written) = tokens(done);
    let count = |name: &'static str, tokens: i64| {
        let tokens = tokens.max(0) as u64;
        metrics::counter!(name, "processor" => cx.scope.processor.clone()).increment(tokens);
    };
    count("tg_input_tokens_total", read);
    count("tg_output_tokens_total", written);
}

fn usage(
    cx: &Cx,
    provider_client: &ProviderClient,
    asked: Option<&str>,
    began: Instant,
    done: &Result<Completion, Error>,
) -> Usage {
    let (read, written) = tokens(done);
    let (model, outcome) = match done {
        Ok(completion) => (completion.model.as_str(), "ok"),
        Err(error) => {
            let usual = provider_client.client.model().default_model();
            (asked.unwrap_or(usual), error.kind.as_str())
        }
    };
    let answered = done.as_ref().ok();
    let counts = answered.map(|completion| completion.counts.tokens());
    let counts = counts.unwrap_or_default();
    Usage {
        id: cx.id.to_string(),
        processor: cx.scope.processor.clone(),
        model: model.to_owned(),
        in_token: read,
        out_token: written,
        cache_read: counts.cache_read,
        cache_write: counts.cache_write,
        estimated: answered.is_some_and(Completion::is_estimated),
        duration_ms: began.elapsed().as_millis() as i64,
        outcome: outcome.to_owned(),
    }
}
