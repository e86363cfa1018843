//! Which command to run next after an error. It never invents a reason.

use tg_schemas::ErrorCode;

use crate::client::{Error, NO_FLOW};

/// The next step, if one is known to help. What has just failed is none.
pub fn advice(error: &Error, command: &str) -> Option<String> {
    next_step(error, command).filter(|step| *step != format!("tg {command}"))
}

fn next_step(error: &Error, command: &str) -> Option<String> {
    let text = match error {
        Error::Usage(_) => format!("tg {command} --help"),
        // What is to be done is said already.
        Error::Unreachable { reason, .. } if reason.contains("--ca-file") => return None,
        Error::Unreachable { .. } => {
            "`threadgraph up` starts a gateway here; --url or TRUSTGRAPH_URL names another one"
                .to_owned()
        }
        Error::Source { .. } => {
            "the same command again goes on where it ended; --from names another place; without a \
             model the lexical default serves"
                .to_owned()
        }
        Error::Timeout(_) => "`tg why` says what does not move; --timeout waits longer".to_owned(),
        Error::Missing(text) if text.starts_with(NO_FLOW) => {
            let place = text.strip_prefix(NO_FLOW).unwrap_or_default();
            let place = place.split(';').next().unwrap_or_default();
            let named = place.strip_prefix("workspace ");
            let option = named.map_or_else(String::new, |named| format!(" -w {named}"));
            format!("tg start-flow default -n everything{option}")
        }
        Error::Missing(text) if text.starts_with("There is no workspace ") => {
            "tg list-my-workspaces".to_owned()
        }
        Error::Missing(text) if text.starts_with("There is no collection ") => {
            "tg list-collections".to_owned()
        }
        Error::Missing(text) if text.contains("does not run") => {
            "`tg show-flows`; `tg start-flow` starts one".to_owned()
        }
        Error::Missing(_) => return listing(command).map(str::to_owned),
        Error::Protocol(_) => "`tg doctor`; is that address a gateway?".to_owned(),
        Error::Service { .. } => return by_code(error.code()?, error, command),
        Error::Check(_) if matches!(command, "add" | "doctor" | "verify-trace" | "diff-traces") => {
            return None;
        }
        Error::Check(_) if matches!(command, "invoke-rows-query" | "invoke-structured-query") => {
            "`tg list-config-items --type schema` names the tables".to_owned()
        }
        Error::Check(_) => "tg doctor".to_owned(),
        Error::File { .. } | Error::Output(_) | Error::OutputClosed | Error::Interrupted => {
            return None;
        }
    };
    Some(text)
}

fn by_code(code: ErrorCode, error: &Error, command: &str) -> Option<String> {
    let text = match code {
        ErrorCode::BadRequest | ErrorCode::TooLarge => match command {
            "put-flow-blueprint" => "`tg check-blueprint` lists every fault with its path",
            "start-flow" => "`tg show-flow-blueprints` and `tg show-parameter-types`",
            _ => return Some(format!("tg {command} --help")),
        },
        ErrorCode::BadOperation | ErrorCode::NotImplemented => {
            "`tg doctor`; this gateway may be older or may not have that service"
        }
        ErrorCode::NotFound if error.is_missing_workspace() => "tg list-my-workspaces",
        ErrorCode::NotFound => return listing(command).map(str::to_owned),
        ErrorCode::Conflict => return listing(command).map(str::to_owned),
        ErrorCode::Unauthenticated if command == "bootstrap-iam" => {
            "the first administrator exists already: use its key, `tg whoami --token …`"
        }
        ErrorCode::Unauthenticated => {
            "`tg login`, --token or TRUSTGRAPH_TOKEN gives a token; `tg bootstrap-iam` makes the first one"
        }
        ErrorCode::Forbidden => {
            "`tg whoami` shows your roles, `tg list-my-workspaces` where they hold"
        }
        ErrorCode::Busy | ErrorCode::RateLimited => "the same command again in a moment",
        ErrorCode::NobodyServes | ErrorCode::FlowStopped => {
            "`tg show-flow-state` shows who serves the flow, `tg why` what it lacks"
        }
        ErrorCode::Timeout | ErrorCode::Cancelled => "`tg why` says what does not move",
        ErrorCode::Interrupted => {
            "the same command again; `tg parked` and `tg dead-letters` show what is kept"
        }
        ErrorCode::Unavailable => "tg doctor",
        ErrorCode::Provider if command == "list-models" => "tg doctor",
        ErrorCode::Provider => {
            "`tg doctor` says how it stands with the model provider, `tg list-models` what it offers"
        }
        ErrorCode::Tool => "`tg show-tools` and `tg show-mcp-tools`",
        ErrorCode::Storage | ErrorCode::Internal => "tg doctor",
    };
    Some(text.to_owned())
}

/// The command that lists what a command works on.
fn listing(command: &str) -> Option<&'static str> {
    Some(match command {
        "get-flow-blueprint" | "delete-flow-blueprint" | "start-flow" => {
            "`tg show-flow-blueprints` and `tg show-flows`"
        }
        "get-config-item" | "delete-config-item" => "`tg list-config-items --type …`",
        "set-tool" | "delete-tool" => "tg show-tools",
        "delete-mcp-tool" | "invoke-mcp-tool" | "list-mcp-tools" => "tg show-mcp-tools",
        "invoke-prompt" | "set-prompt" => "tg show-prompts",
        "show-parameter-types" => "`tg list-config-items --type parameter-type`",
        "add"
        | "get-document-content"
        | "remove-library-document"
        | "add-library-document"
        | "import-workspace"
        | "show-extraction-provenance" => "tg show-library-documents",
        "start-library-processing" => "`tg show-library-documents` and `tg show-flows`",
        "why" => {
            "`tg show-library-documents`, `tg show-flows`, `tg list-runs`, `tg list-requests`, or `tg console` and there /status"
        }
        "stop-library-processing" => "tg show-library-processing",
        "process-status" => "`tg process-status` lists all",
        "show-explain-trace" | "verify-trace" => "tg list-explain-traces",
        "attach" | "replay" | "diff-traces" | "cancel" | "confirm" | "expand-summary"
        | "remake-summary" => "tg list-runs",
        "cancel-request" => "tg list-requests",
        "close-thread" => "`tg console` and there /status",
        "delete-collection" | "set-collection" => "tg list-collections",
        "login" | "logout" => "tg profiles",
        "dead-letters" | "parked" => "the same command without --show and --replay",
        "create-workspace" | "enable-workspace" | "disable-workspace" | "delete-workspace"
        | "restore-workspace" => "tg list-workspaces",
        "load-structured-data" => "`tg list-config-items --type schema` and `tg show-flows`",
        "load-kg-core" | "get-kg-core" | "delete-kg-core" | "unload-kg-core" => "tg show-kg-cores",
        "load-de-core" | "get-de-core" | "delete-de-core" | "unload-de-core" => "tg show-de-cores",
        "revoke-api-key" | "list-api-keys" | "create-api-key" => {
            "`tg whoami` and `tg list-api-keys`"
        }
        "update-user" | "disable-user" | "enable-user" | "delete-user" | "reset-password"
        | "create-user" | "mint-token" | "show-permissions" => "tg list-users",
        "update-group" | "delete-group" | "list-group-members" | "create-group" => "tg list-groups",
        "add-group-member"
        | "remove-group-member"
        | "add-grant"
        | "remove-grant"
        | "list-grants" => "`tg list-users` and `tg list-groups`",
        _ => "tg show-flows",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(kind: &str) -> Error {
        Error::Service {
            kind: kind.to_owned(),
            message: "no".to_owned(),
        }
    }

    #[test]
    fn every_code_has_advice_for_every_command() {
        for row in crate::commands::ALL {
            for code in ErrorCode::all() {
                let error = service(code.as_str());
                assert!(next_step(&error, row.name).is_some());
                let itself = format!("tg {}", row.name);
                assert_ne!(advice(&error, row.name), Some(itself));
            }
        }
    }

    #[test]
    fn what_is_not_there_is_looked_for_in_the_list_of_its_kind() {
        for (command, list) in [
            ("start-library-processing", "tg show-library-documents"),
            ("stop-library-processing", "tg show-library-processing"),
            ("verify-trace", "tg list-explain-traces"),
            ("import-workspace", "tg show-library-documents"),
            ("delete-collection", "tg list-collections"),
            ("load-kg-core", "tg show-kg-cores"),
            ("load-de-core", "tg show-de-cores"),
            ("start-flow", "tg show-flow-blueprints"),
        ] {
            let told = advice(&service("not-found"), command).unwrap_or_default();
            assert!(told.contains(list), "{command}: {told}");
        }
    }

    #[test]
    fn commands_that_are_advised_exist() {
        let known = |name: &str| crate::commands::ALL.iter().any(|row| row.name == name);
        for row in crate::commands::ALL {
            for code in ErrorCode::all() {
                let text = advice(&service(code.as_str()), row.name).unwrap_or_default();
                let advised = text.split("tg ").skip(1).filter_map(|rest| {
                    rest.split([' ', '`'])
                        .next()
                        .filter(|name| !name.is_empty())
                });
                for name in advised {
                    assert!(known(name), "{name} in {text}");
                }
            }
        }
    }
}
