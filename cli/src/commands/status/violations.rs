//! `tg violations`: statements that fit no ontology, which are kept instead of written.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{Common, Options};
use crate::client::Result;
use crate::fields::{list, text};
use crate::layout::{Width, cut, table};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg violations`.
#[derive(Debug, Args)]
pub struct Violations {
    #[command(flatten)]
    common: Common,
    /// What is done unless a flag says otherwise
    #[arg(value_name = "list", value_parser = ["list"], conflicts_with_all = ["show", "replay", "replay_all", "discard", "discard_all"])]
    _list: Option<String>,
    /// Only those that this flow found
    #[arg(short = 'f', long, value_name = "ID")]
    flow_id: Option<String>,
    /// Only those for this collection
    #[arg(short = 'C', long, value_name = "ID")]
    collection: Option<String>,
    /// List at most so many, the oldest; all of them unless given
    #[arg(short = 'l', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Show one whole
    #[arg(long, value_name = "VIOLATION", conflicts_with_all = ["replay", "replay_all"])]
    show: Option<String>,
    /// Write one, if it fits the ontologies now
    #[arg(long, value_name = "VIOLATION", conflicts_with = "replay_all")]
    replay: Option<String>,
    /// Write all that fit the ontologies now
    #[arg(long)]
    replay_all: bool,
    /// Throw one away
    #[arg(long, value_name = "VIOLATION", conflicts_with_all = ["show", "replay", "replay_all"])]
    discard: Option<String>,
    /// Throw all of them away
    #[arg(long, conflicts_with_all = ["show", "replay", "replay_all", "discard"])]
    discard_all: bool,
}

impl Command for Violations {
    const NAME: &'static str = "violations";
    const ABOUT: &'static str = "List, show, replay and discard statements that fit no ontology";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        if self.replay.is_some() || self.replay_all {
            return self.replay(session).await;
        }
        if self.discard.is_some() || self.discard_all {
            let request = self.request("discard-violations", self.discard.as_deref());
            let reply = session.http()?.service("violations", request).await?;
            let count = number(&reply, "discarded");
            return session.out.show(&reply, || format!("Discarded {count}."));
        }
        let mut request = self.request("list-violations", self.show.as_deref());
        let reply = match (self.limit, &self.show) {
            (None, None) => session.http()?.all("violations", request).await?,
            (limit, _) => {
                request["limit"] = json!(limit.unwrap_or(1));
                session.http()?.service("violations", request).await?
            }
        };
        let violations = list(&reply, "violations");
        if self.show.is_some() {
            return session.out.json(&violations[0]);
        }
        session
            .out
            .lay(&Value::from(violations), |width| render(violations, width))?;
        if !text(&reply, "next").is_empty() {
            session.out.talk("There are more.");
        }
        let dropped = number(&reply, "dropped");
        if dropped > 0 {
            session.out.talk(format!(
                "{dropped} older ones are not kept any more: there were too many."
            ));
        }
        Ok(())
    }
}

impl Violations {
    fn request(&self, operation: &str, id: Option<&str>) -> Value {
        let mut request = json!({"operation": operation});
        let chosen = [
            ("id", id),
            ("flow", self.flow_id.as_deref()),
            ("collection", self.collection.as_deref()),
        ];
        for (key, value) in chosen {
            if let Some(value) = value {
                request[key] = json!(value);
            }
        }
        request
    }

    /// Part by part, as the service takes it.
    async fn replay(&self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        let mut request = self.request("replay-violations", self.replay.as_deref());
        let (mut replayed, mut kept, mut discarded) = (0, 0, 0);
        loop {
            let reply = http.service("violations", request.clone()).await?;
            replayed += number(&reply, "replayed");
            kept += number(&reply, "kept");
            discarded += number(&reply, "discarded");
            match text(&reply, "next") {
                next if next.is_empty() => break,
                next => request["after"] = json!(next),
            }
        }
        let done = json!({"replayed": replayed, "kept": kept, "discarded": discarded});
        session.out.show(&done, || {
            let gone = match discarded {
                0 => String::new(),
                count => format!(" {count} were for collections that are gone."),
            };
            format!("Written: {replayed}. Still not fitting: {kept}.{gone}")
        })
    }
}

fn number(reply: &Value, key: &str) -> i64 {
    reply.get(key).and_then(Value::as_i64).unwrap_or(0)
}

fn render(violations: &[Value], width: Width) -> String {
    if violations.is_empty() {
        return "None.".to_owned();
    }
    let rows = violations.iter().map(|one| {
        [
            text(one, "id"),
            text(one, "flow"),
            text(one, "collection"),
            text(one, "chunk"),
            cut(&text(one, "reason"), 120),
        ]
    });
    let head = ["id", "flow", "collection", "chunk", "reason"];
    table(head, rows, width)
}
