//! Flow records, as the watched configuration shows them. What a record says is read in
//! [`tg_schemas::flow_record`]; a service's own questions about one stay with the service.

use std::collections::BTreeMap;
use std::sync::Arc;

use tg_mesh::{ConfigView, Derived};
pub use tg_schemas::flow_record::{Drain, FlowRecord, KIND, ProcessorRow, Status};

/// The text of a flow's record; `None` if there is no such flow.
pub fn row(view: &ConfigView, workspace: &str, flow: &str) -> Option<Arc<str>> {
    view.get(workspace, KIND, flow)
}

/// The record of a flow; `None` if there is none, or none that can be read.
pub fn get(view: &ConfigView, workspace: &str, flow: &str) -> Option<FlowRecord> {
    FlowRecord::read(&row(view, workspace, flow)?)
}

/// Flows whose records are kept ready.
const READY: usize = 64;

/// Records of flows that are asked for often, each read once until a record of its workspace changes. Without the names that a flow
/// holds and what it was given: those are most of a record.
pub struct ReadyFlows(Derived<FlowRecord>);

impl Default for ReadyFlows {
    fn default() -> Self {
        Self(Derived::of(READY))
    }
}

impl ReadyFlows {
    /// The record of a flow as the configuration has it now; `None` if there is none, or none that can be read.
    pub fn get(&self, view: &ConfigView, workspace: &str, flow: &str) -> Option<Arc<FlowRecord>> {
        let rows = [view.values(workspace, KIND)];
        let name = format!("{workspace}/{flow}");
        if let Some(known) = self.0.get(&name, &rows) {
            return Some(known);
        }
        let record = FlowRecord {
            plan: None,
            given: None,
            ..FlowRecord::read(rows[0].get(flow)?)?
        };
        Some(self.0.put(&name, rows.into(), record))
    }
}

/// All records of a workspace that can be read, by flow.
pub fn all(view: &ConfigView, workspace: &str) -> BTreeMap<String, FlowRecord> {
    let rows = view.values(workspace, KIND);
    rows.iter()
        .filter_map(|(flow, row)| Some((flow.clone(), FlowRecord::read(row)?)))
        .collect()
}

/// What a processor has in a flow; `None` if it has no row there that can be read.
pub fn processor(
    view: &ConfigView,
    workspace: &str,
    flow: &str,
    processor: &str,
) -> Option<ProcessorRow> {
    ProcessorRow::read(&view.get(workspace, &format!("processor:{processor}"), flow)?)
}
