//! `tg create-user`, `list-users`, `update-user`, `disable-user`, `enable-user` and `delete-user`.

use clap::Args;
use serde_json::{Value, json};

use super::named::user_id;
use super::passwords::password;
use super::{in_workspace, yes_or_no};
use crate::args::{Gateway, Options, subject};
use crate::client::{Error, Result};
use crate::fields::{list, text, texts, yes_no};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

subject!(
    /// The user that a command is about.
    UserId,
    "Id or name of the user",
    long = "user-id"
);

subject!(
    /// The name of a new user.
    Username,
    "Name to log in with, unique over all workspaces" as "NAME",
    long = "username"
);

/// Arguments of `tg create-user`.
#[derive(Debug, Args)]
pub struct CreateUser {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    user: Username,
    /// Password; asked for, or the first line of standard input, if not given
    #[arg(long, value_name = "TEXT", conflicts_with = "without")]
    password: Option<String>,
    /// No password: the user comes in by API keys only
    #[arg(long = "no-password", id = "without")]
    without: bool,
    /// Name for people
    #[arg(long)]
    name: Option<String>,
    /// Mail address
    #[arg(long)]
    email: Option<String>,
    /// Roles: reader and writer reach the home workspace only; admin may do everything in every workspace. `tg add-grant`
    /// gives more in one workspace alone
    #[arg(long, num_args = 1.., value_name = "ROLE", default_values = ["reader"])]
    roles: Vec<String>,
    /// Say that the password is to be changed
    #[arg(long)]
    must_change_password: bool,
    /// Home workspace of the user [default: the caller's own]
    #[arg(short = 'w', long, value_name = "ID")]
    workspace: Option<String>,
}

impl Command for CreateUser {
    const NAME: &'static str = "create-user";
    const ABOUT: &'static str = "Create a user";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut user = json!({"username": self.user.id(), "roles": self.roles,
            "must_change_password": self.must_change_password});
        if !self.without {
            let prompt = format!("Password of {}: ", self.user.id());
            user["password"] = json!(password(self.password, prompt).await?);
        }
        for (key, value) in [("name", self.name), ("email", self.email)] {
            if let Some(value) = value {
                user[key] = json!(value);
            }
        }
        let mut ask = json!({"operation": "create-user", "user": user});
        if let Some(home) = self.workspace {
            ask["workspace"] = json!(home);
        }
        let reply = session.http()?.iam(ask).await?;
        let made = &reply["user"];
        if session.out.is_json() {
            return session.out.json(made);
        }
        let home = text(made, "default_workspace");
        session.out.talk(format!(
            "User {} is created in {home}:",
            text(made, "username")
        ));
        session.out.line(text(made, "id"))
    }
}

/// Arguments of `tg list-users`.
#[derive(Debug, Args)]
pub struct ListUsers {
    #[command(flatten)]
    gateway: Gateway,
    /// Only users at home in this workspace
    #[arg(short = 'w', long, value_name = "ID")]
    workspace: Option<String>,
}

impl Command for ListUsers {
    const NAME: &'static str = "list-users";
    const ABOUT: &'static str = "List the users";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let ask = in_workspace(json!({"operation": "list-users"}), self.workspace);
        let reply = session.http()?.all_iam(ask).await?;
        let users = list(&reply, "users");
        session
            .out
            .lay(&Value::from(users), |width| render(users, width))
    }
}

fn render(users: &[Value], width: Width) -> String {
    if users.is_empty() {
        return "No users.".to_owned();
    }
    let rows = users.iter().map(|user| {
        [
            text(user, "username"),
            text(user, "id"),
            text(user, "default_workspace"),
            texts(user, "roles").join(", "),
            yes_no(user.get("enabled").and_then(Value::as_bool) == Some(true)),
        ]
    });
    table(
        ["username", "id", "workspace", "roles", "enabled"],
        rows,
        width,
    )
}

/// Arguments of `tg update-user`.
#[derive(Debug, Args)]
pub struct UpdateUser {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    user: UserId,
    /// Name for people
    #[arg(long)]
    name: Option<String>,
    /// Mail address
    #[arg(long)]
    email: Option<String>,
    /// All roles from now on: reader and writer reach the home workspace only; admin may do everything in every workspace
    #[arg(long, num_args = 1.., value_name = "ROLE")]
    roles: Option<Vec<String>>,
    /// Whether the user may come in
    #[arg(long, num_args = 0..=1, default_missing_value = "yes", value_name = "yes|no", value_parser = yes_or_no())]
    enabled: Option<bool>,
    /// Whether the password is to be changed
    #[arg(long, num_args = 0..=1, default_missing_value = "yes", value_name = "yes|no", value_parser = yes_or_no())]
    must_change_password: Option<bool>,
    /// Workspace of the user
    #[arg(short = 'w', long, value_name = "ID")]
    workspace: Option<String>,
}

impl Command for UpdateUser {
    const NAME: &'static str = "update-user";
    const ABOUT: &'static str = "Change what is said of a user; the rest stays";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let said = [
            ("name", self.name.clone().map(Value::from)),
            ("email", self.email.clone().map(Value::from)),
            ("roles", self.roles.clone().map(Value::from)),
            ("enabled", self.enabled.map(Value::from)),
            (
                "must_change_password",
                self.must_change_password.map(Value::from),
            ),
        ];
        let said = said
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let user: serde_json::Map<String, Value> = said.collect();
        if user.is_empty() {
            return Err(Error::Usage("nothing is to be changed".to_owned()));
        }
        let id = user_id(session, self.user.id(), self.workspace.as_ref()).await?;
        let ask = in_workspace(
            json!({"operation": "update-user", "user_id": id, "user": user}),
            self.workspace,
        );
        let reply = session.http()?.iam(ask).await?;
        let users = [reply["user"].clone()];
        session.out.lay(&users[0], |width| render(&users, width))
    }
}

/// The user whom a command changes.
#[derive(Debug, Args)]
struct Target {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    user: UserId,
    /// Workspace of the user
    #[arg(short = 'w', long, value_name = "ID")]
    workspace: Option<String>,
}

impl Target {
    async fn call(&self, session: &mut Session, operation: &str, done: &str) -> Result<()> {
        let id = user_id(session, self.user.id(), self.workspace.as_ref()).await?;
        let ask = in_workspace(
            json!({"operation": operation, "user_id": id}),
            self.workspace.clone(),
        );
        let reply = session.http()?.iam(ask).await?;
        session
            .out
            .show(&reply, || format!("User {done}: {}", self.user.id()))
    }
}

/// Arguments of `tg disable-user`.
#[derive(Debug, Args)]
pub struct DisableUser {
    #[command(flatten)]
    target: Target,
}

impl Command for DisableUser {
    const NAME: &'static str = "disable-user";
    const ABOUT: &'static str = "Switch a user off: their keys are removed, their tokens end";

    fn options(&self) -> Options {
        Options::from(&self.target.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        self.target.call(session, "disable-user", "disabled").await
    }
}

/// Arguments of `tg enable-user`.
#[derive(Debug, Args)]
pub struct EnableUser {
    #[command(flatten)]
    target: Target,
}

impl Command for EnableUser {
    const NAME: &'static str = "enable-user";
    const ABOUT: &'static str = "Switch a user on again; keys and tokens do not come back";

    fn options(&self) -> Options {
        Options::from(&self.target.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        self.target.call(session, "enable-user", "enabled").await
    }
}

/// Arguments of `tg delete-user`.
#[derive(Debug, Args)]
pub struct DeleteUser {
    #[command(flatten)]
    target: Target,
    /// Do it without asking again
    #[arg(long, short = 'y')]
    yes: bool,
}

impl Command for DeleteUser {
    const NAME: &'static str = "delete-user";
    const ABOUT: &'static str = "Delete a user, with their keys and grants";

    fn options(&self) -> Options {
        Options::from(&self.target.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        if !self.yes {
            let text = format!(
                "this deletes user {}; add --yes to do it",
                self.target.user.id()
            );
            return Err(Error::Usage(text));
        }
        self.target.call(session, "delete-user", "deleted").await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_gives_a_role_reads_how_far_it_reaches() {
        let helps = [
            CreateUser::augment_args(clap::Command::new("a")),
            UpdateUser::augment_args(clap::Command::new("b")),
        ];
        for mut help in helps {
            let text = help.render_long_help().to_string();
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let told = "admin may do everything in every workspace";
            assert!(text.contains(told), "{text}");
        }
    }

    #[test]
    fn users_are_listed_with_what_commands_take() {
        assert_eq!(render(&[], None), "No users.");
        let user = json!({"id": "u1", "username": "ada", "default_workspace": "acme",
            "roles": ["reader", "writer"], "enabled": false});
        let shown = render(&[user], None);
        assert!(
            shown.contains("| ada      | u1 | acme      | reader, writer | no "),
            "{shown}"
        );
    }
}
