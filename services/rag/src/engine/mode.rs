//! How chunks are chosen: the words that settings and questions have for it.

use serde::{Deserialize, Serialize};

/// How chunks are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// By meaning.
    Vector,
    /// By words.
    Keyword,
    /// By both, merged.
    Hybrid,
}

impl Mode {
    /// Reads the name that questions use.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "vector" => Self::Vector,
            "keyword" => Self::Keyword,
            "hybrid" => Self::Hybrid,
            _ => return None,
        })
    }

    /// Whether vectors are searched.
    pub fn vectors(self) -> bool {
        self != Self::Keyword
    }

    /// Whether the keyword index is searched.
    pub fn keywords(self) -> bool {
        self != Self::Vector
    }
}

/// Whether the choice of chunks avoids repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Diversity {
    /// The most relevant, whatever they repeat.
    None,
    /// Maximal marginal relevance.
    Mmr,
}
