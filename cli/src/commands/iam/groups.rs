//! `tg create-group`, `list-groups`, `update-group`, `delete-group`, and who is in them.

use clap::Args;
use serde_json::{Value, json};

use super::{embedded, yes_or_no};
use crate::args::{Gateway, Options, subject};
use crate::client::{Error, Result};
use crate::fields::{text, yes_no};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

subject!(
    /// The group that a command is about.
    GroupId,
    "Id of the group",
    long = "group-id"
);

subject!(
    /// The name of a new group.
    GroupName,
    "Name of the group" as "NAME",
    long = "name"
);

/// Arguments of `tg create-group`.
#[derive(Debug, Args)]
pub struct CreateGroup {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    name: GroupName,
    /// What it is for
    #[arg(long, default_value = "")]
    description: String,
}

impl Command for CreateGroup {
    const NAME: &'static str = "create-group";
    const ABOUT: &'static str = "Create a group of users who are granted something together";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let group = json!({"name": self.name.id(), "description": self.description});
        let ask = json!({"operation": "create-group", "group": group});
        let reply = session.http()?.iam(ask).await?;
        let group = embedded(&reply, "group_json")?;
        session.out.show(&group, || {
            format!(
                "Group {} is created: {}",
                text(&group, "name"),
                text(&group, "id")
            )
        })
    }
}

/// Arguments of `tg list-groups`.
#[derive(Debug, Args)]
pub struct ListGroups {
    #[command(flatten)]
    gateway: Gateway,
}

impl Command for ListGroups {
    const NAME: &'static str = "list-groups";
    const ABOUT: &'static str = "List the groups";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let reply = session
            .http()?
            .iam(json!({"operation": "list-groups"}))
            .await?;
        let groups = embedded(&reply, "groups_json")?;
        session.out.lay(&groups, |width| render(&groups, width))
    }
}

fn render(groups: &Value, width: Width) -> String {
    let groups = groups.as_array().map_or(&[][..], Vec::as_slice);
    if groups.is_empty() {
        return "No groups.".to_owned();
    }
    let rows = groups.iter().map(|group| {
        [
            text(group, "name"),
            text(group, "id"),
            text(group, "description"),
            yes_no(group.get("enabled").and_then(Value::as_bool) == Some(true)),
        ]
    });
    table(["name", "id", "description", "enabled"], rows, width)
}

/// Arguments of `tg update-group`.
#[derive(Debug, Args)]
pub struct UpdateGroup {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    group: GroupId,
    /// Name
    #[arg(long)]
    name: Option<String>,
    /// What it is for
    #[arg(long)]
    description: Option<String>,
    /// Whether its grants count
    #[arg(long, num_args = 0..=1, default_missing_value = "yes", value_name = "yes|no", value_parser = yes_or_no())]
    enabled: Option<bool>,
}

impl Command for UpdateGroup {
    const NAME: &'static str = "update-group";
    const ABOUT: &'static str = "Change what is said of a group; the rest stays";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let said = [
            ("name", self.name.clone().map(Value::from)),
            ("description", self.description.clone().map(Value::from)),
            ("enabled", self.enabled.map(Value::from)),
        ];
        let said = said
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let group: serde_json::Map<String, Value> = said.collect();
        if group.is_empty() {
            return Err(Error::Usage("nothing is to be changed".to_owned()));
        }
        let ask = json!({"operation": "update-group", "group_id": self.group.id(), "group": group});
        let reply = session.http()?.iam(ask).await?;
        let groups = json!([embedded(&reply, "group_json")?]);
        session.out.lay(&groups[0], |width| render(&groups, width))
    }
}

/// Arguments of `tg delete-group`.
#[derive(Debug, Args)]
pub struct DeleteGroup {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    group: GroupId,
    /// Do it without asking again
    #[arg(long, short = 'y')]
    yes: bool,
}

impl Command for DeleteGroup {
    const NAME: &'static str = "delete-group";
    const ABOUT: &'static str = "Delete a group; its members lose what it was granted";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let id = self.group.id();
        if !self.yes {
            let text = format!("this deletes group {id}; add --yes to do it");
            return Err(Error::Usage(text));
        }
        let ask = json!({"operation": "delete-group", "group_id": id});
        let reply = session.http()?.iam(ask).await?;
        session.out.show(&reply, || format!("Group deleted: {id}"))
    }
}

/// A group and a user.
#[derive(Debug, Args)]
struct Member {
    #[command(flatten)]
    gateway: Gateway,
    /// Id of the group
    #[arg(long, value_name = "ID")]
    group_id: String,
    /// Id of the user
    #[arg(long, value_name = "ID")]
    user_id: String,
}

impl Member {
    async fn call(&self, session: &mut Session, operation: &str, done: &str) -> Result<()> {
        let ask = json!({"operation": operation, "group_id": self.group_id, "member_type": "user",
            "member_id": self.user_id});
        let reply = session.http()?.iam(ask).await?;
        session.out.show(&reply, || done.to_owned())
    }
}

/// Arguments of `tg add-group-member`.
#[derive(Debug, Args)]
pub struct AddGroupMember {
    #[command(flatten)]
    member: Member,
}

impl Command for AddGroupMember {
    const NAME: &'static str = "add-group-member";
    const ABOUT: &'static str = "Add a user to a group";

    fn options(&self) -> Options {
        Options::from(&self.member.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        self.member.call(session, Self::NAME, "Member added.").await
    }
}

/// Arguments of `tg remove-group-member`.
#[derive(Debug, Args)]
pub struct RemoveGroupMember {
    #[command(flatten)]
    member: Member,
}

impl Command for RemoveGroupMember {
    const NAME: &'static str = "remove-group-member";
    const ABOUT: &'static str = "Take a user out of a group";

    fn options(&self) -> Options {
        Options::from(&self.member.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        self.member
            .call(session, Self::NAME, "Member removed.")
            .await
    }
}

/// Arguments of `tg list-group-members`.
#[derive(Debug, Args)]
pub struct ListGroupMembers {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    group: GroupId,
}

impl Command for ListGroupMembers {
    const NAME: &'static str = "list-group-members";
    const ABOUT: &'static str = "List the users in a group";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let ask = json!({"operation": "list-group-members", "group_id": self.group.id()});
        let reply = session.http()?.iam(ask).await?;
        let members = embedded(&reply, "members_json")?;
        session.out.lay(&members, |width| {
            let rows = members.as_array().into_iter().flatten();
            let rows: Vec<_> = rows
                .map(|one| [text(one, "username"), text(one, "member_id")])
                .collect();
            match rows.is_empty() {
                true => "No members.".to_owned(),
                false => table(["username", "id"], rows, width),
            }
        })
    }
}
