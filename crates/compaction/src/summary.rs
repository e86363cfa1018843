//! Summaries of rows by a model, and what stands for them where it gives none.

use std::future::Future;

use serde::{Deserialize, Serialize};

use crate::chunks::{budget, chunk_budget, chunks};
use crate::identifiers::{identifiers, keep};
use crate::rows::{Role, Row};

/// Times that the model is asked for one summary.
const ATTEMPTS: u32 = 3;
/// What stands for rows of which no summary can be had.
pub const NOTE: &str =
    "[What was said before this was left out to make room, and could not be summed up.]";
/// Between summaries that could not be made one.
const BETWEEN: &str = "\n---\n";

/// How good a summary is, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Of everything.
    Full,
    /// Without the longest rows.
    Partial,
    /// A note that there is none.
    Note,
    /// Nothing at all: the older rows are left out.
    HardClear,
}

impl Tier {
    /// Its word in stores and traces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::Note => "note",
            Self::HardClear => "hard_clear",
        }
    }
}

/// What stands for rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The text.
    pub text: String,
    /// The worst of its parts.
    pub tier: Tier,
}

/// What the model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked<'a> {
    /// A summary of rows, a line each.
    Chunk {
        /// The rows.
        text: &'a str,
        /// Whether what tools returned is left out of it.
        mask: bool,
    },
    /// One summary of several, which are numbered.
    Merge {
        /// The summaries.
        text: &'a str,
    },
}

/// Why there is no summary at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure<E> {
    /// The window leaves no room for what is to be summed up.
    TooSmall,
    /// Whoever asks for it goes no further.
    Stopped(E),
}

impl<E> From<E> for Failure<E> {
    fn from(error: E) -> Self {
        Self::Stopped(error)
    }
}

/// A model that sums up.
pub trait Summariser {
    /// Why it goes no further.
    type Stop;

    /// Its reply. `None`: it gave none.
    ///
    /// # Errors
    /// It is not to be asked again: it was cancelled, or there is no time left.
    fn ask(
        &mut self,
        asked: Asked<'_>,
    ) -> impl Future<Output = Result<Option<String>, Self::Stop>> + Send;

    /// Waits before it is asked again, after so many attempts.
    ///
    /// # Errors
    /// As above.
    fn pause(&mut self, attempts: u32) -> impl Future<Output = Result<(), Self::Stop>> + Send;
}

/// Sums up rows for a model of such a window. With `mask`, what tools returned is only named.
///
/// # Errors
/// The window is too small, or the summariser goes no further.
pub async fn summarise<S: Summariser>(
    rows: &[Row],
    window: u64,
    mask: bool,
    by: &mut S,
) -> Result<Summary, Failure<S::Stop>> {
    if budget(window).is_none() {
        return Err(Failure::TooSmall);
    }
    let most = chunk_budget(rows, window).unwrap_or_default();
    let mut parts = Vec::new();
    let mut tier = Tier::Full;
    let mut named: Vec<String> = Vec::new();
    for chunk in chunks(rows, most) {
        let rows = &rows[chunk];
        let whole = rendered(rows, mask, None);
        let found = identifiers(&whole);
        let (text, own) = one(rows, window, mask, &whole, by).await?;
        tier = tier.max(own);
        parts.push(match own {
            Tier::Note => text,
            _ => keep(&text, &found),
        });
        named.extend(found.into_iter().map(str::to_owned));
    }
    let text = match parts.len() {
        0 => String::new(),
        1 => parts.remove(0),
        _ => merged(&parts, &named, by).await?,
    };
    Ok(Summary { text, tier })
}

/// The summary of one chunk.
async fn one<S: Summariser>(
    rows: &[Row],
    window: u64,
    mask: bool,
    whole: &str,
    by: &mut S,
) -> Result<(String, Tier), S::Stop> {
    if let Some(text) = attempted(whole, mask, by).await? {
        return Ok((text, Tier::Full));
    }
    // Where no row is too long, this would be the same question once more.
    let without = rendered(rows, mask, Some(window));
    if without != whole
        && let Some(text) = attempted(&without, mask, by).await?
    {
        return Ok((text, Tier::Partial));
    }
    Ok((NOTE.to_owned(), Tier::Note))
}

async fn attempted<S: Summariser>(
    text: &str,
    mask: bool,
    by: &mut S,
) -> Result<Option<String>, S::Stop> {
    for attempt in 1..=ATTEMPTS {
        let reply = by.ask(Asked::Chunk { text, mask }).await?;
        if let Some(reply) = reply.filter(|reply| !reply.trim().is_empty()) {
            return Ok(Some(reply.trim().to_owned()));
        }
        if attempt < ATTEMPTS {
            by.pause(attempt).await?;
        }
    }
    Ok(None)
}

/// Several summaries as one.
async fn merged<S: Summariser>(
    parts: &[String],
    named: &[String],
    by: &mut S,
) -> Result<String, S::Stop> {
    let numbered = parts.iter().zip(1..);
    let numbered: Vec<String> = numbered
        .map(|(part, number)| format!("{number}.\n{part}"))
        .collect();
    let text = numbered.join("\n\n");
    let reply = by.ask(Asked::Merge { text: &text }).await?;
    let reply = reply.filter(|reply| !reply.trim().is_empty());
    let merged = reply.map(|reply| reply.trim().to_owned());
    let merged = merged.unwrap_or_else(|| parts.join(BETWEEN));
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    Ok(keep(&merged, &named))
}

/// Rows as the model is shown them, a line each. With a window, those that take more than half of it are only named.
fn rendered(rows: &[Row], mask: bool, window: Option<u64>) -> String {
    let line = |row: &Row| {
        let role = row.role.as_str();
        let tokens = row.tokens();
        let content = match row.role {
            Role::Tool if mask => {
                let tool = row.tool.as_deref().unwrap_or("unknown");
                format!("[tool result: {tool}]")
            }
            _ if window.is_some_and(|window| tokens > window / 2) => {
                format!("[{role} message of about {tokens} tokens left out of the summary]")
            }
            _ => row.content.clone(),
        };
        format!("[{role}]: {content}")
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
