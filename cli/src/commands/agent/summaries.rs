//! `tg expand-summary` and `tg remake-summary`: what a run of the agent summed up, the steps that the summary stands for, and
//! another summary of the same steps.

use clap::Args;
use serde_json::{Value, json};

use super::runs::RunId;
use crate::args::{Gateway, Options};
use crate::client::Result;
use crate::fields::{list, text};
use crate::registry::Command;
use crate::session::Session;

/// Which summary is meant.
#[derive(Debug, Args)]
struct Which {
    #[command(flatten)]
    run: RunId,
    /// Step before which earlier ones were summed up; without it the last such
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    step: Option<u32>,
    /// A run of somebody else in the workspace, for its administrators
    #[arg(long)]
    all: bool,
}

impl Which {
    fn request(&self, operation: &str) -> Value {
        let mut request = json!({"operation": operation, "run": self.run.id(), "all": self.all});
        if let Some(step) = self.step {
            request["step"] = json!(step);
        }
        request
    }
}

/// Arguments of `tg expand-summary`.
#[derive(Debug, Args)]
pub struct ExpandSummary {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    which: Which,
}

impl Command for ExpandSummary {
    const NAME: &'static str = "expand-summary";
    const ABOUT: &'static str = "Show what a run of the agent summed up, and the steps themselves";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = self.which.request(Self::NAME);
        let reply = session.http()?.service("requests", request).await?;
        session.out.show(&reply, || expanded(&reply))
    }
}

/// Arguments of `tg remake-summary`.
#[derive(Debug, Args)]
pub struct RemakeSummary {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    which: Which,
    /// Model that sums up
    #[arg(long)]
    model: String,
}

impl Command for RemakeSummary {
    const NAME: &'static str = "remake-summary";
    const ABOUT: &'static str = "Have another model sum up what a run of the agent summed up";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut request = self.which.request(Self::NAME);
        request["model"] = json!(self.model);
        let reply = session.http()?.service("requests", request).await?;
        session.out.show(&reply, || summaries(&reply))
    }
}

/// Each summary below a line that says whose it is.
fn summaries(reply: &Value) -> String {
    let all = list(reply, "summaries").iter().map(|one| {
        let made = match text(one, "created-ms").is_empty() {
            true => "the run went on with it",
            false => "made again",
        };
        let by = match text(one, "model").as_str() {
            "" => String::new(),
            model => format!(", by {model}"),
        };
        let head = format!(
            "Before step {} ({}, {made}{by}; tokens {} -> {}):",
            text(one, "step"),
            text(one, "tier"),
            text(one, "tokens-before"),
            text(one, "tokens-after")
        );
        match text(one, "text").as_str() {
            "" => format!("{head}\nThe steps were left out."),
            said => format!("{head}\n{said}"),
        }
    });
    all.collect::<Vec<_>>().join("\n\n")
}

/// The summaries, and below them the steps that they stand for.
fn expanded(reply: &Value) -> String {
    let steps = list(reply, "summed").iter().map(|one| {
        let number = match text(one, "step").as_str() {
            "" => "Came with the question".to_owned(),
            number => format!("Step {number}"),
        };
        let (thought, action) = (text(one, "thought"), text(one, "action"));
        let (given, seen) = (text(one, "arguments"), text(one, "observation"));
        format!("{number}: {thought}\n{action} {given}\n{seen}")
    });
    let parts = std::iter::once(summaries(reply)).chain(steps);
    parts.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_shown_with_its_steps() {
        let reply = json!({
            "summaries": [
                {"step": 4, "tier": "full", "text": "All.", "model": "small", "tokens-before": 90, "tokens-after": 20},
                {"step": 4, "tier": "full", "text": "More.", "model": "large", "tokens-before": 90, "tokens-after": 30,
                 "created-ms": 7},
                {"step": 4, "tier": "hard_clear", "text": "", "tokens-before": 90, "tokens-after": 2}],
            "summed": [
                {"thought": "before", "action": "search", "arguments": "{}", "observation": "old"},
                {"step": 1, "thought": "hm", "action": "search", "arguments": "{\"x\":1}", "observation": "found"}]});
        let shown = [
            "Before step 4 (full, the run went on with it, by small; tokens 90 -> 20):\nAll.",
            "Before step 4 (full, made again, by large; tokens 90 -> 30):\nMore.",
            "Before step 4 (hard_clear, the run went on with it; tokens 90 -> 2):\nThe steps were left out.",
            "Came with the question: before\nsearch {}\nold",
            "Step 1: hm\nsearch {\"x\":1}\nfound",
        ];
        assert_eq!(expanded(&reply), shown.join("\n\n"));
    }
}
