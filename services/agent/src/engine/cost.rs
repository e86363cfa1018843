//! What calls of models cost, and how that is known. Pure.

use serde::{Deserialize, Serialize};
use tg_schemas::msg::{AnswerCost, RunCost};
pub use tg_schemas::price::Price;

/// Money is counted in billionths of a dollar.
pub const NANO: f64 = 1e-9;

/// What calls cost together, and how many there are by how it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// Billionths of a dollar.
    pub nanodollars: u64,
    /// The provider reported it.
    pub upstream: u64,
    /// By a price.
    pub table: u64,
    /// Of models that cost nothing.
    pub local: u64,
    /// It is not known.
    pub unknown: u64,
    /// Billionths of a dollar that calls are likely to cost whose price is not known. Budgets and reports of usage count them; no answer shows them.
    pub guess: u64,
}

impl Cost {
    /// Of one call, as its provider says.
    pub fn told(nanodollars: u64) -> Self {
        Self {
            nanodollars,
            upstream: 1,
            ..Self::default()
        }
    }

    /// Of one call, by a price.
    pub fn priced(nanodollars: u64) -> Self {
        Self {
            nanodollars,
            table: 1,
            ..Self::default()
        }
    }

    /// Of one call of a model that costs nothing.
    pub fn local() -> Self {
        Self {
            local: 1,
            ..Self::default()
        }
    }

    /// Of one call of which it is not known.
    pub fn unknown() -> Self {
        Self {
            unknown: 1,
            ..Self::default()
        }
    }

    /// Of one call of which it is not known, and what it is likely to be.
    pub fn guessed(nanodollars: u64) -> Self {
        Self {
            guess: nanodollars,
            ..Self::unknown()
        }
    }

    /// How many calls there are.
    pub fn calls(&self) -> u64 {
        let counts = [self.upstream, self.table, self.local, self.unknown];
        counts.into_iter().fold(0, u64::saturating_add)
    }

    /// No call.
    pub fn is_none(&self) -> bool {
        self.calls() == 0
    }

    /// With others, by how each part becomes one of both.
    fn with(&self, other: &Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            nanodollars: both(self.nanodollars, other.nanodollars),
            upstream: both(self.upstream, other.upstream),
            table: both(self.table, other.table),
            local: both(self.local, other.local),
            unknown: both(self.unknown, other.unknown),
            guess: both(self.guess, other.guess),
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// Without some of them.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_sub)
    }

    /// Billionths of a dollar, if all of it is known.
    pub fn known(&self) -> Option<i64> {
        let is_known = self.unknown == 0 && !self.is_none();
        is_known.then(|| i64::try_from(self.nanodollars).unwrap_or(i64::MAX))
    }

    /// How it is known, in a word.
    pub fn source(&self) -> &'static str {
        let known = [
            (self.upstream, "upstream"),
            (self.table, "table"),
            (self.local, "local"),
            (self.unknown, "unknown"),
        ];
        let mut known = known.into_iter().filter(|(count, _)| *count > 0);
        match (known.next(), known.next()) {
            (Some((_, source)), None) => source,
            (None, _) => "unknown",
            _ => "mixed",
        }
    }

    /// As an answer reports it; `rate`: euros for a dollar, 0: not set. `None`: there was no call.
    pub fn answer(&self, rate: f64) -> Option<AnswerCost> {
        if self.is_none() {
            return None;
        }
        #[allow(clippy::cast_precision_loss, reason = "told with six digits")]
        let dollars = self.nanodollars as f64 * NANO;
        let usd = (self.unknown < self.calls()).then(|| rounded(dollars));
        Some(AnswerCost {
            usd,
            eur: usd.filter(|_| rate > 0.0).map(|_| rounded(dollars * rate)),
            source: self.source().to_owned(),
            sub_calls: i64::try_from(self.calls()).unwrap_or(i64::MAX),
        })
    }

    /// As it travels with a run.
    pub fn of_run(self) -> Option<RunCost> {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        (!self.is_none()).then(|| RunCost {
            nanodollars: count(self.nanodollars),
            upstream: count(self.upstream),
            table: count(self.table),
            local: count(self.local),
            unknown: count(self.unknown),
        })
    }
}

impl From<Option<RunCost>> for Cost {
    fn from(cost: Option<RunCost>) -> Self {
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        let cost = cost.unwrap_or_default();
        Self {
            nanodollars: count(cost.nanodollars),
            upstream: count(cost.upstream),
            table: count(cost.table),
            local: count(cost.local),
            unknown: count(cost.unknown),
            guess: 0,
        }
    }
}

/// With at most six digits behind the point, half to even.
fn rounded(amount: f64) -> f64 {
    (amount * 1e6).round_ties_even() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_how_its_cost_is_known() {
        let told = |cost: Cost, rate| {
            let cost = cost.answer(rate).unwrap();
            (cost.usd, cost.eur, cost.source, cost.sub_calls)
        };
        assert_eq!(Cost::default().answer(1.0), None);
        let two = Cost::told(1_200_500).and(&Cost::told(1_000));
        assert_eq!(
            told(two, 0.0),
            (Some(0.001_202), None, "upstream".into(), 2)
        );
        assert_eq!(told(two, 0.5).1, Some(0.000_601));
        let mixed = two.and(&Cost::unknown());
        assert_eq!(told(mixed, 0.0), (Some(0.001_202), None, "mixed".into(), 3));
        assert_eq!(
            told(Cost::unknown(), 0.9),
            (None, None, "unknown".into(), 1)
        );
        assert_eq!(
            told(Cost::local(), 0.9),
            (Some(0.0), Some(0.0), "local".into(), 1)
        );
        assert_eq!(told(Cost::priced(7), 0.0).2, "table");
        assert_eq!(two.without(&Cost::told(1_000)), Cost::told(1_200_500));
        assert_eq!(Cost::from(mixed.of_run()), mixed);
        assert_eq!(Cost::default().of_run(), None);
        assert_eq!((two.known(), mixed.known()), (Some(1_201_500), None));
        assert_eq!(
            (Cost::local().known(), Cost::default().known()),
            (Some(0), None)
        );
    }
}
