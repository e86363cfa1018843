//! What a call of a model cost, as its provider said, else by the prices of the workspace.

use serde::Deserialize;
use tg_compaction::MODEL_TYPE;
use tg_mesh::Cx;
use tg_schemas::price::ROWS;

use crate::engine::cost::{Cost, Price};
use crate::engine::decision::Usage;

/// What is said of a model that matters here.
#[derive(Deserialize)]
struct Model {
    #[serde(default)]
    local: bool,
}

/// The price of a model.
pub(crate) fn price(cx: &Cx, model: &str) -> Option<Price> {
    let row = cx.config().get(cx.workspace(), ROWS, model)?;
    Price::read(&row)
}

/// Every price of the workspace.
pub(crate) fn all(cx: &Cx) -> Vec<Price> {
    let rows = cx.config().values(cx.workspace(), ROWS);
    rows.values().filter_map(|row| Price::read(row)).collect()
}

/// What one call of a model cost that used so much; `told`: what its provider said, in billionths of a dollar.
pub(crate) fn cost(cx: &Cx, model: &str, usage: &Usage, told: Option<u64>) -> Cost {
    if let Some(told) = told {
        return Cost::told(told);
    }
    let count = |tokens: i64| u64::try_from(tokens).unwrap_or(0);
    let (input, output) = (count(usage.in_token), count(usage.out_token));
    match price(cx, model) {
        Some(price) if input + output > 0 => {
            Cost::priced(price.nanodollars(input, output, count(usage.cache_read)))
        }
        _ if is_local(cx, model) => Cost::local(),
        _ => Cost::unknown(),
    }
}

fn is_local(cx: &Cx, model: &str) -> bool {
    let row = cx.config().get(cx.workspace(), MODEL_TYPE, model);
    let said = row.and_then(|row| serde_json::from_slice::<Model>(row.as_bytes()).ok());
    said.is_some_and(|said| said.local)
}
