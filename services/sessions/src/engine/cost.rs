//! What a call of a model costs that the service makes itself, and who says so.

use tg_schemas::msg::ChatUsage;
use tg_schemas::price::{Price, is_local, is_reported};

/// Nobody knows what a call cost.
pub const UNKNOWN: &str = "unknown";

/// Who says what a call cost, and the dollars: its provider, else the workspace's price of its model; a local model costs nothing.
/// `price` and `model` are the rows of configuration that the workspace has of the model.
pub fn of(
    told: Option<f64>,
    used: &ChatUsage,
    price: Option<&str>,
    model: Option<&str>,
) -> (&'static str, Option<f64>) {
    let is_amount = |told: &f64| told.is_finite() && *told >= 0.0;
    if let Some(told) = told.filter(is_amount) {
        return ("upstream", Some(told));
    }
    let count = |tokens: i64| u64::try_from(tokens).unwrap_or(0);
    let (input, output) = (count(used.input), count(used.output));
    let price = price.and_then(Price::read);
    match price.filter(|_| is_reported(input)) {
        Some(price) => {
            let dollars = price.of(input, output, count(used.cache_read));
            ("table", Some(dollars))
        }
        None if model.is_some_and(is_local) => ("local", Some(0.0)),
        None => (UNKNOWN, None),
    }
}

/// The source of two costs together; empty: there was no call.
pub fn both<'a>(one: &'a str, other: &'a str) -> &'a str {
    match (one, other) {
        ("", source) | (source, "") => source,
        _ if one == other => one,
        _ => "mixed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_039_a_call_has_the_cost_of_its_provider_of_the_table_or_of_a_local_model() {
        let used = ChatUsage {
            input: 10,
            output: 5,
            ..ChatUsage::default()
        };
        let nothing = ChatUsage::default();
        let price = Some(r#"{"input_price": 1, "output_price": 2}"#);
        let local = Some(r#"{"local": true}"#);
        for (told, used, price, model, expected) in [
            (Some(0.5), &used, price, local, ("upstream", Some(0.5))),
            (Some(-0.5), &used, price, local, ("table", Some(20.0))),
            (None, &used, price, local, ("table", Some(20.0))),
            (None, &used, None, local, ("local", Some(0.0))),
            (None, &used, None, None, (UNKNOWN, None)),
            // Its provider reported no tokens.
            (None, &nothing, price, None, (UNKNOWN, None)),
            (None, &nothing, price, local, ("local", Some(0.0))),
        ] {
            assert_eq!(of(told, used, price, model), expected);
        }
    }

    #[test]
    fn line_039_costs_of_two_sources_are_mixed() {
        assert_eq!(both("", "table"), "table");
        assert_eq!(both("table", ""), "table");
        assert_eq!(both("table", "table"), "table");
        assert_eq!(both("table", "local"), "mixed");
        assert_eq!(both("mixed", "local"), "mixed");
    }
}
