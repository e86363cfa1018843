//! `tg show-audit`: who changed what, who was let do what, who was refused.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::in_workspace;
use super::named::{names_and_id, user_id};
use crate::args::{Gateway, Options};
use crate::client::Result;
use crate::fields::{list, text};
use crate::output::{JsonArray, Output};
use crate::registry::Command;
use crate::session::Session;

/// Entries of a page.
const PAGE: usize = 1000;
/// Pause between two looks at what happens.
const PAUSE: Duration = Duration::from_secs(2);

/// Arguments of `tg show-audit`.
#[derive(Debug, Args)]
pub struct ShowAudit {
    #[command(flatten)]
    gateway: Gateway,
    /// Only what is about this workspace [default: everything, which takes a right everywhere]
    #[arg(short = 'w', long, value_name = "ID")]
    workspace: Option<String>,
    /// From then on: a time in ISO 8601, a date, or how long ago, such as 2h or 7d
    #[arg(long, value_name = "TIME", default_value = "1d")]
    since: String,
    /// Until then
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only what this user did, by name or id
    #[arg(long, value_name = "USER")]
    actor: Option<String>,
    /// Only this kind: change, login, allowed, read, refused, stranger, lost
    #[arg(long)]
    kind: Option<String>,
    /// Go on with what happens
    #[arg(short = 'f', long)]
    follow: bool,
}

impl Command for ShowAudit {
    const NAME: &'static str = "show-audit";
    const ABOUT: &'static str = "Show who changed what, who was let do what, and who was refused";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let (given, workspace) = (self.actor.as_deref(), self.workspace.as_ref());
        // Programs get the ids alone.
        let (names, actor) = match (session.out.is_json(), given) {
            (false, given) => names_and_id(session, given, workspace).await?,
            (true, Some(given)) => {
                let id = user_id(session, given, workspace).await?;
                (BTreeMap::new(), Some(id))
            }
            (true, None) => (BTreeMap::new(), None),
        };
        let mut ask = in_workspace(
            json!({"operation": "list-events", "since": self.since, "limit": PAGE}),
            self.workspace,
        );
        for (key, value) in [("until", self.until), ("actor", actor), ("kind", self.kind)] {
            if let Some(value) = value {
                ask[key] = json!(value);
            }
        }
        let mut shown = Shown::new(&session.out, self.follow, names);
        let http = session.http()?;
        loop {
            let page = http.post("api/v1/audit", &ask).await?;
            let mut entries: Vec<&Value> = list(&page, "entries").iter().collect();
            let last = entries.last().and_then(|entry| entry["id"].as_i64());
            if let Some(last) = last {
                ask["after"] = json!(last.to_string());
            }
            // They are numbered as they were kept: what a gateway sends once a second comes late.
            entries.sort_by_key(|entry| text(entry, "time"));
            for entry in entries {
                shown.push(&mut session.out, entry)?;
            }
            if !text(&page, "next").is_empty() {
                continue;
            }
            shown.dropped(&mut session.out, list(&page, "dropped"));
            if !self.follow {
                return shown.end(&mut session.out);
            }
            session.out.flush()?;
            session.pause(PAUSE).await?;
        }
    }
}

/// What is printed so far.
struct Shown {
    array: Option<JsonArray>,
    any: bool,
    told: bool,
    /// Of users, by id.
    names: BTreeMap<String, String>,
}

impl Shown {
    /// What has no end is a line of JSON each.
    fn new(out: &Output, follow: bool, names: BTreeMap<String, String>) -> Self {
        Self {
            array: (out.is_json() && !follow).then(JsonArray::default),
            any: false,
            told: false,
            names,
        }
    }

    fn push(&mut self, out: &mut Output, entry: &Value) -> Result<()> {
        self.any = true;
        match &mut self.array {
            Some(array) => array.push(out, entry),
            None if out.is_json() => out.json_line(entry),
            None => out.line(line(entry, &self.names)),
        }
    }

    /// Said once: what is not there any more.
    fn dropped(&mut self, out: &mut Output, dropped: &[Value]) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        for one in dropped {
            let of = match text(one, "workspace") {
                of if of.is_empty() => String::new(),
                of => format!(" of {of}"),
            };
            out.talk(format!(
                "Not there any more, to make room: {} of kind {}{of}, until {}.",
                one["count"],
                text(one, "kind"),
                text(one, "until")
            ));
        }
    }

    fn end(self, out: &mut Output) -> Result<()> {
        match self.array {
            Some(array) => array.end(out),
            None if !self.any => out.line("Nothing happened."),
            None => Ok(()),
        }
    }
}

/// An entry on a line: when, of which kind, who, what, of what, where, and what came of it.
fn line(entry: &Value, names: &BTreeMap<String, String>) -> String {
    let or = |key: &str, none: &str| match text(entry, key) {
        some if some.is_empty() => none.to_owned(),
        some => some,
    };
    let actor = or("actor", "-");
    let mut words = vec![
        text(entry, "time"),
        format!("{:8}", text(entry, "kind")),
        match names.get(&actor) {
            Some(name) => format!("{name} ({actor})"),
            None => actor,
        },
        text(entry, "operation"),
    ];
    let target = [text(entry, "target-kind"), text(entry, "target")];
    if target.iter().any(|word| !word.is_empty()) {
        words.push(target.join(" ").trim().to_owned());
    }
    for (before, key) in [
        ("in ", "workspace"),
        ("by ", "credential"),
        ("from ", "address"),
        ("because ", "reason"),
    ] {
        let word = text(entry, key);
        if !word.is_empty() {
            words.push(format!("{before}{word}"));
        }
    }
    if entry["count"].as_i64().unwrap_or(1) > 1 {
        words.push(format!("({} times)", entry["count"]));
    }
    if let Some(changes) = entry["changes"].as_object() {
        words.push(told(changes));
    }
    words.join("  ")
}

/// `roles: ["reader"] → ["writer"]`, one after another.
fn told(changes: &Map<String, Value>) -> String {
    let one = |(field, change): (&String, &Value)| {
        let side = |key: &str| change.get(key).map(Value::to_string);
        match (side("before"), side("after")) {
            (Some(before), Some(after)) => format!("{field}: {before} → {after}"),
            (None, Some(after)) => format!("{field}: {after}"),
            (Some(before), None) => format!("{field}: {before} → nothing"),
            (None, None) => field.clone(),
        }
    };
    changes.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_line() {
        let entry = json!({"id": 3, "time": "2030-01-31T08:00:00.000Z", "kind": "change", "count": 1,
            "actor": "boss", "operation": "iam/update-user", "target-kind": "user", "target": "u",
            "workspace": "acme", "credential": "key:k",
            "changes": {"roles": {"before": ["reader"], "after": ["writer"]}, "name": {"after": "Ada"}}});
        let names = BTreeMap::from([("boss".to_owned(), "carl".to_owned())]);
        assert_eq!(
            line(&entry, &names),
            "2030-01-31T08:00:00.000Z  change    carl (boss)  iam/update-user  user u  in acme  by key:k  \
             roles: [\"reader\"] → [\"writer\"], name: \"Ada\""
        );
        let refused = json!({"time": "t", "kind": "stranger", "count": 7, "operation": "authenticate",
            "reason": "bad-credential", "address": "10.0.0.1"});
        assert_eq!(
            line(&refused, &names),
            "t  stranger  -  authenticate  from 10.0.0.1  because bad-credential  (7 times)"
        );
    }
}
