//! The flow service: which flows of a workspace there are, starting and stopping them.

use tg_mesh::{Cx, Mesh};
use tg_schemas::flow_record::Drain;
use tg_schemas::msg::{FlowRequest, FlowResponse};
use tg_schemas::processors::flow_svc::FLOW;
use tg_schemas::{Error, WorkspaceId};

use crate::caller::{Caller, goes_on};

/// Asks the flow service about one workspace.
#[derive(Clone)]
pub struct Flows {
    caller: Caller<FlowRequest, FlowResponse>,
}

impl Flows {
    /// On this process's own account.
    pub fn new(mesh: &Mesh, workspace: &WorkspaceId) -> Self {
        Self {
            caller: Caller::of_workspace(mesh, FLOW, workspace),
        }
    }

    /// As part of the work on a message.
    pub fn within(cx: &Cx, workspace: &WorkspaceId) -> Self {
        Self {
            caller: Caller::within(cx, Ok(FLOW.of_workspace(workspace))),
        }
    }

    /// Each answer may take as long.
    pub fn patient(mut self, patience: std::time::Duration) -> Self {
        self.caller = self.caller.patient(patience);
        self
    }

    async fn ask(&self, operation: &str, request: FlowRequest) -> Result<FlowResponse, Error> {
        let request = FlowRequest {
            operation: operation.to_owned(),
            ..request
        };
        self.caller.last(&request).await
    }

    /// Ids of the flows.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn list(&self) -> Result<Vec<String>, Error> {
        let mut ids = Vec::new();
        let mut request = FlowRequest {
            limit: self.caller.page(),
            ..FlowRequest::default()
        };
        loop {
            let page = self.ask("list-flows", request.clone()).await?;
            ids.extend(page.flow_ids);
            if !goes_on(&mut request.after, page.next) {
                return Ok(ids);
            }
        }
    }

    /// Starts a flow from a blueprint. One that was started so before goes on.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn start(&self, id: &str, blueprint: &str, description: &str) -> Result<(), Error> {
        let request = FlowRequest {
            flow_id: id.to_owned(),
            blueprint_name: blueprint.to_owned(),
            description: description.to_owned(),
            ..FlowRequest::default()
        };
        self.ask("start-flow", request).await.map(drop)
    }

    /// Stops a flow.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn stop(&self, id: &str, drain: Drain) -> Result<(), Error> {
        let request = FlowRequest {
            flow_id: id.to_owned(),
            parameters: [("drain".to_owned(), drain.as_str().to_owned())].into(),
            ..FlowRequest::default()
        };
        self.ask("stop-flow", request).await.map(drop)
    }
}
