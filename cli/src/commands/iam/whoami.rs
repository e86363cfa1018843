//! `tg whoami`: the caller's own record.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{Gateway, Options};
use crate::client::{Error, Result};
use crate::fields::{text, texts, yes_no};
use crate::layout::{Width, record};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg whoami`.
#[derive(Debug, Args)]
pub struct Whoami {
    #[command(flatten)]
    gateway: Gateway,
}

impl Command for Whoami {
    const NAME: &'static str = "whoami";
    const ABOUT: &'static str = "Show who the token belongs to";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let reply = session.http()?.iam(json!({"operation": "whoami"})).await?;
        let user = reply
            .get("user")
            .filter(|user| user.is_object())
            .ok_or_else(|| Error::Missing("the gateway knows no record of this caller".into()))?;
        session.out.lay(user, |width| render(user, width))
    }
}

fn render(user: &Value, width: Width) -> String {
    let home = match text(user, "workspace") {
        home if home.is_empty() => text(user, "default_workspace"),
        home => home,
    };
    let flag = |key: &str| yes_no(user.get(key).and_then(Value::as_bool) == Some(true));
    let rows = [
        ("id", text(user, "id")),
        ("username", text(user, "username")),
        ("name", text(user, "name")),
        ("email", text(user, "email")),
        ("workspace", home),
        ("roles", texts(user, "roles").join(", ")),
        ("enabled", flag("enabled")),
        ("must change password", flag("must_change_password")),
        ("created", text(user, "created")),
    ];
    record(&rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_workspace_is_shown_under_either_name() {
        let user = json!({"id": "u1", "default_workspace": "acme", "roles": ["admin", "reader"],
            "enabled": true});
        let shown = render(&user, None);
        assert!(shown.contains("acme"));
        assert!(shown.contains("admin, reader"));
        assert!(shown.contains("| enabled              | yes"));
    }
}
