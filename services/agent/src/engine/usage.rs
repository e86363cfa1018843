//! What calls of models and tools use, and by what it is summed up.

use super::decision::Usage;

/// By what usage is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The run, with its subagents.
    Run,
    /// The conversation that it belongs to.
    Session,
    /// The workspace.
    Workspace,
    /// Who asked.
    Key,
    /// The model that was asked.
    Model,
    /// The tool that was called.
    Tool,
    /// The agent that answered, by its name.
    Agent,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Run,
        Self::Session,
        Self::Workspace,
        Self::Key,
        Self::Model,
        Self::Tool,
        Self::Agent,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Session => "session",
            Self::Workspace => "workspace",
            Self::Key => "key",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Agent => "agent",
        }
    }

    /// The scope of a word.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// What calls took, or are likely to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Calls of models.
    pub model_calls: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Tokens that went in.
    pub in_token: u64,
    /// Tokens that came out.
    pub out_token: u64,
    /// Money, in billionths of a dollar: sums of them are exact.
    pub nanodollars: u64,
    /// How long they took.
    pub duration_ms: u64,
    /// Of the tokens that went in, what providers had kept.
    pub cache_read: u64,
    /// Tokens that providers keep since then.
    pub cache_write: u64,
}

impl Amount {
    /// The tokens that models reported, and what they cost.
    pub fn of(usage: &Usage) -> Self {
        let count = |tokens: i64| u64::try_from(tokens).unwrap_or(0);
        Self {
            in_token: count(usage.in_token),
            out_token: count(usage.out_token),
            cache_read: count(usage.cache_read),
            cache_write: count(usage.cache_write),
            nanodollars: usage.cost.nanodollars.saturating_add(usage.cost.guess),
            duration_ms: usage.duration_ms,
            ..Self::default()
        }
    }

    /// Tokens, in and out.
    pub fn tokens(&self) -> u64 {
        self.in_token.saturating_add(self.out_token)
    }

    /// In dollars.
    #[allow(clippy::cast_precision_loss)]
    pub fn dollars(&self) -> f64 {
        self.nanodollars as f64 / 1e9
    }

    /// Both together.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            model_calls: self.model_calls.saturating_add(other.model_calls),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
            in_token: self.in_token.saturating_add(other.in_token),
            out_token: self.out_token.saturating_add(other.out_token),
            nanodollars: self.nanodollars.saturating_add(other.nanodollars),
            duration_ms: self.duration_ms.saturating_add(other.duration_ms),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cost::Cost;

    #[test]
    fn words_are_read_as_they_are_written() {
        for scope in Scope::ALL {
            assert_eq!(Scope::read(scope.as_str()), Some(scope));
        }
        assert_eq!(Scope::read("planet"), None);
    }

    #[test]
    fn money_is_summed_up_exactly() {
        let usage = Usage {
            in_token: 10,
            out_token: 1,
            cache_read: 4,
            cache_write: 3,
            cost: Cost::told(2100),
            ..Usage::default()
        };
        let one = Amount::of(&usage);
        assert_eq!((one.tokens(), one.nanodollars), (11, 2100));
        assert_eq!((one.cache_read, one.cache_write), (4, 3));
        let sum = (0..1000).fold(Amount::default(), |sum, _| sum.and(&one));
        assert_eq!((sum.nanodollars, sum.cache_write), (2_100_000, 3000));
        let guessed = Usage {
            cost: Cost::guessed(7),
            ..usage.clone()
        };
        assert_eq!(Amount::of(&guessed).nanodollars, 7, "budgets count it");
        let both = guessed.cost.and(&usage.cost).answer(0.0);
        assert_eq!(both, Cost::told(2100).and(&Cost::unknown()).answer(0.0));
        let odd = Usage {
            in_token: -5,
            ..usage
        };
        assert_eq!(Amount::of(&odd).tokens(), 1);
    }
}
