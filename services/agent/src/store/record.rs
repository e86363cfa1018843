//! What is kept to replay a run, as the ledger takes and gives it.

use std::collections::BTreeMap;

use super::asking::Confirmation;
use super::usage::CallKind;
use crate::engine::decision::{Ending, Finding};
use crate::engine::guards::Exhausted;

/// One entry of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Noted {
    /// The run, or the subagent, that it is of.
    pub run: String,
    /// The step.
    pub step: u32,
    /// Its name, if it is kept once however often it is added.
    pub name: Option<String>,
    /// As JSON.
    pub text: String,
}

impl Noted {
    /// Name of the entry that a record begins with.
    pub const FIRST: &'static str = "run";
}

/// What is added to a record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Added {
    /// Id of the run that began all of it.
    pub root: String,
    /// Its workspace, in the text form of its key.
    pub workspace: String,
    /// In their order.
    pub entries: Vec<Noted>,
    /// Bytes of one record at most; a larger one is not kept at all.
    pub most: u64,
    /// Bytes of all records of the workspace at most; the oldest go.
    pub keep: u64,
}

/// What is kept to replay a run: its inputs, and the rows of its steps in the ledger.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    /// It became too large: nothing is kept of it.
    pub grown: bool,
    /// The inputs, in order.
    pub entries: Vec<Noted>,
    /// What is known of steps, by run and number.
    pub steps: BTreeMap<(String, u32), Facts>,
    /// What subagents of each run found, in the order of arrival.
    pub findings: BTreeMap<String, Vec<Finding>>,
    /// Id and start of each subagent, by its parent and its number there.
    pub subagents: BTreeMap<(String, u32), (String, String)>,
}

/// What is known of a step besides its inputs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Something was decided.
    pub decided: bool,
    /// How long its tool took, in milliseconds; `None`: it is not known what it returned.
    pub took_ms: Option<u64>,
    /// The same of each of several calls, by number.
    pub calls_took: BTreeMap<u32, u64>,
    /// How the run ended here, without an answer.
    pub ending: Option<Ending>,
    /// What the user was asked, by the number of the call.
    pub confirmations: BTreeMap<u32, Confirmation>,
    /// Calls that were not made, by kind and number, and why.
    pub refused: Vec<(CallKind, u32, Exhausted)>,
}
