//! The engine over the shipped blueprints, hostile ones and random ones.

mod closing;
mod hostile;
mod shipped;
mod values;

use std::collections::BTreeMap;

use serde_json::Value;
use tg_schemas::{FlowId, WorkspaceId};

use super::blueprint::Blueprint;
use super::catalog::Catalog;
use super::parameters::{ParameterType, Resolved, resolve};
use super::plan::{Plan, Subject, plan};

const BLUEPRINTS: &str = include_str!("../../../../../blueprints/blueprints.json");
const TYPES: &str = include_str!("../../../../../blueprints/parameter-types.json");

/// A definition that ships.
fn shipped(name: &str) -> String {
    let all: Value = serde_json::from_str(BLUEPRINTS).unwrap();
    all["flow-blueprint"][name].to_string()
}

/// The parameter types that ship.
fn types() -> BTreeMap<String, ParameterType> {
    let all: Value = serde_json::from_str(TYPES).unwrap();
    let rows = all["parameter-type"].as_object().unwrap();
    rows.iter()
        .map(|(key, row)| (key.clone(), ParameterType::read(&row.to_string())))
        .collect()
}

fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn resolved(definition: &str, pairs: &[(&str, &str)]) -> Result<Resolved, String> {
    let (blueprint, _) = Blueprint::parse(definition);
    resolve(&blueprint, &types(), &given(pairs)).map_err(|error| error.message)
}

/// Plans a start with default parameters.
fn planned(definition: &str, name: &str, workspace: &str, flow: &str, epoch: u64) -> Plan {
    let (blueprint, faults) = Blueprint::parse(definition);
    assert!(faults.is_empty(), "{}", faults.text());
    let resolved = resolve(&blueprint, &types(), &BTreeMap::new()).unwrap();
    let workspace = WorkspaceId::new(workspace).unwrap();
    let flow = FlowId::new(flow).unwrap();
    let subject = Subject {
        workspace: &workspace,
        flow: &flow,
        blueprint: name,
        epoch,
    };
    plan(subject, &blueprint, &resolved, &Catalog::default()).unwrap()
}
