//! What models cost: `tg set-token-costs`, `tg show-token-costs`. Prices are dollars for a million tokens
//! here and dollars for one in the configuration.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::commands::config::put_item;
use crate::fields::{embedded, list, text};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

/// Config type of prices.
const KIND: &str = tg_schemas::price::ROWS;
const MILLION: f64 = 1_000_000.0;

/// Arguments of `tg set-token-costs`.
#[derive(Debug, Args)]
pub struct SetTokenCosts {
    #[command(flatten)]
    common: Common,
    /// Model
    #[arg(long, value_name = "NAME")]
    model: String,
    /// Dollars for a million tokens that go in
    #[arg(short = 'i', long, visible_alias = "input", value_name = "DOLLARS")]
    input_costs: f64,
    /// Dollars for a million tokens that come out
    #[arg(short = 'o', long, visible_alias = "output", value_name = "DOLLARS")]
    output_costs: f64,
}

impl Command for SetTokenCosts {
    const NAME: &'static str = "set-token-costs";
    const ABOUT: &'static str = "Say what a model costs";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        for price in [self.input_costs, self.output_costs] {
            if !price.is_finite() || price < 0.0 {
                return Err(Error::Usage("a price cannot be negative".to_owned()));
            }
        }
        let value = json!({
            "input_price": self.input_costs / MILLION,
            "output_price": self.output_costs / MILLION,
        });
        let http = session.http()?;
        put_item(&http, KIND, &self.model, &value.to_string()).await?;
        let done = json!({"model": self.model, "costs": value});
        session.out.show(&done, String::new)
    }
}

/// Arguments of `tg show-token-costs`.
#[derive(Debug, Args)]
pub struct ShowTokenCosts {
    #[command(flatten)]
    common: Common,
}

impl Command for ShowTokenCosts {
    const NAME: &'static str = "show-token-costs";
    const ABOUT: &'static str = "Show what models cost";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "getvalues", "type": KIND});
        let reply = session.http()?.all("config", request).await?;
        let models: Vec<Value> = list(&reply, "values").iter().map(price).collect();
        session
            .out
            .lay(&Value::from(models.clone()), |width| render(&models, width))
    }
}

fn price(item: &Value) -> Value {
    let value = embedded(item, "value");
    json!({
        "model": text(item, "key"),
        "input_price": value.get("input_price"),
        "output_price": value.get("output_price"),
    })
}

fn render(models: &[Value], width: Width) -> String {
    if models.is_empty() {
        return "No token costs.".to_owned();
    }
    let shown = |model: &Value, key: &str| match model.get(key).and_then(Value::as_f64) {
        Some(price) => format!("{:.3}", price * MILLION),
        None => "-".to_owned(),
    };
    let rows = models.iter().map(|model| {
        [
            text(model, "model"),
            shown(model, "input_price"),
            shown(model, "output_price"),
        ]
    });
    table(["model", "input, $/Mt", "output, $/Mt"], rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_shown_for_a_million_tokens() {
        let item =
            json!({"key": "m", "value": "{\"input_price\":1e-6,\"output_price\":0.0000025}"});
        let shown = render(
            &[price(&item), price(&json!({"key": "odd", "value": "["}))],
            None,
        );
        assert!(
            shown.contains("1.000") && shown.contains("2.500"),
            "{shown}"
        );
        assert!(shown.contains("odd") && shown.contains('-'), "{shown}");
        assert_eq!(render(&[], None), "No token costs.");
    }
}
