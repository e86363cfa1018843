//! The sockets of records, out of the description of sockets (AsyncAPI) that the gateway itself gives. A channel or an
//! operation that is not known here is an error, so that none is left out in silence.

use serde_json::{Map, Value};

use super::doors::{Effect, Gate, Trial, Way};
use crate::client::{Error, Result};

/// Where records go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the gateway.
    In,
    /// From it: what passes.
    Live,
    /// From it: what is stored.
    Stored,
}

const IMPORT: &str = "/api/v1/flow/{flow}/import/{kind}";
const EXPORT: &str = "/api/v1/flow/{flow}/export/{kind}";
/// The sockets of frames: each operation of a service is tried there, after authentication, and a run of the agent is
/// joined; a cancel names a request of its own socket only.
const FRAMES: [&str; 2] = ["/api/v1/socket", "/api/socket"];
/// What is sent over them.
const FRAME_OPERATIONS: [&str; 6] = [
    "authenticate",
    "ask",
    "stop",
    "authenticateAlias",
    "askAlias",
    "stopAlias",
];
/// What is sent over sockets of records: each is part of a trial.
const RECORD_OPERATIONS: [&str; 3] = ["importBatch", "importControl", "exportRecord"];

/// Everything that a description (AsyncAPI, in YAML) has beyond frames.
///
/// # Errors
/// [`Error::Protocol`] where it is none, and where it has a channel or an operation that nothing is known of.
pub fn of(description: &str) -> Result<Vec<Trial>> {
    let fault =
        |what: String| Error::Protocol(format!("the gateway's description of sockets: {what}"));
    let all: Value =
        serde_yaml_ng::from_str(description).map_err(|error| fault(error.to_string()))?;
    let part = |name: &str| all.get(name).and_then(Value::as_object);
    for operation in part("operations").into_iter().flat_map(Map::keys) {
        let operation = operation.as_str();
        if !FRAME_OPERATIONS.contains(&operation) && !RECORD_OPERATIONS.contains(&operation) {
            return Err(fault(format!("{operation} is not known to this command")));
        }
    }
    let channels = part("channels").ok_or_else(|| fault("no channels".to_owned()))?;
    let mut trials = Vec::new();
    for channel in channels.values() {
        let address = channel["address"].as_str().unwrap_or_default();
        let directions: &[Direction] = match address {
            IMPORT => &[Direction::In],
            EXPORT => &[Direction::Live, Direction::Stored],
            address if FRAMES.contains(&address) => {
                // The other is the same by another name.
                if address == FRAMES[0] {
                    trials.extend([false, true].map(resume));
                }
                continue;
            }
            _ => return Err(fault(format!("{address} is not known to this command"))),
        };
        let kinds = channel.pointer("/parameters/kind/enum");
        let kinds = kinds.and_then(Value::as_array).into_iter().flatten();
        for kind in kinds.filter_map(Value::as_str) {
            trials.extend(
                directions
                    .iter()
                    .map(|direction| trial(address, kind, *direction)),
            );
        }
    }
    Ok(trials)
}

/// A run of the agent that is joined again: one's own, or anybody's in a workspace that one administers.
fn resume(all: bool) -> Trial {
    Trial {
        door: format!("SOCKET {}", FRAMES[0]),
        operation: "resume".to_owned(),
        effect: Effect::Read,
        gate: Gate::Needs("agent".to_owned()),
        way: Way::Resume,
        example: Map::from_iter([("all".to_owned(), Value::Bool(all))]),
    }
}

fn trial(address: &str, kind: &str, direction: Direction) -> Trial {
    Trial {
        door: format!("SOCKET {address}"),
        operation: kind.to_owned(),
        effect: match direction {
            Direction::In => Effect::Write,
            Direction::Live | Direction::Stored => Effect::Read,
        },
        gate: Gate::Known,
        way: Way::Upgrade(direction, kind.to_owned()),
        example: Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The description of the gateway that this is built with.
    const OURS: &str = include_str!("../../../../../specs/api/asyncapi.yaml");

    #[test]
    fn every_socket_of_records_is_tried_with_each_kind_in_each_direction() {
        let trials = of(OURS).unwrap();
        let all: Value = serde_yaml_ng::from_str(OURS).unwrap();
        let kinds = |channel: &str| {
            let found = &all["channels"][channel]["parameters"]["kind"]["enum"];
            found.as_array().unwrap().len()
        };
        let many = |wanted: Direction| {
            let of = trials.iter();
            of.filter(|one| matches!(one.way, Way::Upgrade(direction, _) if direction == wanted))
                .count()
        };
        assert_eq!(many(Direction::In), kinds("import"));
        assert_eq!(many(Direction::Live), kinds("export"));
        assert_eq!(many(Direction::Stored), kinds("export"));
        assert!(kinds("import") >= 5 && kinds("export") >= 5);
        let joined = trials.iter().filter(|one| one.way == Way::Resume);
        assert_eq!(joined.count(), 2, "one's own run, and anybody's");
    }

    #[test]
    fn a_channel_or_an_operation_that_nobody_knows_is_an_error() {
        let channel = OURS.replacen(
            "\nchannels:",
            "\nchannels:\n  more:\n    address: /api/v1/new-socket",
            1,
        );
        let error = of(&channel).unwrap_err().to_string();
        assert!(error.contains("/api/v1/new-socket is not known"), "{error}");
        let operation = OURS.replacen("\noperations:", "\noperations:\n  shout: {}", 1);
        let error = of(&operation).unwrap_err().to_string();
        assert!(error.contains("shout is not known"), "{error}");
    }
}
