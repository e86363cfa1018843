//! `tg dead-letters` and `tg parked`: records that could not be handled, or were left by a stop.
//! Both list, show and replay; they differ in the reason they look for.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::{Value, json};

use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::fields::{list, text};
use crate::layout::{Width, cut, table};
use crate::registry::Command;
use crate::session::Session;

/// Records listed at once.
const MOST: u32 = 1000;

/// What both commands take.
#[derive(Debug, Args)]
struct Selection {
    #[command(flatten)]
    common: Common,
    /// What is done unless a flag says otherwise
    #[arg(value_name = "list", value_parser = ["list"], conflicts_with_all = ["show", "replay", "replay_all", "discard", "discard_all"])]
    _list: Option<String>,
    /// Only records of this flow
    #[arg(short = 'i', long, value_name = "ID")]
    flow_id: Option<String>,
    /// List at most so many, the oldest; all of them unless given
    #[arg(short = 'l', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Show one record whole
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["replay", "replay_all"])]
    show: Option<String>,
    /// Send one record back to where it belongs
    #[arg(long, value_name = "RECORD", conflicts_with = "replay_all")]
    replay: Option<String>,
    /// Send all records of --flow-id back to where they belong
    #[arg(long, requires = "flow_id")]
    replay_all: bool,
    /// Throw one record away
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["show", "replay", "replay_all"])]
    discard: Option<String>,
    /// Throw all of them away; with --flow-id those of one flow
    #[arg(long, conflicts_with_all = ["show", "replay", "replay_all", "discard"])]
    discard_all: bool,
}

impl Selection {
    async fn run(self, session: &mut Session, reason: &str) -> Result<()> {
        if let Some(id) = &self.show {
            return self.show_one(session, id).await;
        }
        if let Some(id) = &self.discard {
            let request = json!({"operation": "discard-put-aside", "put-aside-id": id});
            let reply = session.http()?.service("flow", request).await?;
            return session.out.show(&reply, || format!("Discarded {id}."));
        }
        if self.discard_all {
            return self.discard_all(session, reason).await;
        }
        if self.replay.is_some() || self.replay_all {
            return self.replay_some(session, reason).await;
        }
        let mut request = json!({"operation": "list-put-aside", "reason": reason});
        if let Some(flow) = &self.flow_id {
            request["flow-id"] = json!(flow);
        }
        let reply = match self.limit {
            Some(limit) => {
                request["limit"] = json!(limit);
                session.http()?.service("flow", request).await?
            }
            None => session.http()?.all("flow", request).await?,
        };
        let records = list(&reply, "put-aside");
        session
            .out
            .lay(&Value::from(records), |width| render(records, width))?;
        if !text(&reply, "next").is_empty() {
            session.out.talk("There are more.");
        }
        Ok(())
    }

    /// Flow by flow, as the flow service takes it, until there are none.
    async fn discard_all(&self, session: &mut Session, reason: &str) -> Result<()> {
        let http = session.http()?;
        let mut discarded = 0;
        loop {
            let mut request =
                json!({"operation": "list-put-aside", "reason": reason, "limit": MOST});
            if let Some(flow) = &self.flow_id {
                request["flow-id"] = json!(flow);
            }
            let reply = http.service("flow", request).await?;
            let records = list(&reply, "put-aside").iter();
            let flows: BTreeSet<String> = records.map(|record| text(record, "flow-id")).collect();
            let before = discarded;
            for flow in flows {
                let request =
                    json!({"operation": "discard-put-aside", "flow-id": flow, "reason": reason});
                let reply = http.service("flow", request).await?;
                discarded += list(&reply, "put-aside").len();
            }
            if discarded == before {
                break;
            }
        }
        let done = json!({"discarded": discarded});
        session.out.show(&done, || match discarded {
            0 => "None.".to_owned(),
            count => format!("Discarded {count}."),
        })
    }

    async fn show_one(&self, session: &mut Session, id: &str) -> Result<()> {
        let request = json!({"operation": "show-put-aside", "put-aside-id": id});
        let reply = session.http()?.service("flow", request).await?;
        match reply.get("put-aside") {
            Some(Value::Array(records)) if records.is_empty() => {
                Err(Error::Missing(format!("there is no record '{id}'")))
            }
            Some(Value::Array(records)) => session.out.json(&records[0]),
            Some(record) if !record.is_null() => session.out.json(record),
            _ => Err(Error::Missing(format!("there is no record '{id}'"))),
        }
    }

    async fn replay_some(&self, session: &mut Session, reason: &str) -> Result<()> {
        let mut request = json!({"operation": "replay-put-aside"});
        match (&self.replay, &self.flow_id) {
            (Some(id), _) => request["put-aside-id"] = json!(id),
            (None, flow) => {
                request["flow-id"] = json!(flow);
                request["reason"] = json!(reason);
            }
        }
        let reply = session.http()?.service("flow", request).await?;
        let records = list(&reply, "put-aside");
        session.out.lay(&reply, |width| match records.len() {
            0 => "Replayed.".to_owned(),
            count => format!("Replayed {count}:\n{}", render(records, width)),
        })
    }
}

/// A time as text, or as milliseconds since 1970.
fn since(record: &Value) -> String {
    let time = record
        .get("since")
        .and_then(Value::as_i64)
        .and_then(chrono::DateTime::from_timestamp_millis);
    match time {
        Some(time) => time.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        None => text(record, "since"),
    }
}

fn render(records: &[Value], width: Width) -> String {
    if records.is_empty() {
        return "None.".to_owned();
    }
    let rows = records.iter().map(|record| {
        [
            text(record, "id"),
            text(record, "flow-id"),
            text(record, "subscription"),
            text(record, "attempt"),
            since(record),
            cut(&text(record, "detail"), 120),
        ]
    });
    table(
        ["id", "flow", "subscription", "attempt", "since", "detail"],
        rows,
        width,
    )
}

/// Arguments of `tg dead-letters`.
#[derive(Debug, Args)]
pub struct DeadLetters {
    #[command(flatten)]
    selection: Selection,
}

impl Command for DeadLetters {
    const NAME: &'static str = "dead-letters";
    const ABOUT: &'static str = "List, show, replay and discard records that could not be handled";

    fn options(&self) -> Options {
        Options::from(&self.selection.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        self.selection.run(session, "dead").await
    }
}

/// Arguments of `tg parked`.
#[derive(Debug, Args)]
pub struct Parked {
    #[command(flatten)]
    selection: Selection,
}

impl Command for Parked {
    const NAME: &'static str = "parked";
    const ABOUT: &'static str = "List, show, replay and discard records that a stopped flow left";

    fn options(&self) -> Options {
        Options::from(&self.selection.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        self.selection.run(session, "parked").await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_rows() {
        let shown = render(
            &[json!({"id": 7, "reason": "dead", "detail": "bad body",
            "flow-id": "default", "subscription": "triples-write", "attempt": 3, "since": 1_700_000_000_000_i64})],
            None,
        );
        assert!(shown.contains("2023-11-14T22:13:20Z"));
        assert!(shown.contains("| 7 "));
        assert!(shown.contains("triples-write"));
        assert_eq!(render(&[], None), "None.");
    }
}
