//! What tokens of a model cost: the rows of a workspace's configuration by which answers, runs and estimates are priced.

use serde::Deserialize;

/// Type of the rows; their keys are names of models.
pub const ROWS: &str = "token-cost";

/// Type of the rows that say of a model whether it costs nothing; their keys are names of models.
pub const MODELS: &str = "llm-model";

/// Billionths of a dollar in a dollar.
const NANO: f64 = 1e9;

/// Dollars a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub struct Price {
    /// Of what the model reads.
    pub input_price: f64,
    /// Of what it writes.
    pub output_price: f64,
    /// Of what it reads from its provider's cache; `None`: as of the rest.
    #[serde(default)]
    pub cache_read_price: Option<f64>,
}

impl Price {
    /// From a row; `None` where it says no price, or one that is none.
    pub fn read(row: &str) -> Option<Self> {
        let price: Self = serde_json::from_slice(row.as_bytes()).ok()?;
        let cached = price.cache_read_price.unwrap_or(0.0);
        let all = [price.input_price, price.output_price, cached];
        let is_price = |one: &f64| one.is_finite() && *one >= 0.0;
        all.iter().all(is_price).then_some(price)
    }

    /// Dollars of so many tokens, of whose input so many came from a cache.
    #[allow(clippy::cast_precision_loss, reason = "counts of tokens are small")]
    pub fn of(&self, input: u64, output: u64, cached: u64) -> f64 {
        let cached = cached.min(input);
        let fresh = input - cached;
        let cached_price = self.cache_read_price.unwrap_or(self.input_price);
        fresh as f64 * self.input_price
            + cached as f64 * cached_price
            + output as f64 * self.output_price
    }

    /// The same in billionths of a dollar.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "prices are not negative, and a cast stops at the greatest"
    )]
    pub fn nanodollars(&self, input: u64, output: u64, cached: u64) -> u64 {
        (self.of(input, output, cached) * NANO).round() as u64
    }
}

/// Whether a call can be priced that read so many tokens. Every call reads some: at 0 its provider reported none, and what it
/// wrote is a guess.
pub fn is_reported(input: u64) -> bool {
    input > 0
}

/// What a row of type [`MODELS`] says of the cost.
#[derive(Deserialize)]
struct Model {
    #[serde(default)]
    local: bool,
}

/// Whether a row of type [`MODELS`] says that calls of the model cost nothing.
pub fn is_local(row: &str) -> bool {
    let model = serde_json::from_slice::<Model>(row.as_bytes());
    model.is_ok_and(|model| model.local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_local_only_where_its_row_says_so() {
        assert!(is_local(r#"{"local": true, "context_window": 32000}"#));
        for row in ["x", "{}", r#"{"local": false}"#, r#"{"local": "true"}"#] {
            assert!(!is_local(row), "{row}");
        }
    }

    #[test]
    fn what_comes_from_a_cache_has_a_price_of_its_own_or_that_of_the_rest() {
        let row = r#"{"input_price": 1, "output_price": 2, "cache_read_price": 0.5}"#;
        let price = Price::read(row).expect("a price");
        assert_eq!((price.of(4, 1, 0), price.of(4, 1, 2)), (6.0, 5.0));
        assert_eq!(price.of(4, 1, 9), 4.0);
        let plain = Price::read(r#"{"input_price": 1, "output_price": 2}"#).expect("a price");
        assert_eq!(plain.of(4, 1, 2), 6.0);
        assert_eq!(plain.nanodollars(4, 1, 0), 6_000_000_000);
    }

    #[test]
    fn what_is_no_price_is_none() {
        for row in [
            "x",
            "{}",
            r#"{"input_price": -1, "output_price": 0}"#,
            r#"{"input_price": 1, "output_price": 0, "cache_read_price": -0.1}"#,
        ] {
            assert_eq!(Price::read(row), None, "{row}");
        }
    }
}
