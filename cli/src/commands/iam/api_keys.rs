//! `tg create-api-key`, `list-api-keys` and `revoke-api-key`.

use clap::Args;
use serde_json::{Value, json};

use super::in_workspace;
use super::named::user_id;
use crate::args::{Gateway, Options, subject};
use crate::client::{Error, Result};
use crate::fields::{list, text};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg create-api-key`.
#[derive(Debug, Args)]
pub struct CreateApiKey {
    #[command(flatten)]
    gateway: Gateway,
    /// Id or name of the user who gets the key
    #[arg(long, value_name = "ID")]
    user_id: String,
    /// What the key is for, e.g. `laptop`
    #[arg(long)]
    name: String,
    /// When the key ends, ISO 8601; never if not given
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    /// The only capabilities that the key is to have; all of the user's if not given
    #[arg(long, num_args = 1.., value_name = "CAPABILITY")]
    scopes: Vec<String>,
    /// Workspace of the user
    #[arg(short = 'w', long, value_name = "ID")]
    workspace: Option<String>,
}

impl Command for CreateApiKey {
    const NAME: &'static str = "create-api-key";
    const ABOUT: &'static str = "Create an API key and print it, once";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let user = user_id(session, &self.user_id, self.workspace.as_ref()).await?;
        let mut key = json!({"user_id": user, "name": self.name});
        if let Some(expires) = &self.expires {
            check_time(expires)?;
            key["expires"] = json!(expires);
        }
        if !self.scopes.is_empty() {
            key["scopes"] = json!(self.scopes);
        }
        let request = json!({"operation": "create-api-key", "key": key});
        let reply = session
            .http()?
            .iam(in_workspace(request, self.workspace))
            .await?;
        if session.out.is_json() {
            return session.out.json(&reply);
        }
        let record = reply.get("api_key").cloned().unwrap_or_default();
        for (label, field) in [("Key id", "id"), ("Name", "name"), ("Prefix", "prefix")] {
            session
                .out
                .talk(format!("{label}: {}", text(&record, field)));
        }
        session.out.talk("API key (shown this once, keep it now):");
        session.out.line(text(&reply, "api_key_plaintext"))
    }
}

/// A foreign service takes an unreadable time as "never", which nobody wants by accident.
fn check_time(text: &str) -> Result<()> {
    let date = || chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok();
    let local = || chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").is_ok();
    if chrono::DateTime::parse_from_rfc3339(text).is_ok() || local() || date() {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "--expires {text}: not an ISO 8601 time, e.g. 2030-01-31T12:00:00Z"
    )))
}

subject!(
    /// Whose keys are listed.
    UserId,
    "Id or name of the user",
    long = "user-id"
);

subject!(
    /// The key that is revoked.
    KeyId,
    "Id of the key",
    long = "key-id"
);

/// Arguments of `tg list-api-keys`.
#[derive(Debug, Args)]
pub struct ListApiKeys {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    user: UserId,
    /// Workspace of the user
    #[arg(short = 'w', long, value_name = "ID")]
    workspace: Option<String>,
}

impl Command for ListApiKeys {
    const NAME: &'static str = "list-api-keys";
    const ABOUT: &'static str = "List the API keys of a user";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let user = user_id(session, self.user.id(), self.workspace.as_ref()).await?;
        let request = json!({"operation": "list-api-keys", "user_id": user});
        let reply = session
            .http()?
            .all_iam(in_workspace(request, self.workspace))
            .await?;
        let keys = list(&reply, "api_keys");
        session
            .out
            .lay(&Value::from(keys), |width| render(keys, width))
    }
}

fn render(keys: &[Value], width: Width) -> String {
    if keys.is_empty() {
        return "No keys.".to_owned();
    }
    let or = |value: String, absent: &str| match value.is_empty() {
        true => absent.to_owned(),
        false => value,
    };
    let rows = keys.iter().map(|key| {
        [
            text(key, "name"),
            text(key, "id"),
            text(key, "prefix"),
            text(key, "created"),
            or(text(key, "last_used"), "—"),
            or(text(key, "expires"), "never"),
        ]
    });
    table(
        ["name", "id", "prefix", "created", "last used", "expires"],
        rows,
        width,
    )
}

/// Arguments of `tg revoke-api-key`.
#[derive(Debug, Args)]
pub struct RevokeApiKey {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    key: KeyId,
    /// Workspace of the user
    #[arg(short = 'w', long, value_name = "ID")]
    workspace: Option<String>,
}

impl Command for RevokeApiKey {
    const NAME: &'static str = "revoke-api-key";
    const ABOUT: &'static str = "Revoke an API key";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "revoke-api-key", "key_id": self.key.id()});
        let reply = session
            .http()?
            .iam(in_workspace(request, self.workspace))
            .await?;
        session
            .out
            .show(&reply, || format!("Revoked key {}", self.key.id()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_times_read_as_words() {
        let shown = render(
            &[json!({"id": "k1", "name": "ci", "prefix": "tg_abcd",
            "created": "2026-01-01T00:00:00+00:00", "last_used": "", "expires": ""})],
            None,
        );
        assert!(shown.contains("—"));
        assert!(shown.contains("never"));
    }

    #[test]
    fn a_time_that_is_none_is_refused() {
        assert!(check_time("2030-01-31T12:00:00Z").is_ok());
        assert!(check_time("2030-01-31").is_ok());
        assert!(check_time("next year").is_err());
    }
}
