//! `tg call`: asks any operation that is declared as a type, also one that has no command of its own. It never knows one by name.

use clap::Args;
use serde_json::Value;
use tg_schemas::operations::{ALL, Effect, Meta, Object};

use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::completing;
use crate::find::like;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg call`.
#[derive(Debug, Args)]
pub struct CallOperation {
    #[command(flatten)]
    common: Common,
    /// Operation of agents and sessions, as in `list-conversations`
    #[arg(value_name = "OPERATION")]
    operation: String,
    /// Field of the request and its value, as in `user_id=ann`: JSON, else a text
    #[arg(value_name = "KEY=VALUE")]
    fields: Vec<String>,
    /// Do what cannot be taken back
    #[arg(long, short = 'y')]
    yes: bool,
}

impl Command for CallOperation {
    const NAME: &'static str = "call";
    const ABOUT: &'static str = "Call an operation of agents and sessions by its name";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn adjust(command: clap::Command) -> clap::Command {
        command
            .mut_arg("operation", |arg| arg.add(completing::operations()))
            .mut_arg("fields", |arg| arg.add(completing::fields()))
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let meta = declared(&self.operation).map_err(Error::Usage)?;
        let mut request = request(meta, &self.fields, self.yes).map_err(Error::Usage)?;
        request.insert("operation".to_owned(), meta.name.into());
        let http = session.http()?;
        let mut reply = http.service(meta.service, Value::Object(request)).await?;
        let result = reply.get_mut("result").map_or(Value::Null, Value::take);
        session.out.json(&result)
    }
}

/// What is said of an operation.
fn declared(name: &str) -> std::result::Result<&'static Meta, String> {
    if let Some(meta) = ALL.iter().find(|meta| meta.name == name) {
        return Ok(meta);
    }
    let all: Vec<_> = ALL.iter().map(|meta| (meta.name, meta.summary)).collect();
    let near: Vec<&str> = like(name, &all).into_iter().map(|row| row.0).collect();
    Err(match near.is_empty() {
        true => format!("there is no operation '{name}'"),
        false => format!(
            "there is no operation '{name}'; did you mean {}?",
            near.join(", ")
        ),
    })
}

/// The request with these fields.
fn request(meta: &Meta, fields: &[String], yes: bool) -> std::result::Result<Object, String> {
    let pair = |text: &String| {
        let (key, value) = text.split_once('=')?;
        let value = serde_json::from_slice(value.as_bytes()).unwrap_or_else(|_| value.into());
        Some((key.to_owned(), value))
    };
    let pairs: Option<Object> = fields.iter().map(pair).collect();
    let request = pairs.ok_or("a field is KEY=VALUE")?;
    match meta.effect == Effect::Confirm && !yes {
        true => Err("this cannot be taken back; add --yes to do it".to_owned()),
        false => Ok(request),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(operation: &str, fields: &[&str], yes: bool) -> std::result::Result<Value, String> {
        let fields: Vec<String> = fields.iter().map(|one| (*one).to_owned()).collect();
        request(declared(operation)?, &fields, yes).map(Value::Object)
    }

    #[test]
    fn fields_are_json_or_texts() {
        let told = read(
            "list-sessions",
            &["name=ann", "limit=3", "user_id=a=b"],
            false,
        );
        let expected = json!({"name": "ann", "limit": 3, "user_id": "a=b"});
        assert_eq!(told, Ok(expected));
        assert!(read("list-sessions", &["name"], false).is_err());
    }

    #[test]
    fn nothing_is_deleted_without_yes() {
        for meta in ALL.iter().filter(|meta| meta.effect == Effect::Confirm) {
            assert!(request(meta, &[], false).is_err(), "{}", meta.name);
            assert!(request(meta, &[], true).is_ok(), "{}", meta.name);
        }
    }

    #[test]
    fn a_slip_is_named() {
        let why = declared("list-sesions").unwrap_err();
        assert!(why.contains("list-sessions"), "{why}");
    }
}
