//! Flow records, as the watched configuration shows them. What a record says is read in
//! [`tg_schemas::flow_record`]; a service's own questions about one stay with the service.

use std::collections::BTreeMap;
use std::sync::Arc;

use tg_mesh::ConfigView;
pub use tg_schemas::flow_record::{Drain, FlowRecord, KIND, ProcessorRow, Status};

/// The text of a flow's record; `None` if there is no such flow.
pub fn row(view: &ConfigView, workspace: &str, flow: &str) -> Option<Arc<str>> {
    view.get(workspace, KIND, flow)
}

/// The record of a flow; `None` if there is none, or none that can be read.
pub fn get(view: &ConfigView, workspace: &str, flow: &str) -> Option<FlowRecord> {
    FlowRecord::read(&row(view, workspace, flow)?)
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
