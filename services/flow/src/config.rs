//! Config types that the flow service keeps: flow records, blueprints and processor rows live there.

use tg_mesh::Mesh;
use tg_schemas::msg::FlowRequest;
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, WorkspaceId};

pub(crate) use tg_clients::config::{Config, Key};
pub(crate) use tg_schemas::flow_record::KIND as FLOW;

/// Config type of blueprints.
pub(crate) const BLUEPRINT: &str = "flow-blueprint";
/// Config type of parameter types.
pub(crate) const PARAMETER_TYPE: &str = "parameter-type";
/// Config type of processors that people add.
pub(crate) const PROCESSOR_SPEC: &str = "processor-spec";
/// Config types of processor rows begin so.
pub(crate) const PROCESSOR: &str = "processor:";

/// Names of the rows of a type, or the page of them that is asked for.
pub(crate) async fn names(
    mesh: &Mesh,
    workspace: &WorkspaceId,
    kind: &str,
    request: &FlowRequest,
) -> Result<Page<String>, Error> {
    let asked = Asked::read(&request.operation, request.limit, &request.after)?;
    let mut names = Config::new(mesh).list(workspace, kind).await?;
    // A foreign config service says nothing of their order.
    names.sort_unstable();
    Page::of(asked, names.iter(), |name| name.as_str(), String::clone)
}
