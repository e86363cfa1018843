//! Token counts as providers spell them, in one form.

use serde_json::Value;

/// How the counts are called, by those who call them so; the first that is there counts.
const INPUT: [&str; 7] = [
    "input_tokens",
    "inputTokens",
    "prompt_tokens",
    "promptTokens",
    "promptTokenCount",
    "prompt_eval_count",
    "in_token",
];
const OUTPUT: [&str; 7] = [
    "output_tokens",
    "outputTokens",
    "completion_tokens",
    "completionTokens",
    "candidatesTokenCount",
    "eval_count",
    "out_token",
];
const CACHE_READ: [&str; 4] = [
    "cache_read_input_tokens",
    "cacheReadInputTokens",
    "cached_tokens",
    "cachedTokens",
];
const CACHE_WRITE: [&str; 2] = ["cache_creation_input_tokens", "cacheCreationInputTokens"];
const TOTAL: [&str; 3] = ["total_tokens", "totalTokens", "totalTokenCount"];
/// Where some say within another object what came out of their cache.
const NESTED: (&str, &str) = ("prompt_tokens_details", "cached_tokens");
/// Characters of a text that are guessed to be a token, where nobody says.
const CHARACTERS: usize = 4;

/// Counts as far as they were said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tokens that went in.
    pub input: Option<i64>,
    /// Tokens that came out.
    pub output: Option<i64>,
    /// Tokens of the input that the provider had kept.
    pub cache_read: Option<i64>,
    /// Tokens that it keeps from now on.
    pub cache_write: Option<i64>,
    /// All of them.
    pub total: Option<i64>,
}

/// The counts of a call; what is not known is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens that went in.
    pub input: i64,
    /// Tokens that came out.
    pub output: i64,
    /// Tokens of the input that the provider had kept.
    pub cache_read: i64,
    /// Tokens that it keeps from now on.
    pub cache_write: i64,
    /// In and out.
    pub total: i64,
}

impl Counts {
    /// What a provider says of a call.
    pub fn read(usage: &Value) -> Self {
        let first = |keys: &[&str]| keys.iter().find_map(|key| number(usage.get(key)?));
        let nested = || number(usage.get(NESTED.0)?.get(NESTED.1)?);
        Self {
            input: first(&INPUT),
            output: first(&OUTPUT),
            cache_read: match first(&CACHE_READ) {
                None | Some(0) => nested().or(first(&CACHE_READ)),
                read => read,
            },
            cache_write: first(&CACHE_WRITE),
            total: first(&TOTAL),
        }
    }

    /// With what is said later.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        Self {
            input: later.input.or(self.input),
            output: later.output.or(self.output),
            cache_read: later.cache_read.or(self.cache_read),
            cache_write: later.cache_write.or(self.cache_write),
            total: later.total.or(self.total),
        }
    }

    /// In numbers.
    pub fn tokens(&self) -> Tokens {
        let (input, output) = (self.input.unwrap_or(0), self.output.unwrap_or(0));
        let told = self.total.filter(|total| *total > 0);
        Tokens {
            input,
            output,
            cache_read: self.cache_read.unwrap_or(0),
            cache_write: self.cache_write.unwrap_or(0),
            total: told.unwrap_or_else(|| input.saturating_add(output)),
        }
    }
}

/// A number of any kind, cut to a whole one that is not negative.
fn number(value: &Value) -> Option<i64> {
    let number = value.as_number()?;
    let whole = match number.as_i64() {
        Some(whole) => whole,
        // Beyond 64 bits it is the largest, and what is behind the point is cut off.
        #[allow(clippy::cast_possible_truncation)]
        None => number.as_f64()? as i64,
    };
    Some(whole.max(0))
}

/// Dearest call that is believed, in dollars.
const DEAREST: f64 = 1e6;

/// What a provider says that a call cost, in billionths of a dollar.
pub fn nanodollars(usage: &Value) -> Option<u64> {
    let dollars = usage.get("cost")?.as_f64()?;
    (0.0..=DEAREST).contains(&dollars).then(|| {
        // Within bounds, and not negative.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let nano = (dollars * 1e9).round() as u64;
        nano
    })
}

/// Tokens of a text of so many characters, where the provider does not say.
pub fn estimated(characters: usize) -> i64 {
    i64::try_from(characters / CHARACTERS).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(usage: Value) -> [i64; 5] {
        let tokens = Counts::read(&usage).tokens();
        [
            tokens.input,
            tokens.output,
            tokens.cache_read,
            tokens.cache_write,
            tokens.total,
        ]
    }

    /// 105
    #[test]
    fn line_105_every_spelling_says_the_same() {
        let anthropic = json!({"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3,
                               "cache_creation_input_tokens": 2});
        assert_eq!(read(anthropic), [10, 5, 3, 2, 15]);
        let openai = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 16,
                            "prompt_tokens_details": {"cached_tokens": 4}});
        assert_eq!(read(openai), [10, 5, 4, 0, 16]);
        let google =
            json!({"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15});
        assert_eq!(read(google), [10, 5, 0, 0, 15]);
        let ollama = json!({"prompt_eval_count": 10, "eval_count": 5, "eval_duration": 7});
        assert_eq!(read(ollama), [10, 5, 0, 0, 15]);
        let camel = json!({"inputTokens": 10.9, "outputTokens": 5, "cacheReadInputTokens": 1,
                           "cacheCreationInputTokens": 2, "totalTokens": 0});
        assert_eq!(read(camel), [10, 5, 1, 2, 15]);
        assert_eq!(
            read(json!({"in_token": 10, "out_token": 5})),
            [10, 5, 0, 0, 15]
        );
    }

    #[test]
    fn line_105_the_first_number_counts_and_none_is_negative() {
        assert_eq!(
            read(json!({"input_tokens": -3, "output_tokens": 5})),
            [0, 5, 0, 0, 5]
        );
        let mixed = json!({"input_tokens": "many", "inputTokens": null, "prompt_tokens": 7, "promptTokens": 8});
        assert_eq!(read(mixed), [7, 0, 0, 0, 7]);
        let cached = json!({"cached_tokens": 0, "prompt_tokens_details": {"cached_tokens": 4}});
        assert_eq!(read(cached)[2], 4);
        let vast = json!({"input_tokens": 1e300, "output_tokens": u64::MAX});
        assert_eq!(read(vast), [i64::MAX, i64::MAX, 0, 0, i64::MAX]);
        for none in [
            json!(null),
            json!({}),
            json!([1]),
            json!({"prompt_tokens_details": 4}),
        ] {
            assert_eq!(read(none), [0; 5]);
        }
    }

    #[test]
    fn what_a_provider_says_of_the_cost_is_believed_within_bounds() {
        let cost = |cost: Value| nanodollars(&json!({"prompt_tokens": 1, "cost": cost}));
        assert_eq!(cost(json!(0.00014)), Some(140_000));
        assert_eq!((cost(json!(0)), cost(json!(1e-10))), (Some(0), Some(0)));
        for none in [json!(-1), json!(1e9), json!("1"), json!(null)] {
            assert_eq!(cost(none), None);
        }
        assert_eq!(nanodollars(&json!({})), None);
    }

    #[test]
    fn what_is_said_later_stands_where_it_says_something() {
        let first = Counts::read(&json!({"input_tokens": 10, "output_tokens": 1}));
        let both = first.then(Counts::read(&json!({"output_tokens": 5})));
        assert_eq!((both.input, both.output), (Some(10), Some(5)));
        assert_eq!((estimated(7), estimated(8)), (1, 2));
    }
}
