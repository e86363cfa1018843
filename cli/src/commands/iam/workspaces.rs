//! `tg create-workspace`, `list-workspaces`, `list-my-workspaces`, `enable-workspace`,
//! `disable-workspace`, `delete-workspace` and `restore-workspace`.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{Gateway, Options, subject};
use crate::client::{Error, Result};
use crate::fields::{list, text, yes_no};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

subject!(
    /// The workspace that a command is about; a new one must not start with an underscore.
    WorkspaceId,
    "Id of the workspace",
    long = "workspace-id"
);

subject!(
    /// A workspace that is not there any more.
    DeletedId,
    "Id of the workspace that was deleted",
    short = 'w',
    long = "workspace",
    visible_alias = "workspace-id"
);

/// Arguments of `tg create-workspace`.
#[derive(Debug, Args)]
pub struct CreateWorkspace {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    workspace: WorkspaceId,
    /// Name for people
    #[arg(long)]
    name: Option<String>,
}

impl Command for CreateWorkspace {
    const NAME: &'static str = "create-workspace";
    const ABOUT: &'static str = "Create a workspace";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut workspace = json!({"id": self.workspace.id(), "enabled": true});
        if let Some(name) = self.name {
            workspace["name"] = json!(name);
        }
        let http = session.http()?;
        let request = json!({"operation": "get-workspace", "workspace_record": workspace});
        let known = http.iam(request).await.is_ok_and(|reply| {
            let known = reply.get("workspace");
            known.is_some_and(|known| text(known, "id") == self.workspace.id())
        });
        let reply = http
            .iam(json!({"operation": "create-workspace", "workspace_record": workspace}))
            .await?;
        let made = reply.get("workspace").unwrap_or(&workspace);
        let id = self.workspace.id();
        let told = match known {
            true => format!("Workspace {id} exists already."),
            false => session.out.as_called(&format!(
                "Workspace {id} is created. It has no flow yet: tg start-flow default -n everything -w {id}"
            )),
        };
        session.out.show(made, || told)
    }
}

/// Arguments of `tg list-workspaces`.
#[derive(Debug, Args)]
pub struct ListWorkspaces {
    #[command(flatten)]
    gateway: Gateway,
}

impl Command for ListWorkspaces {
    const NAME: &'static str = "list-workspaces";
    const ABOUT: &'static str = "List all workspaces (administrators)";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        show_list(session, "list-workspaces").await
    }
}

/// Arguments of `tg list-my-workspaces`.
#[derive(Debug, Args)]
pub struct ListMyWorkspaces {
    #[command(flatten)]
    gateway: Gateway,
}

impl Command for ListMyWorkspaces {
    const NAME: &'static str = "list-my-workspaces";
    const ABOUT: &'static str = "List the workspaces the caller may use";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        show_list(session, "list-my-workspaces").await
    }
}

async fn show_list(session: &mut Session, operation: &str) -> Result<()> {
    let request = json!({"operation": operation});
    let reply = session.http()?.all_iam(request).await?;
    let workspaces = list(&reply, "workspaces");
    session
        .out
        .lay(&Value::from(workspaces), |width| render(workspaces, width))
}

fn render(workspaces: &[Value], width: Width) -> String {
    if workspaces.is_empty() {
        return "No workspaces.".to_owned();
    }
    let rows = workspaces.iter().map(|workspace| {
        [
            text(workspace, "id"),
            text(workspace, "name"),
            yes_no(workspace.get("enabled").and_then(Value::as_bool) == Some(true)),
            text(workspace, "created"),
        ]
    });
    table(["id", "name", "enabled", "created"], rows, width)
}

/// The workspace that a command changes.
#[derive(Debug, Args)]
struct Target {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    workspace: WorkspaceId,
}

impl Target {
    async fn call(&self, session: &mut Session, operation: &str, done: &str) -> Result<()> {
        let reply = session
            .http()?
            .iam(json!({
                "operation": operation,
                "workspace_record": {"id": self.workspace.id(), "enabled": operation == "enable-workspace"},
            }))
            .await?;
        let shown = reply.get("workspace").unwrap_or(&reply);
        session.out.show(shown, || {
            format!("Workspace {done}: {}", self.workspace.id())
        })
    }
}

/// Arguments of `tg enable-workspace`.
#[derive(Debug, Args)]
pub struct EnableWorkspace {
    #[command(flatten)]
    target: Target,
}

impl Command for EnableWorkspace {
    const NAME: &'static str = "enable-workspace";
    const ABOUT: &'static str = "Switch a workspace on again";

    fn options(&self) -> Options {
        Options::from(&self.target.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        self.target
            .call(session, "enable-workspace", "enabled")
            .await
    }
}

/// Arguments of `tg restore-workspace`.
#[derive(Debug, Args)]
pub struct RestoreWorkspace {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    workspace: DeletedId,
}

impl Command for RestoreWorkspace {
    const NAME: &'static str = "restore-workspace";
    const ABOUT: &'static str =
        "Bring a deleted workspace back, with its data; flows, users and keys are not restored";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let record = json!({"id": self.workspace.id(), "enabled": true});
        let reply = session
            .http()?
            .iam(json!({"operation": "restore-workspace", "workspace_record": record}))
            .await;
        let reply = reply.map_err(|error| match error {
            Error::Service { message, .. } if message == "workspace: was not deleted" => {
                Error::Missing(format!(
                    "there is no deleted workspace '{}'",
                    self.workspace.id()
                ))
            }
            error => error,
        })?;
        let shown = reply.get("workspace").unwrap_or(&reply);
        session.out.show(shown, || {
            format!("Workspace restored: {}", self.workspace.id())
        })
    }
}

/// Arguments of `tg disable-workspace`.
#[derive(Debug, Args)]
pub struct DisableWorkspace {
    #[command(flatten)]
    target: Target,
}

impl Command for DisableWorkspace {
    const NAME: &'static str = "disable-workspace";
    const ABOUT: &'static str = "Switch a workspace off, with its users and their keys";

    fn options(&self) -> Options {
        Options::from(&self.target.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        self.target
            .call(session, "disable-workspace", "disabled")
            .await
    }
}

/// Arguments of `tg delete-workspace`.
#[derive(Debug, Args)]
pub struct DeleteWorkspace {
    #[command(flatten)]
    target: Target,
    /// Do it without asking again
    #[arg(long, short = 'y')]
    yes: bool,
}

impl Command for DeleteWorkspace {
    const NAME: &'static str = "delete-workspace";
    const ABOUT: &'static str = "Delete a workspace: its flows stop, what it owned is removed";

    fn options(&self) -> Options {
        Options::from(&self.target.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        if !self.yes {
            return Err(Error::Usage(format!(
                "this removes everything that workspace {} owns; add --yes to do it",
                self.target.workspace.id()
            )));
        }
        self.target
            .call(session, "delete-workspace", "deleted")
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_says_so() {
        assert_eq!(render(&[], None), "No workspaces.");
    }

    #[test]
    fn a_disabled_workspace_reads_no() {
        let shown = render(
            &[json!({"id": "acme", "name": "Acme", "enabled": false})],
            None,
        );
        assert!(shown.contains("| acme | Acme | no "));
    }
}
