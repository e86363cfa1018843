//! The cost of a call of a model: as its provider reported it, else by the prices of the workspace.

use tg_mesh::Cx;
use tg_schemas::price::{MODELS, ROWS, is_local, is_reported};

use crate::engine::cost::{Cost, Price};
use crate::engine::decision::Usage;
use crate::engine::usage::{Amount, Scope};

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

/// What one call of a model cost that used so much; `told`: what its provider reported, in billionths of a dollar.
pub(crate) fn cost(cx: &Cx, model: &str, usage: &Usage, told: Option<u64>) -> Cost {
    if let Some(told) = told {
        return Cost::told(told);
    }
    let count = |tokens: i64| u64::try_from(tokens).unwrap_or(0);
    let (input, output) = (count(usage.in_token), count(usage.out_token));
    match price(cx, model) {
        Some(price) if is_reported(input) => {
            Cost::priced(price.nanodollars(input, output, count(usage.cache_read)))
        }
        _ if costs_nothing(cx, model) => Cost::local(),
        // Where the provider reports no input, budgets count what was written.
        Some(price) => Cost::guessed(price.nanodollars(input, output, 0)),
        None => Cost::unknown(),
    }
}

/// What a tool took of models, as budgets count it. What is likely of calls whose provider reported no tokens is priced as the run's
/// own model.
pub(crate) fn of_tool(cx: &Cx, model: &str, usage: &Usage) -> Amount {
    let took = Amount::of(usage);
    let guess = u64::try_from(usage.guess).unwrap_or(0);
    if guess == 0 {
        return took;
    }
    let likely = paid(cx, model).map_or(0, |price| price.nanodollars(guess, 0, 0));
    Amount {
        in_token: took.in_token.saturating_add(guess),
        nanodollars: took.nanodollars.saturating_add(likely),
        ..took
    }
}

/// The price of a call whose model answered and whose provider did not report what the model read. A call that names no model failed:
/// it took nothing.
pub(crate) fn unreported(
    cx: &Cx,
    (scope, model): &(Scope, String),
    amount: &Amount,
) -> Option<Price> {
    if *scope != Scope::Model || model.is_empty() || is_reported(amount.in_token) {
        return None;
    }
    Some(paid(cx, model).unwrap_or_default())
}

/// The price of a model; none for a local one, even if it has a row of prices.
fn paid(cx: &Cx, model: &str) -> Option<Price> {
    match costs_nothing(cx, model) {
        true => None,
        false => price(cx, model),
    }
}

fn costs_nothing(cx: &Cx, model: &str) -> bool {
    let row = cx.config().get(cx.workspace(), MODELS, model);
    row.is_some_and(|row| is_local(&row))
}
