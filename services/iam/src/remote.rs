//! What this service asks of others: the config service keeps the registry of workspaces, the flow
//! service stops what runs in one that is deleted.

use std::time::Duration;

use tg_mesh::{Answer, Ask, Cx, Deadline, Mesh};
use tg_schemas::msg::{
    ConfigKey, ConfigRequest, ConfigResponse, ConfigValue, FlowRequest, FlowResponse,
};
use tg_schemas::{Class, Error, ErrorCode, Topic, WorkspaceId};
use tokio::time::Instant;

/// The reserved workspace that holds the registry, and the type of its rows.
const REGISTRY: &str = "__workspaces__";
const WORKSPACE_TYPE: &str = "workspace";

/// The reserved workspace of what this service tells everybody.
const IAM: &str = "__iam__";

/// Pause before a revocation that could not be told is told again.
const AGAIN: Duration = Duration::from_secs(1);

/// How long the flow service may take to serve a workspace that was registered again.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// Registers a workspace: every service begins to serve it, a new one gets the template's rows.
pub(crate) async fn register(cx: &Cx, workspace: &str) -> Result<(), Error> {
    let row = ConfigValue {
        r#type: WORKSPACE_TYPE.to_owned(),
        key: workspace.to_owned(),
        value: r#"{"enabled": true}"#.to_owned(),
        ..ConfigValue::default()
    };
    let ask = ConfigRequest {
        operation: "put".to_owned(),
        workspace: REGISTRY.to_owned(),
        values: vec![row],
        ..ConfigRequest::default()
    };
    config(cx, &ask).await.map(|_| ())
}

/// Removes a workspace from the registry. Its rows stay.
pub(crate) async fn deregister(cx: &Cx, workspace: &str) -> Result<(), Error> {
    let ask = ConfigRequest {
        operation: "delete".to_owned(),
        workspace: REGISTRY.to_owned(),
        keys: vec![ConfigKey {
            r#type: WORKSPACE_TYPE.to_owned(),
            key: workspace.to_owned(),
        }],
        ..ConfigRequest::default()
    };
    config(cx, &ask).await.map(|_| ())
}

/// Brings back what configuration kept of a deleted workspace, and its registration.
pub(crate) async fn restore(cx: &Cx, workspace: &str) -> Result<(), Error> {
    let ask = ConfigRequest {
        operation: "restore-workspace".to_owned(),
        workspace: workspace.to_owned(),
        ..ConfigRequest::default()
    };
    config(cx, &ask).await.map(|_| ())
}

/// Stops what runs in a workspace, then removes its rows and its registration together.
pub(crate) async fn clear(cx: &Cx, workspace: &str) -> Result<(), Error> {
    let flows = ConfigRequest {
        operation: "list".to_owned(),
        workspace: workspace.to_owned(),
        r#type: "flow".to_owned(),
        ..ConfigRequest::default()
    };
    if !config(cx, &flows).await?.directory.is_empty() {
        stop_flows(cx, workspace).await?;
    }
    let remove = ConfigRequest {
        operation: "delete-workspace".to_owned(),
        workspace: workspace.to_owned(),
        ..ConfigRequest::default()
    };
    config(cx, &remove).await.map(|_| ())
}

async fn stop_flows(cx: &Cx, workspace: &str) -> Result<(), Error> {
    // The flow service serves registered workspaces only; this one may have been disabled before.
    register(cx, workspace).await?;
    let topic = Topic::workspace(Class::Request, "flow", &WorkspaceId::new(workspace)?);
    let list = FlowRequest {
        operation: "list-flows".to_owned(),
        ..FlowRequest::default()
    };
    let until = Instant::now() + PATIENCE;
    let running: FlowResponse = loop {
        match cx.ask_topic(&topic, &list).last().await {
            Err(Error { kind, .. })
                if kind == ErrorCode::NobodyServes.as_str() && Instant::now() < until =>
            {
                tokio::time::sleep(PAUSE).await;
            }
            answer => break answer?,
        }
    };
    for flow in running.flow_ids {
        let stop = FlowRequest {
            operation: "stop-flow".to_owned(),
            flow_id: flow,
            parameters: [("drain".to_owned(), "discard".to_owned())].into(),
            ..FlowRequest::default()
        };
        cx.ask_topic::<_, FlowResponse>(&topic, &stop)
            .last()
            .await?;
    }
    Ok(())
}

/// Tells everybody who remembers decisions that something was revoked: a row of configuration changes. Goes on until it
/// worked, or the process stops.
pub(crate) async fn tell_revocation(mesh: &Mesh) {
    let row = ConfigValue {
        r#type: "iam-revocation".to_owned(),
        key: "epoch".to_owned(),
        value: format!("\"{}\"", uuid::Uuid::new_v4()),
        ..ConfigValue::default()
    };
    let ask = ConfigRequest {
        operation: "put".to_owned(),
        workspace: IAM.to_owned(),
        values: vec![row],
        ..ConfigRequest::default()
    };
    let topic = Topic::system(Class::Request, "config");
    loop {
        let options = Ask {
            deadline: Some(Deadline::after(PATIENCE)),
            cancel: mesh.stopping().clone(),
            ..Ask::default()
        };
        let answer: Answer<ConfigResponse> = mesh.ask(&topic, &ask, options);
        match answer.last().await {
            Ok(_) => return,
            Err(_) if mesh.stopping().is_cancelled() => return,
            Err(error) => {
                tracing::warn!(%error, "a revocation waits to be told");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

async fn config(cx: &Cx, ask: &ConfigRequest) -> Result<ConfigResponse, Error> {
    let topic = Topic::system(Class::Request, "config");
    cx.ask_topic(&topic, ask).last().await
}
