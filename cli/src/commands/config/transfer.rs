//! The configuration of a workspace as a file: `tg export-workspace-config`, `tg import-workspace-config`.
//!
//! Only what people set goes over: what a system keeps of itself (flows, collections, processors) does not.

use std::path::Path;

use clap::Args;
use serde_json::{Map, Value, json};

use super::masked::{left_out, take_masked, why};
use super::put_items;
use crate::args::{Common, Options, subject};
use crate::client::{Error, Result};
use crate::fields::text;
use crate::files::read_text;
use crate::registry::Command;
use crate::session::Session;

/// Config types that go over.
const TYPES: [&str; 13] = [
    "mcp",
    "mcp-tool",
    "tool",
    "flow-blueprint",
    "token-cost",
    "agent-pattern",
    "agent-task-type",
    "agent-definition",
    "parameter-type",
    "interface-description",
    "prompt",
    "schema",
    "ontology",
];

subject!(
    file
    /// Where the configuration goes.
    TargetFile,
    "File to write; - is standard output",
    short = 'o',
    long = "output"
);

subject!(
    file
    /// Where the configuration comes from.
    SourceFile,
    "File to read; - is standard input",
    short = 'i',
    long = "input"
);

/// Arguments of `tg export-workspace-config`.
#[derive(Debug, Args)]
pub struct ExportWorkspaceConfig {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    output: TargetFile,
}

impl Command for ExportWorkspaceConfig {
    const NAME: &'static str = "export-workspace-config";
    const ABOUT: &'static str = "Save the configuration of a workspace as JSON";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "config"});
        let reply = session.http()?.all("config", request).await?;
        let Some(Value::Object(config)) = reply.get("config") else {
            return Err(Error::Protocol("no config in the reply".to_owned()));
        };
        let workspace = session.options.workspace.clone();
        let mut kept = chosen(config);
        let masked = take_masked(&mut kept);
        let items = count(&kept);
        let payload = json!({
            "source_workspace": workspace.unwrap_or_else(|| "default".to_owned()),
            "source_version": reply.get("version"),
            "config": kept,
        });
        if self.output.path() == Path::new("-") {
            session.out.json(&payload)?;
        } else {
            std::fs::write(self.output.path(), format!("{payload:#}\n"))
                .map_err(|error| Error::file(self.output.path(), error))?;
            let done = json!({"file": self.output.path().display().to_string(), "items": items});
            if session.out.is_json() {
                session.out.json(&done)?;
            }
        }
        let version = text(&reply, "version");
        session
            .out
            .talk(format!("Exported {items} items (version {version})."));
        if let Some(text) = left_out(&masked) {
            session.out.talk(text);
        }
        Ok(())
    }
}

/// Arguments of `tg import-workspace-config`.
#[derive(Debug, Args)]
pub struct ImportWorkspaceConfig {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    input: SourceFile,
    /// Only say what would be imported
    #[arg(long)]
    dry_run: bool,
}

impl Command for ImportWorkspaceConfig {
    const NAME: &'static str = "import-workspace-config";
    const ABOUT: &'static str = "Put a saved configuration into a workspace";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let file = read_text(self.input.path())?;
        let payload: Value = serde_json::from_slice(file.as_bytes())
            .map_err(|error| Error::file(self.input.path(), error))?;
        let config = match payload.get("config") {
            Some(Value::Object(config)) => config,
            _ => payload
                .as_object()
                .ok_or_else(|| Error::file(self.input.path(), "is not a JSON object"))?,
        };
        let left: Vec<&String> = config
            .keys()
            .filter(|kind| !TYPES.contains(&kind.as_str()) && config[*kind].is_object())
            .collect();
        if !left.is_empty() {
            session
                .out
                .talk(format!("Left out, as they belong to a system: {left:?}"));
        }
        let mut wanted = chosen(config);
        let masked = take_masked(&mut wanted);
        let values = values(&wanted);
        let items = values.len();
        if items > 0 && !self.dry_run {
            put_items(&session.http()?, values).await?;
        }
        let done = json!({"items": items, "dry-run": self.dry_run});
        let dry = self.dry_run;
        session.out.show(&done, || match (items, dry) {
            (0, _) => "Nothing to import.".to_owned(),
            (items, true) => format!("[dry-run] would import {items} items."),
            (items, false) => format!("Imported {items} items."),
        })?;
        match masked.is_empty() {
            true => Ok(()),
            false => Err(Error::Check(format!(
                "not imported, as each {}: {}",
                why(),
                masked.join(", ")
            ))),
        }
    }
}

/// The types that go over.
fn chosen(config: &Map<String, Value>) -> Map<String, Value> {
    config
        .iter()
        .filter(|(kind, rows)| TYPES.contains(&kind.as_str()) && rows.is_object())
        .map(|(kind, rows)| (kind.clone(), rows.clone()))
        .collect()
}

fn count(config: &Map<String, Value>) -> usize {
    config
        .values()
        .filter_map(Value::as_object)
        .map(Map::len)
        .sum()
}

/// The rows for `put`. A value that is no text is written as the JSON it is.
fn values(config: &Map<String, Value>) -> Vec<Value> {
    let mut values = Vec::new();
    for (kind, rows) in config {
        for (key, value) in rows.as_object().into_iter().flatten() {
            let value = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            values.push(json!({"type": kind, "key": key, "value": value}));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_system_stays() {
        let config = json!({
            "prompt": {"system": "\"Be brief.\""},
            "flow": {"default": "{}"},
            "tool": {"t": {"name": "t"}},
            "version": 3,
        });
        let kept = chosen(config.as_object().expect("an object"));
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["prompt", "tool"]);
        assert_eq!(count(&kept), 2);
        assert_eq!(
            values(&kept),
            [
                json!({"type": "prompt", "key": "system", "value": "\"Be brief.\""}),
                json!({"type": "tool", "key": "t", "value": "{\"name\":\"t\"}"}),
            ]
        );
    }
}
