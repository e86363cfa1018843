//! `tg put-config-item`, `get-config-item`, `list-config-items` and `delete-config-item`.

use std::io::Read;

use clap::{ArgGroup, Args, ValueEnum};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::{delete_item, get_item, put_item};
use crate::args::{Common, Options, subject};
use crate::client::{Error, Result};
use crate::fields::texts;
use crate::registry::Command;
use crate::session::Session;

/// How a value or a list of keys is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Arguments of `tg put-config-item`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").required(true).args(["value", "stdin"])))]
pub struct PutConfigItem {
    #[command(flatten)]
    common: Common,
    /// Type of the item
    #[arg(long = "type", value_name = "TYPE")]
    kind: String,
    /// Key of the item
    #[arg(long)]
    key: String,
    /// The value
    #[arg(long)]
    value: Option<String>,
    /// Read the value from standard input
    #[arg(long)]
    stdin: bool,
}

impl Command for PutConfigItem {
    const NAME: &'static str = "put-config-item";
    const ABOUT: &'static str = "Store a configuration item";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let value = match self.value {
            Some(value) => value,
            None => read_stdin()?,
        };
        let http = session.http()?;
        put_item(&http, &self.kind, &self.key, &value).await?;
        if let Some(why) = unreadable(&self.kind, &value) {
            session.out.talk(why);
        }
        let done = json!({"type": self.kind, "key": self.key, "value": value});
        session.out.show(&done, || {
            format!("Configuration item set: {}/{}", self.kind, self.key)
        })
    }
}

/// Types of items that services read as JSON.
const JSON: [&str; 9] = [
    "collection",
    "flow",
    "flow-blueprint",
    "mcp",
    "parameter-type",
    "prompt",
    "schema",
    "token-cost",
    "tool",
];

/// Why no service will understand a value, which is stored all the same: other software may.
fn unreadable(kind: &str, value: &str) -> Option<String> {
    let fault = serde_json::from_slice::<IgnoredAny>(value.as_bytes()).err()?;
    JSON.contains(&kind)
        .then(|| format!("Note: items of type {kind} are JSON, and this value is not ({fault})."))
}

fn read_stdin() -> Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Error::file("<stdin>", error))?;
    Ok(text)
}

/// Arguments of `tg get-config-item`.
#[derive(Debug, Args)]
pub struct GetConfigItem {
    #[command(flatten)]
    common: Common,
    /// Type of the item
    #[arg(long = "type", value_name = "TYPE")]
    kind: String,
    /// Key of the item
    #[arg(long)]
    key: String,
    /// Print the value as it is, or as a JSON string
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

impl Command for GetConfigItem {
    const NAME: &'static str = "get-config-item";
    const ABOUT: &'static str = "Print a configuration item";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let found = get_item(&session.http()?, &self.kind, &self.key).await?;
        let value = found.ok_or_else(|| {
            Error::Missing(format!(
                "there is no configuration item {}/{}",
                self.kind, self.key
            ))
        })?;
        match self.format {
            Format::Json => session.out.line(json!(value).to_string()),
            Format::Text if session.out.is_json() => session.out.line(json!(value).to_string()),
            Format::Text => session.out.line(value),
        }
    }
}

subject!(
    /// The type that is listed.
    ItemType,
    "Type of the items" as "TYPE",
    long = "type"
);

/// Arguments of `tg list-config-items`.
#[derive(Debug, Args)]
pub struct ListConfigItems {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    kind: ItemType,
    /// Print a key a line, or a JSON list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

impl Command for ListConfigItems {
    const NAME: &'static str = "list-config-items";
    const ABOUT: &'static str = "List the keys of a configuration type";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "list", "type": self.kind.id()});
        let reply = session.http()?.all("config", request).await?;
        let keys = texts(&reply, "directory");
        if self.format == Format::Json || session.out.is_json() {
            return session.out.line(Value::from(keys).to_string());
        }
        if keys.is_empty() {
            session.out.talk("None.");
        }
        for key in keys {
            session.out.line(key)?;
        }
        Ok(())
    }
}

/// Arguments of `tg delete-config-item`.
#[derive(Debug, Args)]
pub struct DeleteConfigItem {
    #[command(flatten)]
    common: Common,
    /// Type of the item
    #[arg(long = "type", value_name = "TYPE")]
    kind: String,
    /// Key of the item
    #[arg(long)]
    key: String,
}

impl Command for DeleteConfigItem {
    const NAME: &'static str = "delete-config-item";
    const ABOUT: &'static str = "Remove a configuration item";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        delete_item(&session.http()?, &self.kind, &self.key).await?;
        let done = json!({"type": self.kind, "key": self.key, "deleted": true});
        session.out.show(&done, || {
            format!("Configuration item deleted: {}/{}", self.kind, self.key)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_json_and_is_not_is_told() {
        let told = unreadable("prompt", "{bad").expect("told");
        assert!(told.contains("type prompt are JSON"), "{told}");
        assert_eq!(unreadable("prompt", "\"You are kind.\""), None);
        assert_eq!(unreadable("ontology", "@prefix ex: <urn:x:> ."), None);
    }
}
