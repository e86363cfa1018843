//! `tg add-grant`, `remove-grant` and `list-grants`, of users and groups; `tg show-permissions`.

use clap::{ArgGroup, Args};
use serde_json::{Value, json};

use super::embedded;
use super::named::user_id;
use super::users::UserId;
use crate::args::{Gateway, Options};
use crate::client::Result;
use crate::fields::{text, texts};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

/// Who has grants.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("holder").required(true).args(["user_id", "group_id"]))]
struct Grantee {
    #[command(flatten)]
    gateway: Gateway,
    /// Id of a user
    #[arg(long, value_name = "ID")]
    user_id: Option<String>,
    /// Id of a group
    #[arg(long, value_name = "ID")]
    group_id: Option<String>,
}

impl Grantee {
    /// A question about its grants, which begins with one of two words.
    fn ask(&self, of_user: &str, of_group: &str) -> Value {
        match (&self.user_id, &self.group_id) {
            (Some(id), _) => json!({"operation": of_user, "user_id": id}),
            (_, id) => json!({"operation": of_group, "group_id": id}),
        }
    }
}

/// A grant and who has it.
#[derive(Debug, Args)]
struct Grant {
    #[command(flatten)]
    holder: Grantee,
    /// A capability such as `triples:read`, or a role, which stands for all of its capabilities
    #[arg(long)]
    capability: String,
    /// Where [default: everywhere]
    #[arg(short = 'w', long, value_name = "ID")]
    workspace: Option<String>,
}

impl Grant {
    async fn call(&self, session: &mut Session, mut ask: Value, done: &str) -> Result<()> {
        let workspace = self.workspace.as_deref().unwrap_or_default();
        ask["grant"] = json!({"capability": self.capability, "workspace": workspace});
        let reply = session.http()?.iam(ask).await?;
        let place = match workspace {
            "" => "everywhere".to_owned(),
            workspace => format!("in {workspace}"),
        };
        session
            .out
            .show(&reply, || format!("{done}: {} {place}", self.capability))
    }
}

/// Arguments of `tg add-grant`.
#[derive(Debug, Args)]
pub struct AddGrant {
    #[command(flatten)]
    grant: Grant,
}

impl Command for AddGrant {
    const NAME: &'static str = "add-grant";
    const ABOUT: &'static str = "Let a user or group do something in a workspace or everywhere";

    fn options(&self) -> Options {
        Options::from(&self.grant.holder.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let ask = self.grant.holder.ask("add-user-grant", "add-group-grant");
        self.grant.call(session, ask, "Granted").await
    }
}

/// Arguments of `tg remove-grant`.
#[derive(Debug, Args)]
pub struct RemoveGrant {
    #[command(flatten)]
    grant: Grant,
}

impl Command for RemoveGrant {
    const NAME: &'static str = "remove-grant";
    const ABOUT: &'static str = "Take back what a user or group was granted";

    fn options(&self) -> Options {
        Options::from(&self.grant.holder.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let ask = self
            .grant
            .holder
            .ask("remove-user-grant", "remove-group-grant");
        self.grant.call(session, ask, "Taken back").await
    }
}

/// Arguments of `tg list-grants`.
#[derive(Debug, Args)]
pub struct ListGrants {
    #[command(flatten)]
    holder: Grantee,
}

impl Command for ListGrants {
    const NAME: &'static str = "list-grants";
    const ABOUT: &'static str = "List what a user or group was granted";

    fn options(&self) -> Options {
        Options::from(&self.holder.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let ask = self.holder.ask("list-user-grants", "list-group-grants");
        let reply = session.http()?.iam(ask).await?;
        let grants = embedded(&reply, "grants_json")?;
        session
            .out
            .lay(&grants, |width| render(&grants, "No grants.", width))
    }
}

/// Arguments of `tg show-permissions`.
#[derive(Debug, Args)]
pub struct ShowPermissions {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    user: UserId,
}

impl Command for ShowPermissions {
    const NAME: &'static str = "show-permissions";
    const ABOUT: &'static str = "Show what a user may do, and by which role, grant or group";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let user = user_id(session, self.user.id(), None).await?;
        let ask = json!({"operation": "resolve-effective-permissions", "user_id": user});
        let http = session.http()?;
        let all = http.all_iam_text(ask, "effective_permissions_json").await?;
        let rows = &all["permissions"];
        session
            .out
            .lay(&all, |width| render(rows, "No permissions.", width))
    }
}

fn render(rows: &Value, none: &str, width: Width) -> String {
    let rows = rows.as_array().map_or(&[][..], Vec::as_slice);
    if rows.is_empty() {
        return none.to_owned();
    }
    let place = |one: &Value| match text(one, "workspace") {
        place if place.is_empty() => "everywhere".to_owned(),
        place => place,
    };
    if rows.iter().all(|one| one.get("sources").is_none()) {
        let rows = rows.iter().map(|one| [text(one, "capability"), place(one)]);
        return table(["capability", "workspace"], rows, width);
    }
    let rows = rows.iter().map(|one| {
        let by = texts(one, "sources").join(", ");
        [text(one, "capability"), place(one), by]
    });
    table(["capability", "workspace", "by"], rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_workspace_reads_everywhere() {
        let rows = json!([{"capability": "rows:read", "workspace": "", "sources": ["user"]}]);
        let shown = render(&rows, "", None);
        assert!(
            shown.contains("| rows:read  | everywhere | user"),
            "{shown}"
        );
        assert_eq!(render(&json!([]), "No grants.", None), "No grants.");
    }
}
