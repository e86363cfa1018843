//! `tg get-flow-blueprint`, `put-flow-blueprint` and `delete-flow-blueprint`.

use clap::Args;
use serde_json::{Value, json};
use tg_schemas::ErrorCode;

use super::Definition;
use super::check_blueprint::{check_request, render};
use crate::args::{Common, Options, subject};
use crate::client::{Error, Http, Result};
use crate::fields::{embedded, list};
use crate::registry::Command;
use crate::session::Session;

subject!(
    /// The blueprint that a command is about.
    BlueprintName,
    "Name of the blueprint" as "NAME",
    short = 'n',
    long = "blueprint-name"
);

/// Arguments of `tg get-flow-blueprint`.
#[derive(Debug, Args)]
pub struct GetFlowBlueprint {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    blueprint: BlueprintName,
}

impl Command for GetFlowBlueprint {
    const NAME: &'static str = "get-flow-blueprint";
    const ABOUT: &'static str = "Print a flow blueprint as JSON";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let name = self.blueprint.id();
        let request = json!({"operation": "get-blueprint", "blueprint-name": name});
        let reply = session.http()?.service("flow", request).await?;
        match embedded(&reply, "blueprint-definition") {
            Value::Null => Err(Error::Missing(format!("there is no blueprint '{name}'"))),
            definition => session.out.json(&definition),
        }
    }
}

/// Arguments of `tg put-flow-blueprint`.
#[derive(Debug, Args)]
pub struct PutFlowBlueprint {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    blueprint: BlueprintName,
    #[command(flatten)]
    definition: Definition,
}

impl Command for PutFlowBlueprint {
    const NAME: &'static str = "put-flow-blueprint";
    const ABOUT: &'static str = "Store a flow blueprint, if it is valid";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let definition = self.definition.read()?;
        let request = json!({
            "operation": "put-blueprint",
            "blueprint-name": self.blueprint.id(),
            "blueprint-definition": definition.to_string(),
        });
        let http = session.http()?;
        match http.service("flow", request).await {
            Ok(reply) => session.out.show(&reply, String::new),
            Err(error) => {
                if error.code() == Some(ErrorCode::BadRequest) && !session.out.is_json() {
                    self.explain(session, &http, &definition).await;
                }
                Err(error)
            }
        }
    }
}

impl PutFlowBlueprint {
    /// Says where the faults are; without that the refusal stands for itself.
    async fn explain(&self, session: &mut Session, http: &Http, definition: &Value) {
        let request = check_request(self.blueprint.id(), definition);
        if let Ok(reply) = http.service("flow", request).await {
            let faults = list(&reply, "faults");
            if !faults.is_empty() {
                let width = session.out.width();
                session.out.talk(render(faults, width));
            }
        }
    }
}

/// Arguments of `tg delete-flow-blueprint`.
#[derive(Debug, Args)]
pub struct DeleteFlowBlueprint {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    blueprint: BlueprintName,
}

impl Command for DeleteFlowBlueprint {
    const NAME: &'static str = "delete-flow-blueprint";
    const ABOUT: &'static str = "Remove a flow blueprint that no flow uses";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request =
            json!({"operation": "delete-blueprint", "blueprint-name": self.blueprint.id()});
        let reply = session.http()?.service("flow", request).await?;
        session.out.show(&reply, String::new)
    }
}
