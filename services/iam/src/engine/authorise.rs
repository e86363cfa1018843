//! May this user do that there?

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tg_schemas::Error;
use tg_schemas::msg::{IamRequest, IamResponse};

use super::Directory;
use super::authority::allows;
use super::check::invalid;

/// How long a decision may be remembered, in seconds.
pub(crate) const DECISION_TTL: i64 = 60;
/// Most decisions asked for at once.
const MAX_CHECKS: usize = 1024;

/// One of several decisions asked for together.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Check {
    /// What is to be done.
    capability: String,
    /// Where: an object, maybe with `workspace`.
    resource: Value,
    /// The operation's parameters, maybe with `workspace`.
    parameters: Value,
}

/// One decision in `decisions_json`.
#[derive(Debug, Serialize)]
struct Decision {
    allow: bool,
    ttl: i64,
}

/// The workspace an action aims at; `None`: at the system.
pub(crate) fn target(resource: &Value, parameters: &Value) -> Option<String> {
    let named = |object: &Value| {
        let text = object.get("workspace")?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    named(resource).or_else(|| named(parameters))
}

/// Reads `authorise_checks`: a JSON list of `{capability, resource, parameters}`.
pub(crate) fn checks(ask: &IamRequest) -> Result<Vec<Check>, Error> {
    let checks: Vec<Check> =
        serde_json::from_slice(ask.authorise_checks.as_bytes()).map_err(|_| {
            invalid(
                "authorise_checks",
                "is not a JSON list of {capability, resource, parameters}",
            )
        })?;
    if checks.len() > MAX_CHECKS {
        return Err(invalid("authorise_checks", "has more than 1024 entries"));
    }
    Ok(checks)
}

/// Writes `decisions_json`, in the order of the checks.
pub(crate) fn decisions(allowed: impl Iterator<Item = bool>) -> IamResponse {
    let all: Vec<Decision> = allowed
        .map(|allow| Decision {
            allow,
            ttl: DECISION_TTL,
        })
        .collect();
    IamResponse {
        decisions_json: serde_json::to_string(&all).unwrap_or_default(),
        ..IamResponse::default()
    }
}

/// The operation `authorise`.
pub(crate) fn one(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    let resource = json("resource_json", &ask.resource_json)?;
    let parameters = json("parameters_json", &ask.parameters_json)?;
    let target = target(&resource, &parameters);
    Ok(IamResponse {
        decision_allow: allows(directory, &ask.user_id, &ask.capability, target.as_deref()),
        decision_ttl_seconds: DECISION_TTL,
        ..IamResponse::default()
    })
}

/// The operation `authorise-many`.
pub(crate) fn many(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    let checks = checks(ask)?;
    Ok(decisions(checks.iter().map(|check| {
        let target = target(&check.resource, &check.parameters);
        allows(
            directory,
            &ask.user_id,
            &check.capability,
            target.as_deref(),
        )
    })))
}

fn json(field: &str, text: &str) -> Result<Value, Error> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    match serde_json::from_slice(text.as_bytes()) {
        Ok(value @ (Value::Object(_) | Value::Null)) => Ok(value),
        _ => Err(invalid(field, "is not a JSON object")),
    }
}
