//! `tg show-usage`: what the agent's runs and other calls of models used and cost. `tg clear-usage` counts a conversation or an agent anew.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::args::{Common, Options};
use crate::client::Result;
use crate::fields::{list, text};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

/// By what it is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// Each answer, by the id of its run. Calls of models outside of runs are `direct`, those for documents `documents`.
    Run,
    /// Each tool, with the models that it asks.
    Tool,
    /// Each model.
    Model,
    /// The workspace.
    Workspace,
    /// Each API key, or each user who has none.
    Key,
    /// Each conversation.
    Session,
    /// Each agent that has a name.
    Agent,
    /// Each day of the workspace.
    Day,
}

impl By {
    fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Tool => "tool",
            Self::Model => "model",
            Self::Workspace => "workspace",
            Self::Key => "key",
            Self::Session => "session",
            Self::Agent => "agent",
            Self::Day => "day",
        }
    }
}

/// Arguments of `tg show-usage`.
#[derive(Debug, Args)]
pub struct ShowUsage {
    #[command(flatten)]
    common: Common,
    /// Sum up by this
    #[arg(long, value_enum, default_value = "workspace")]
    by: By,
    /// From this day on, YYYY-MM-DD in UTC [default: all that is known]
    #[arg(long, value_name = "DAY")]
    since: Option<String>,
    /// Until this day [default: today]
    #[arg(long, value_name = "DAY")]
    until: Option<String>,
}

impl Command for ShowUsage {
    const NAME: &'static str = "show-usage";
    const ABOUT: &'static str = "Show what runs and other calls of models used, and what that cost";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn fails_with_one(&self) -> bool {
        true
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let by = self.by.as_str();
        let mut request = json!({"operation": "list-usage", "by": by});
        for (key, day) in [("since", &self.since), ("until", &self.until)] {
            if let Some(day) = day {
                request[key] = json!(day);
            }
        }
        let reply = session.http()?.all("usage", request).await?;
        let usage = list(&reply, "usage").to_vec();
        let shown = Value::from(usage.clone());
        session.out.lay(&shown, |width| render(by, &usage, width))
    }
}

fn render(by: &str, usage: &[Value], width: Width) -> String {
    if usage.is_empty() {
        return "Nothing was used.".to_owned();
    }
    let count = |one: &Value, key: &str| one[key].as_i64().unwrap_or(0).to_string();
    let rows = usage.iter().map(|one| {
        [
            text(one, "name"),
            count(one, "model_calls"),
            count(one, "tool_calls"),
            count(one, "in_token"),
            count(one, "out_token"),
            count(one, "cache_read"),
            count(one, "cache_write"),
            count(one, "total"),
            format!("{:.6}", one["dollars"].as_f64().unwrap_or(0.0)),
            format!("{:.1}", one["duration_ms"].as_f64().unwrap_or(0.0) / 1000.0),
        ]
    });
    let head = [
        by,
        "model calls",
        "tool calls",
        "in",
        "out",
        "cache read",
        "cache write",
        "total",
        "$",
        "seconds",
    ];
    table(head, rows, width)
}

/// Arguments of `tg clear-usage`.
#[derive(Debug, Args)]
pub struct ClearUsage {
    #[command(flatten)]
    common: Common,
    /// The conversation, as `tg show-usage --by session` names it
    #[arg(required_unless_present = "agent")]
    session: Option<String>,
    /// An agent instead, as `tg show-usage --by agent` names it
    #[arg(long, value_name = "NAME", conflicts_with = "session")]
    agent: Option<String>,
}

impl Command for ClearUsage {
    const NAME: &'static str = "clear-usage";
    const ABOUT: &'static str = "Count what a conversation, or an agent, uses anew";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let (by, name) = match (self.session, self.agent) {
            (Some(name), _) => ("session", name),
            (None, agent) => ("agent", agent.unwrap_or_default()),
        };
        let mut request = json!({"operation": "clear-usage"});
        request[by] = name.into();
        let reply = session.http()?.service("usage", request).await?;
        let cleared = list(&reply, "usage").to_vec();
        let shown = Value::from(cleared.clone());
        session.out.lay(&shown, |width| render(by, &cleared, width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_is_a_table() {
        let one = json!({
            "name": "calculator", "model_calls": 0, "tool_calls": 3, "in_token": 40, "out_token": 2,
            "cache_read": 31, "cache_write": 17, "total": 42, "dollars": 0.0125, "duration_ms": 1500,
        });
        let shown = render("tool", &[one], None);
        for part in [
            "tool",
            "calculator",
            "40",
            "31",
            "17",
            "42",
            "0.012500",
            "1.5",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert_eq!(render("tool", &[], None), "Nothing was used.");
    }
}
