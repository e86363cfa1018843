//! What runs may take: tokens, money, time and calls of tools; each run, and those of a session, a key and a workspace
//! together. What the next call is likely to take is counted before it is made, and what it took afterwards. So a bound is
//! passed by no more than one call where the question bounds the reply or calls are like those before; of a first burst of much
//! larger ones it may be by each.

use chrono::{DateTime, Datelike, Months, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tg_schemas::msg::{AgentRun, ModelSettings};

use crate::engine::compacting::shown;
use crate::engine::cost::{NANO, Price};
use crate::engine::usage::Amount;

/// Bytes of a prompt that are guessed to be a token.
const BYTES: usize = 4;
/// Tokens that a reply is guessed to have, and the most that are reserved for one whose bound is stated.
const REPLY: u64 = 256;
const MOST_REPLY: u64 = 1_000_000;
/// Bytes of a prompt beside question and steps: instructions and tools.
const FRAME: usize = 2048;

/// Tokens that a text of so many bytes is guessed to have.
pub fn tokens(bytes: usize) -> i64 {
    i64::try_from(bytes / BYTES).unwrap_or(i64::MAX)
}

/// What may be taken at most; 0: any amount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// Tokens, in and out.
    pub tokens: u64,
    /// Dollars, by the prices of the models.
    pub dollars: f64,
    /// Seconds: of a run since it began, of several those that their calls took.
    pub seconds: u64,
    /// Calls of tools.
    pub tool_calls: u64,
}

/// What was taken, or will be.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Tokens, in and out.
    pub tokens: u64,
    /// Dollars; 0 where nobody says what the model costs.
    pub dollars: f64,
    /// Seconds.
    pub seconds: u64,
    /// Calls of tools.
    pub tool_calls: u64,
}

/// How long a bound counts what was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// Each day, in UTC.
    #[default]
    Day,
    /// Each month.
    Month,
}

impl Per {
    /// The first day that counts today, `YYYY-MM-DD`.
    pub fn since(self, today: &str) -> String {
        match self {
            Self::Day => today.to_owned(),
            Self::Month => format!("{}01", today.get(..8).unwrap_or_default()),
        }
    }

    /// Seconds until what was spent counts no more.
    pub fn left(self, now: DateTime<Utc>) -> u64 {
        let today = now.date_naive();
        let next = match self {
            Self::Day => today.succ_opt(),
            Self::Month => {
                let first = NaiveDate::from_ymd_opt(today.year(), today.month(), 1);
                first.and_then(|first| first.checked_add_months(Months::new(1)))
            }
        };
        let next = next.and_then(|day| day.and_hms_opt(0, 0, 0));
        let left = next.map_or(1, |next| (next.and_utc() - now).num_seconds() + 1);
        u64::try_from(left).unwrap_or(1)
    }

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }
}

/// What those of a day or a month may take together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Share {
    /// Of which time.
    pub per: Per,
    /// How much.
    pub budget: Budget,
}

/// What is bounded.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budgets {
    /// A run, with its subagents.
    pub run: Budget,
    /// All runs of a conversation.
    pub session: Budget,
    /// All runs of who asks.
    pub key: Share,
    /// All runs of a workspace.
    pub workspace: Share,
}

/// What a workspace says of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    #[serde(default)]
    tokens: u64,
    #[serde(default)]
    dollars: f64,
    #[serde(default)]
    seconds: u64,
    #[serde(default)]
    tool_calls: u64,
    session: Option<OwnShare>,
    key: Option<OwnShare>,
    workspace: Option<OwnShare>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnShare {
    per: Option<Per>,
    #[serde(default)]
    tokens: u64,
    #[serde(default)]
    dollars: f64,
    #[serde(default)]
    seconds: u64,
    #[serde(default)]
    tool_calls: u64,
}

impl OwnShare {
    fn share(&self) -> Share {
        Share {
            per: self.per.unwrap_or_default(),
            budget: Budget {
                tokens: self.tokens,
                dollars: self.dollars,
                seconds: self.seconds,
                tool_calls: self.tool_calls,
            },
        }
    }
}

impl Budgets {
    /// Whether anything is bounded.
    pub fn bind(&self) -> bool {
        let all = [
            &self.run,
            &self.session,
            &self.key.budget,
            &self.workspace.budget,
        ];
        all.into_iter().any(Budget::binds)
    }

    /// With what a row of configuration says. What it does not say of a run is not bounded; of a session, a key or the
    /// workspace it counts as before where the row has none.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn with(self, row: &str) -> Result<Self, String> {
        let row: Value =
            serde_json::from_slice(row.as_bytes()).map_err(|error| error.to_string())?;
        counts(&row)?;
        let own: Own = serde_json::from_value(row).map_err(|error| error.to_string())?;
        if own.session.as_ref().is_some_and(|own| own.per.is_some()) {
            return Err("session.per: a session is bounded as a whole".to_owned());
        }
        let shares = [&own.session, &own.key, &own.workspace];
        let [session, key, workspace] = shares.map(|own| own.as_ref().map(OwnShare::share));
        let with = Self {
            run: Budget {
                tokens: own.tokens,
                dollars: own.dollars,
                seconds: own.seconds,
                tool_calls: own.tool_calls,
            },
            session: session.map_or(self.session, |own| own.budget),
            key: key.unwrap_or(self.key),
            workspace: workspace.unwrap_or(self.workspace),
        };
        for (name, budget) in [
            ("", &with.run),
            ("session.", &with.session),
            ("key.", &with.key.budget),
            ("workspace.", &with.workspace.budget),
        ] {
            if !budget.dollars.is_finite() || budget.dollars < 0.0 {
                return Err(format!("{name}dollars: must be at least 0"));
            }
        }
        Ok(with)
    }
}

/// Whether every count of a row is one: serde names no field of a number that is none.
fn counts(row: &Value) -> Result<(), String> {
    for share in ["", "session", "key", "workspace"] {
        let (part, prefix) = match share {
            "" => (Some(row), String::new()),
            _ => (row.get(share), format!("{share}.")),
        };
        for field in ["tokens", "seconds", "tool_calls"] {
            let value = part.and_then(|part| part.get(field));
            if value.is_some_and(|value| !value.is_u64()) {
                return Err(format!(
                    "{prefix}{field}: must be a whole number of at least 0"
                ));
            }
        }
    }
    Ok(())
}

impl From<Amount> for Spent {
    fn from(amount: Amount) -> Self {
        Self {
            tokens: amount.tokens(),
            dollars: amount.dollars(),
            seconds: amount.duration_ms / 1000,
            tool_calls: amount.tool_calls,
        }
    }
}

/// What a bound is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Tokens.
    Tokens,
    /// Money.
    Money,
    /// Time.
    Time,
    /// Calls of tools.
    ToolCalls,
}

impl Limit {
    /// The word for the metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Money => "money",
            Self::Time => "time",
            Self::ToolCalls => "tool-calls",
        }
    }
}

/// The next call does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exhausted {
    /// Which bound.
    pub limit: Limit,
    /// Why, in one sentence.
    pub why: String,
    /// It fits beside what was used: only what is reserved for others stands in the way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reserved: bool,
}

impl Budget {
    /// Whether anything is bounded.
    pub fn binds(&self) -> bool {
        *self != Self::default()
    }

    /// Why the next call may not be made after what was spent; the reason names `whose` budget it is.
    pub fn exhausted(&self, whose: &str, spent: &Spent, next: &Spent) -> Option<Exhausted> {
        let over = |most: u64, spent: u64, next: u64| most > 0 && spent.saturating_add(next) > most;
        let says = |limit: Limit, what: String| Exhausted {
            limit,
            why: format!("Stopped by {whose} ({}): {what}", limit.as_str()),
            reserved: false,
        };
        if over(self.tokens, spent.tokens, next.tokens) {
            let (used, most, next) = (spent.tokens, self.tokens, next.tokens);
            return Some(says(
                Limit::Tokens,
                format!("{used} of {most} tokens are used, and the next call takes about {next}"),
            ));
        }
        if self.dollars > 0.0 && spent.dollars + next.dollars > self.dollars + NANO / 2.0 {
            let (used, most) = (spent.dollars, self.dollars);
            return Some(says(
                Limit::Money,
                format!("{used:.6} of {most:.6} dollars are used, and the next call does not fit"),
            ));
        }
        if self.seconds > 0 && spent.seconds >= self.seconds {
            let most = self.seconds;
            return Some(says(Limit::Time, format!("{most} seconds are over")));
        }
        if over(self.tool_calls, spent.tool_calls, next.tool_calls) {
            let most = self.tool_calls;
            return Some(says(
                Limit::ToolCalls,
                format!("all {most} calls of tools are made"),
            ));
        }
        None
    }
}

/// What the next call of the model is likely to take.
pub fn model_call(run: &AgentRun, price: Option<&Price>) -> Amount {
    let steps = shown(run).iter();
    let steps = steps.map(|step| {
        step.thought.len() + step.action.len() + step.arguments.len() + step.observation.len()
    });
    let planned = run.plan.iter();
    let planned = planned.map(|step| step.goal.len() + step.result.len());
    let steps = steps.chain(planned).sum::<usize>();
    let bytes = FRAME + run.question.len() + run.framing.len() + run.summary.len() + steps;
    let in_token = u64::try_from(bytes / BYTES).unwrap_or(u64::MAX);
    one_call(in_token, reply_of(run.settings.as_ref()), price)
}

/// Tokens that are reserved for a reply: as many as the question lets the model write.
fn reply_of(settings: Option<&ModelSettings>) -> u64 {
    let stated = settings.and_then(|settings| settings.max_tokens);
    let stated = stated.and_then(|most| u64::try_from(most).ok());
    match stated {
        None | Some(0) => REPLY,
        Some(most) => most.min(MOST_REPLY),
    }
}

/// What a call of a model that is asked for is likely to take, by the prices of those that may answer.
pub fn outside_call(
    (in_token, out_token): (u64, u64),
    prices: impl Iterator<Item = Price>,
) -> Amount {
    let cost = |price: Price| price.nanodollars(in_token, out_token, 0);
    Amount {
        model_calls: 1,
        in_token,
        out_token,
        nanodollars: prices.map(cost).max().unwrap_or(0),
        ..Amount::default()
    }
}

/// What it is likely to take to sum up so many tokens.
pub fn summary_call(
    tokens: u64,
    settings: Option<&ModelSettings>,
    price: Option<&Price>,
) -> Amount {
    let in_token = tokens.saturating_add((FRAME / BYTES) as u64);
    one_call(in_token, reply_of(settings), price)
}

/// One call of the model that reads and writes so many tokens.
fn one_call(in_token: u64, out_token: u64, price: Option<&Price>) -> Amount {
    Amount {
        model_calls: 1,
        in_token,
        out_token,
        nanodollars: price.map_or(0, |price| price.nanodollars(in_token, out_token, 0)),
        ..Amount::default()
    }
}

/// What the next call of a tool takes.
pub fn tool_call() -> Amount {
    Amount {
        tool_calls: 1,
        ..Amount::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_bound_says_why_it_binds() {
        let all = Budget {
            tokens: 1000,
            dollars: 0.5,
            seconds: 60,
            tool_calls: 3,
        };
        let next = Spent {
            tokens: 200,
            dollars: 0.1,
            ..Spent::default()
        };
        let spent = Spent {
            tokens: 800,
            dollars: 0.4,
            seconds: 59,
            tool_calls: 3,
        };
        assert_eq!(all.exhausted("its budget", &spent, &next), None);
        let limit = |spent: Spent, next: Spent| {
            all.exhausted("its budget", &spent, &next)
                .map(|by| by.limit)
        };
        let tokens = Spent {
            tokens: 801,
            ..spent
        };
        assert_eq!(limit(tokens, next), Some(Limit::Tokens));
        let dollars = Spent {
            dollars: 0.41,
            ..spent
        };
        assert_eq!(limit(dollars, next), Some(Limit::Money));
        let seconds = Spent {
            seconds: 60,
            ..spent
        };
        assert_eq!(limit(seconds, next), Some(Limit::Time));
        assert_eq!(limit(spent, tool_call().into()), Some(Limit::ToolCalls));
        assert_eq!(
            all.exhausted("its budget", &spent, &tool_call().into())
                .unwrap()
                .why,
            "Stopped by its budget (tool-calls): all 3 calls of tools are made"
        );
        assert_eq!(Budget::default().exhausted("", &spent, &next), None);
        assert!(all.binds() && !Budget::default().binds());
    }

    #[test]
    fn a_reply_is_reserved_as_long_as_it_may_be() {
        let likely = |max_tokens: Option<i64>| {
            let settings = ModelSettings {
                max_tokens,
                ..ModelSettings::default()
            };
            let run = AgentRun {
                settings: Some(settings.clone()),
                ..AgentRun::default()
            };
            let summary = summary_call(1, Some(&settings), None).out_token;
            assert_eq!(summary, model_call(&run, None).out_token);
            summary
        };
        assert_eq!(model_call(&AgentRun::default(), None).out_token, REPLY);
        for (stated, reserved) in [
            (None, REPLY),
            (Some(0), REPLY),
            (Some(-1), REPLY),
            (Some(9), 9),
            (Some(4096), 4096),
            (Some(i64::MAX), MOST_REPLY),
        ] {
            assert_eq!(likely(stated), reserved, "{stated:?}");
        }
    }

    #[test]
    fn a_day_and_a_month_end_at_midnight() {
        let left = |per: Per, now: &str| per.left(now.parse().unwrap());
        assert_eq!(left(Per::Day, "2026-11-29T23:59:50Z"), 11);
        assert_eq!(left(Per::Day, "2026-11-29T00:00:00Z"), 86_401);
        assert_eq!(left(Per::Month, "2026-11-29T23:59:50Z"), 86_411);
        assert_eq!(left(Per::Month, "2026-12-31T23:59:59Z"), 2);
    }

    #[test]
    fn rows_say_what_is_bounded() {
        let usual = Budgets {
            key: Share {
                budget: Budget {
                    tokens: 9,
                    ..Budget::default()
                },
                ..Share::default()
            },
            ..Budgets::default()
        };
        let own =
            r#"{"tokens": 5, "dollars": 0.25, "workspace": {"per": "month", "tool_calls": 3}}"#;
        let own = usual.with(own).unwrap();
        assert_eq!(
            (own.run.tokens, own.run.dollars, own.run.seconds),
            (5, 0.25, 0)
        );
        assert_eq!(own.key, usual.key);
        assert_eq!(own.workspace.budget.tool_calls, 3);
        assert_eq!(own.workspace.per.since("2026-11-27"), "2026-11-01");
        assert_eq!(own.key.per.since("2026-11-27"), "2026-11-27");
        let lifted = usual.with(r#"{"key": {}}"#).unwrap();
        assert!(!lifted.key.budget.binds());
        assert!(!lifted.bind() && usual.bind());
        for own in [
            r#"{"dollars": 1}"#,
            r#"{"session": {"seconds": 1}}"#,
            r#"{"key": {"tool_calls": 1}}"#,
            r#"{"workspace": {"tokens": 1}}"#,
        ] {
            assert!(Budgets::default().with(own).unwrap().bind(), "{own}");
        }
        for wrong in [
            r#"{"token": 5}"#,
            r#"{"dollars": -1}"#,
            "5",
            r#"{"tokens": -5}"#,
            r#"{"key": {"per": "year"}}"#,
            r#"{"key": {"dollars": -1}}"#,
            r#"{"session": {"per": "day"}}"#,
        ] {
            assert!(usual.with(wrong).is_err(), "{wrong}");
        }
        let price = Price::read(r#"{"input_price": 0.5, "output_price": 2}"#).unwrap();
        assert!((price.of(4, 3, 0) - 8.0).abs() < 1e-9);
        assert_eq!(
            Price::read(r#"{"input_price": -1, "output_price": 0}"#),
            None
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

        /// What is spent is never more than the bound and the call that was made last.
        #[test]
        fn no_bound_is_passed_by_more_than_one_call(
            most in 1..5000_u64,
            calls in prop::collection::vec((0..400_u64, 0..800_u64), 0..60),
        ) {
            let budget = Budget { tokens: most, ..Budget::default() };
            let (mut spent, mut last) = (Spent::default(), 0);
            for (reserved, taken) in calls {
                let next = Spent { tokens: reserved, ..Spent::default() };
                if budget.exhausted("its budget", &spent, &next).is_some() {
                    break;
                }
                prop_assert!(spent.tokens + reserved <= most);
                (spent.tokens, last) = (spent.tokens + taken, taken);
            }
            prop_assert!(spent.tokens <= most + last);
        }
    }
}
