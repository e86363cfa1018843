//! What a command was asked about, so that an error can name it. It asks nothing.

use clap::ArgMatches;
use tg_schemas::ErrorCode;

use crate::client::Error;

/// What the arguments name.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The one thing that the command is about.
    id: Option<String>,
    /// The flow that it asks.
    flow: Option<String>,
    /// Whether it works in a workspace.
    scoped: bool,
}

impl About {
    /// Reads it off the arguments, whichever of them the command has.
    pub fn read(matches: &ArgMatches) -> Self {
        let given = |id: &str| matches.try_get_one::<String>(id).ok().flatten().cloned();
        Self {
            id: given("bare").or_else(|| given("named")),
            flow: given("flow_id"),
            scoped: matches.try_get_one::<String>("workspace").is_ok(),
        }
    }

    /// An error of a service that something is not there, with its name and its workspace. Others stay as they are.
    pub fn named(&self, workspace: Option<&str>, error: Error) -> Error {
        let place = match workspace {
            _ if !self.scoped => String::new(),
            Some(workspace) => format!(" in workspace {workspace}"),
            None => " in your workspace".to_owned(),
        };
        if let (true, Some(workspace)) = (error.is_missing_workspace(), workspace) {
            return Error::Missing(format!("There is no workspace {workspace}"));
        }
        let (Error::Service { message, .. }, Some(ErrorCode::NotFound)) = (&error, error.code())
        else {
            return error;
        };
        if message == "Flow ID invalid"
            && let Some(flow) = self.id.as_ref().or(self.flow.as_ref())
        {
            return Error::Missing(format!("Flow {flow} does not run{place}"));
        }
        match &self.id {
            Some(id) if !message.contains(id.as_str()) => {
                let message = message.strip_prefix("id: ").unwrap_or(message);
                Error::Missing(format!("{message}{place}: {id}"))
            }
            _ => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(kind: &str, message: &str) -> Error {
        Error::Service {
            kind: kind.to_owned(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn what_is_not_there_is_named_with_its_workspace() {
        let about = About {
            id: Some("second".to_owned()),
            flow: None,
            scoped: true,
        };
        let told = |error| about.named(Some("acme"), error).to_string();
        for (kind, message, wanted) in [
            (
                "flow-error",
                "Flow ID invalid",
                "Flow second does not run in workspace acme",
            ),
            (
                "not-found",
                "id: there is no such core",
                "there is no such core in workspace acme: second",
            ),
            (
                "not-found",
                "Document does not exist",
                "Document does not exist in workspace acme: second",
            ),
            (
                "workspace-not-found",
                "workspace not found",
                "There is no workspace acme",
            ),
            ("forbidden", "no", "forbidden: no"),
        ] {
            assert_eq!(told(service(kind, message)), wanted);
        }
        let error = about.named(None, service("not-found", "Document does not exist"));
        assert_eq!(
            (error.to_string().as_str(), error.exit_code()),
            ("Document does not exist in your workspace: second", 3)
        );
    }
}
