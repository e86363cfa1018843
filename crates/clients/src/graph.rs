//! The graph of a flow, where it is a store of ours: such a store answers more than patterns.

use serde_json::Value;
use tg_mesh::Cx;
use tg_schemas::processors::{shared, triples_query};

/// Whether a store of ours serves the context's flow, and is what the flow's patterns go to: a filter that stands before
/// it is never passed by.
pub fn is_ours(cx: &Cx) -> bool {
    let (Some(workspace), Some(flow)) = (&cx.scope.workspace, &cx.scope.flow) else {
        return false;
    };
    let (workspace, flow) = (workspace.as_str(), flow.as_str());
    let store = triples_query::PROCESSOR.id;
    if !cx
        .mesh
        .presence()
        .attached(store, workspace, flow, cx.scope.epoch)
    {
        return false;
    }
    let Some(row) = cx.config().get(workspace, "processor:triples-query", flow) else {
        return false;
    };
    let Ok(row) = serde_json::from_slice::<Value>(row.as_bytes()) else {
        return false;
    };
    // Who answers from documents has no patterns to ask.
    if !cx.has(shared::TRIPLES_QUERY) {
        return true;
    }
    let served = row["topics"][triples_query::REQUEST.name].as_str();
    match cx.topic(shared::TRIPLES_QUERY) {
        Ok(asked) => served == Some(&asked.to_string()),
        Err(_) => true,
    }
}
