//! What a call costs, by the prices that a workspace says of models.

use serde_json::{Value, json};
use tg_schemas::operations::decimal;
use tg_schemas::price::is_reported;
pub(crate) use tg_schemas::price::{MODELS, Price, ROWS as PRICES, is_local};

/// The source of a cost that is not known.
const UNKNOWN: &str = "unknown";
/// The sources of a cost that is known, at least in part.
const KNOWN: &[&str] = &["upstream", "table", "local", "mixed"];

/// Dollars of a call, by its usage; `None`: its provider reported none.
fn of(price: Price, usage: &Value) -> Option<f64> {
    let tokens = |key: &str| usage[key].as_u64().unwrap_or(0);
    let input = tokens("input");
    is_reported(input).then(|| price.of(input, tokens("output"), tokens("cache_read")))
}

/// The names of all headers that say what a call cost.
pub(crate) const HEADERS: &str =
    "spass-cost-source, spass-cost-sub-calls, spass-cost-usd, spass-cost-eur";

/// What a call cost, as headers and comments say it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cost {
    source: &'static str,
    /// Dollars, and euros where a rate is set; `None`: not known.
    usd: Option<String>,
    eur: Option<String>,
    /// Calls of models that it is of.
    sub_calls: i64,
}

impl Cost {
    /// Of a call: what its provider said, else by a price, where there is one, else nothing for a local model. `rate`: euros
    /// for a dollar; 0: not set.
    pub(crate) fn of(
        told: Option<f64>,
        price: Option<Price>,
        is_local: bool,
        usage: &Value,
        rate: f64,
    ) -> Self {
        let priced = price.and_then(|price| of(price, usage));
        let (source, dollars) = match (told, priced) {
            (Some(told), _) if told.is_finite() && told >= 0.0 => ("upstream", Some(told)),
            (_, Some(priced)) => ("table", Some(priced)),
            (_, None) if is_local => ("local", Some(0.0)),
            (_, None) => (UNKNOWN, None),
        };
        Self {
            source,
            usd: dollars.map(decimal),
            eur: dollars
                .filter(|_| rate > 0.0)
                .map(|dollars| decimal(dollars * rate)),
            sub_calls: 1,
        }
    }

    /// Of a run of an agent, which reports it by itself. An unknown cost has no amounts.
    pub(crate) fn reported(cost: &Value) -> Self {
        let source = cost["source"].as_str().unwrap_or(UNKNOWN);
        let source = KNOWN.iter().copied().find(|known| *known == source);
        let amount = |key: &str| {
            let amount = cost[key].as_f64().filter(|_| source.is_some());
            amount.map(decimal)
        };
        Self {
            source: source.unwrap_or(UNKNOWN),
            usd: amount("usd"),
            eur: amount("eur"),
            sub_calls: cost["sub_calls"].as_i64().unwrap_or(1),
        }
    }

    fn known(&self) -> impl Iterator<Item = (&'static str, &'static str, &String)> {
        let all = [
            ("usd", "spass-cost-usd", &self.usd),
            ("eur", "spass-cost-eur", &self.eur),
        ];
        all.into_iter()
            .filter_map(|(key, header, amount)| Some((key, header, amount.as_ref()?)))
    }

    /// The headers: some of [`HEADERS`].
    pub(crate) fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("spass-cost-source", self.source.to_owned()),
            ("spass-cost-sub-calls", self.sub_calls.to_string()),
        ];
        headers.extend(
            self.known()
                .map(|(_, header, amount)| (header, amount.clone())),
        );
        headers
    }

    /// The same in the middle of a stream.
    pub(crate) fn json(&self) -> Value {
        let mut cost = json!({"source": self.source, "sub_calls": self.sub_calls});
        for (key, _, amount) in self.known() {
            cost[key] = json!(amount);
        }
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_told() -> Value {
        json!({"source": "table", "sub_calls": 3, "usd": "0.5"})
    }

    /// 45: what is told of the cost.
    #[test]
    fn a_price_and_a_usage_make_a_plain_decimal() {
        let price = Price::read(r#"{"input_price": 0.000001, "output_price": 0.00001}"#);
        let usage = json!({"input": 1000, "output": 20, "cache_read": 0});
        let cost = Cost::of(None, price, false, &usage, 0.0);
        assert_eq!(cost.headers()[2], ("spass-cost-usd", "0.0012".to_owned()));
        assert_eq!(
            cost.json(),
            json!({"source": "table", "sub_calls": 1, "usd": "0.0012"})
        );
        let unknown = Cost::of(None, None, false, &usage, 0.9);
        assert_eq!(unknown.headers()[0].1, "unknown");
        assert_eq!(unknown.headers().len(), 2);
        let cached =
            Price::read(r#"{"input_price": 1, "output_price": 0, "cache_read_price": 0.5}"#);
        let usage = json!({"input": 4, "output": 0, "cache_read": 2});
        assert_eq!(
            Cost::of(None, cached, false, &usage, 0.0).json()["usd"],
            "3"
        );
        // What the provider says wins, and is told in euros where a rate is set.
        assert_eq!(
            Cost::of(Some(0.5), cached, false, &usage, 0.9).json(),
            json!({"source": "upstream", "sub_calls": 1, "usd": "0.5", "eur": "0.45"})
        );
        assert_eq!(
            (decimal(0.0), decimal(12.5), decimal(0.000_000_5)),
            ("0".into(), "12.5".into(), "0".into())
        );
        assert_eq!(
            Price::read(r#"{"input_price": -1, "output_price": 0}"#),
            None
        );
        assert_eq!(Price::read("x"), None);
        let run = json!({"source": "table", "usd": 0.5, "sub_calls": 3});
        assert_eq!(Cost::reported(&run).json(), run_told());
    }

    #[test]
    fn line_045_a_local_model_costs_nothing_unless_a_price_or_its_provider_says_more() {
        let usage = json!({"input": 4, "output": 2});
        let local = Cost::of(None, None, true, &usage, 0.5).json();
        let free = json!({"source": "local", "sub_calls": 1, "usd": "0", "eur": "0"});
        assert_eq!(local, free);
        let price = Price::read(r#"{"input_price": 1, "output_price": 1}"#);
        let source = |told, price| Cost::of(told, price, true, &usage, 0.0).json();
        assert_eq!(source(None, price)["source"], "table");
        assert_eq!(source(Some(0.5), price)["source"], "upstream");
    }

    #[test]
    fn line_045_a_call_without_a_reported_usage_has_no_price() {
        let price = Price::read(r#"{"input_price": 1, "output_price": 1}"#);
        let guessed = json!({"input": 0, "output": 2, "total": 2, "estimated": true});
        let unknown = json!({"source": "unknown", "sub_calls": 1});
        let free = json!({"source": "local", "sub_calls": 1, "usd": "0"});
        for usage in [&Value::Null, &guessed] {
            let of = |is_local| Cost::of(None, price, is_local, usage, 0.0).json();
            assert_eq!((of(false), of(true)), (unknown.clone(), free.clone()));
        }
    }

    #[test]
    fn line_045_a_run_keeps_the_source_it_reports_and_an_unknown_cost_has_no_amounts() {
        let reported = |source: &str| {
            let cost = json!({"source": source, "usd": 0.5, "eur": 0.25, "sub_calls": 2});
            Cost::reported(&cost).json()
        };
        for source in ["upstream", "table", "local", "mixed"] {
            let sent = json!({"source": source, "usd": "0.5", "eur": "0.25", "sub_calls": 2});
            assert_eq!(reported(source), sent);
        }
        let unknown = json!({"source": "unknown", "sub_calls": 2});
        assert_eq!(
            (reported("unknown"), reported("guessed")),
            (unknown.clone(), unknown)
        );
    }
}
