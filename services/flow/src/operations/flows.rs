//! Reading flow records.

use tg_mesh::Mesh;
use tg_schemas::msg::{FlowRequest, FlowResponse};
use tg_schemas::{Error, WorkspaceId};

use super::Service;
use super::start::flow_id;
use crate::config::{FLOW, names};
use crate::error::known;

impl Service {
    pub(crate) async fn list_flows(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        request: &FlowRequest,
    ) -> Result<FlowResponse, Error> {
        let page = names(mesh, workspace, FLOW, request).await?;
        Ok(FlowResponse {
            flow_ids: page.entries,
            next: page.next,
            ..FlowResponse::default()
        })
    }

    pub(crate) async fn get_flow(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        request: &FlowRequest,
    ) -> Result<FlowResponse, Error> {
        let flow = flow_id(request).map_err(|error| match request.flow_id.as_str() {
            "" => error,
            _ => known("Flow ID invalid"),
        })?;
        let key = (workspace.clone(), flow);
        let record = self
            .record(mesh, &key)
            .await?
            .ok_or_else(|| known("Flow ID invalid"))?;
        Ok(FlowResponse {
            flow: record.shown(),
            description: record.description,
            parameters: record.parameters,
            ..FlowResponse::default()
        })
    }
}
