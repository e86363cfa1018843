//! What a user answers who is asked before a tool is used.

use serde::{Deserialize, Serialize};

/// What came of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Use it.
    Yes,
    /// Do not.
    No,
    /// Nobody answered in time.
    Unanswered,
    /// Nobody was asked: too many questions of the workspace are open.
    TooMany,
}

impl Answer {
    const ALL: [Self; 4] = [Self::No, Self::Yes, Self::Unanswered, Self::TooMany];

    /// As it is kept.
    pub fn number(self) -> i64 {
        match self {
            Self::No => 0,
            Self::Yes => 1,
            Self::Unanswered => 2,
            Self::TooMany => 3,
        }
    }

    /// As it was kept.
    pub fn of_number(number: i64) -> Self {
        let at = usize::try_from(number).unwrap_or_default();
        Self::ALL.get(at).copied().unwrap_or(Self::No)
    }

    /// As a client says it; `None`: it says something else.
    pub fn said(text: &str) -> Option<Self> {
        match text {
            "yes" => Some(Self::Yes),
            "no" => Some(Self::No),
            _ => None,
        }
    }

    /// In the trace.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unanswered => "unanswered",
            Self::TooMany => "too-many",
        }
    }

    /// What the model is sent instead of a result.
    pub fn refusal(self, tool: &str) -> String {
        match self {
            Self::Yes => String::new(),
            Self::No => format!("the user does not allow this call of '{tool}'"),
            Self::Unanswered => {
                format!("'{tool}' was not used: the user was asked and did not answer in time")
            }
            Self::TooMany => {
                format!("'{tool}' was not used: too many questions to users are open")
            }
        }
    }
}

/// What came of asking before a tool was used, as the step's row has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// The answer.
    pub answer: Answer,
    /// User who gave it; empty: nobody.
    pub by: String,
    /// Until when it could be given, milliseconds since the Unix epoch.
    pub until_ms: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_kept_as_numbers() {
        for answer in Answer::ALL {
            assert_eq!(Answer::of_number(answer.number()), answer);
        }
        assert_eq!((Answer::No.number(), Answer::Yes.number()), (0, 1));
        assert_eq!(Answer::said("yes"), Some(Answer::Yes));
        assert_eq!(Answer::said("Y"), None);
    }
}
