//! What this service asks of others: the config service keeps the registry of workspaces, the flow
//! service stops what runs in one that is deleted.

use std::time::Duration;

use tg_clients::config::Config;
use tg_clients::flows::Flows;
use tg_mesh::{Cx, Mesh};
use tg_schemas::flow_record::{Drain, KIND as FLOW};
use tg_schemas::{Error, ErrorCode, WorkspaceId};
use tokio::time::Instant;

/// The reserved workspace of what this service tells everybody.
const IAM: &str = "__iam__";

/// Pause before a revocation that could not be told is told again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How long the flow service may take to serve a workspace that was registered again.
const TIMEOUT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// Registers a workspace: every service begins to serve it, a new one gets the template's rows.
pub(crate) async fn register(cx: &Cx, workspace: &str) -> Result<(), Error> {
    Config::within(cx).register(workspace).await
}

/// Removes a workspace from the registry. Its rows stay.
pub(crate) async fn deregister(cx: &Cx, workspace: &str) -> Result<(), Error> {
    Config::within(cx).deregister(workspace).await
}

/// Brings back what configuration kept of a deleted workspace, and its registration.
pub(crate) async fn restore(cx: &Cx, workspace: &str) -> Result<(), Error> {
    Config::within(cx).restore_workspace(workspace).await
}

/// Stops what runs in a workspace, then removes its rows and its registration together.
pub(crate) async fn clear(cx: &Cx, workspace: &str) -> Result<(), Error> {
    let config = Config::within(cx);
    if !config.list(workspace, FLOW).await?.is_empty() {
        stop_flows(cx, workspace).await?;
    }
    config.delete_workspace(workspace).await
}

async fn stop_flows(cx: &Cx, workspace: &str) -> Result<(), Error> {
    // The flow service serves registered workspaces only; this one may have been disabled before.
    register(cx, workspace).await?;
    let flows = Flows::within(cx, &WorkspaceId::new(workspace)?);
    let until = Instant::now() + TIMEOUT;
    let running = loop {
        match flows.list().await {
            Err(error) if error.code() == ErrorCode::NobodyServes && Instant::now() < until => {
                tokio::time::sleep(PAUSE).await;
            }
            answer => break answer?,
        }
    };
    for flow in running {
        flows.stop(&flow, Drain::Discard).await?;
    }
    Ok(())
}

/// Tells everybody who remembers decisions that something was revoked: a row of configuration changes. Goes on until it
/// worked, or the process stops.
pub(crate) async fn tell_revocation(mesh: &Mesh) {
    let config = Config::new(mesh).patient(TIMEOUT).until_stopping(mesh);
    let value = format!("\"{}\"", uuid::Uuid::new_v4());
    loop {
        let at = ("iam-revocation".to_owned(), "epoch".to_owned());
        match config.put(IAM, [(at, value.clone())]).await {
            Ok(()) => return,
            Err(_) if mesh.stopping().is_cancelled() => return,
            Err(error) => {
                tracing::warn!(%error, "a revocation waits to be announced");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}
