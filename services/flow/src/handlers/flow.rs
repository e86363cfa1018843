//! The endpoints of the flow service: a workspace's queue for clients, the system's for its own processes.
//! Decodes nothing, decides nothing: each operation is a method of the service.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::msg::{FlowRequest, FlowResponse};
use tg_schemas::{Error, ErrorCode};

use crate::operations::{RESUME, Service};

/// Both endpoints.
pub(crate) struct Handler(pub(crate) Arc<Service>);

#[async_trait]
impl RequestHandler<FlowRequest, FlowResponse> for Handler {
    async fn serve(
        &self,
        cx: Cx,
        question: FlowRequest,
        mut out: Responder<FlowResponse>,
    ) -> Result<(), Error> {
        let reply = self.answer(&cx, &question).await?;
        out.send(reply).await
    }
}

impl Handler {
    async fn answer(&self, cx: &Cx, request: &FlowRequest) -> Result<FlowResponse, Error> {
        let (service, mesh) = (&self.0, &cx.mesh);
        let Some(workspace) = &cx.scope.workspace else {
            return match request.operation.as_str() {
                RESUME => service.resume(mesh).await,
                _ => Err(bad_operation()),
            };
        };
        match request.operation.as_str() {
            "list-blueprints" => service.list_blueprints(mesh, workspace, request).await,
            "get-blueprint" => service.get_blueprint(mesh, workspace, request).await,
            "put-blueprint" => service.put_blueprint(mesh, workspace, request).await,
            "delete-blueprint" => service.delete_blueprint(mesh, workspace, request).await,
            "check-blueprint" => service.check_blueprint(mesh, workspace, request).await,
            "list-flows" => service.list_flows(mesh, workspace, request).await,
            "get-flow" => service.get_flow(mesh, workspace, request).await,
            "start-flow" => service.start_flow(mesh, workspace, request).await,
            "stop-flow" => service.stop_flow(mesh, workspace, request).await,
            "list-put-aside" => service.list_dead_letter(mesh, workspace, request).await,
            "show-put-aside" => service.show_dead_letter(mesh, workspace, request).await,
            "replay-put-aside" => service.replay_dead_letter(mesh, workspace, request).await,
            "discard-put-aside" => service.discard_dead_letter(mesh, workspace, request).await,
            "why" => service.why(mesh, workspace, request).await,
            "doctor" => service.doctor(mesh, workspace).await,
            _ => Err(bad_operation()),
        }
    }
}

fn bad_operation() -> Error {
    Error::new(ErrorCode::BadOperation, "Bad operation")
}
