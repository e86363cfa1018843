//! A workspace that is disabled is not served, and nothing of it is lost, in no store: enabled again, it has what it had.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::holdings::Tenant;
use crate::workspaces::{closed, iam, make};
use crate::world::{Bus, post, up};

/// The two ways to disable one.
const WAYS: [&str; 2] = ["disable-workspace", "update-workspace"];

async fn disabled_and_enabled(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let url = server.url();
    make(&url, "acme").await?;
    let (url, workspace) = (url.as_str(), "acme");
    let acme = Tenant { url, workspace };
    acme.prepare().await?;
    let before = acme.fill("Quillfern").await?;
    for operation in WAYS {
        let record = json!({"id": workspace, "enabled": false});
        let ask = json!({"operation": operation, "workspace_record": record});
        let (status, told) = post(url, "api/v1/iam", ask).await?;
        ensure!(status == 200, "{operation}: {told}");
        closed(url, workspace).await?;
        // Time for whoever takes absence for a deletion.
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        iam(url, "enable-workspace", workspace).await?;
        acme.holds(&before).await?;
    }
    Ok(())
}

#[tokio::test]
async fn embedded() -> Result<()> {
    disabled_and_enabled(Bus::Embedded).await
}

#[tokio::test]
async fn over_rabbitmq() -> Result<()> {
    disabled_and_enabled(Bus::Rabbit).await
}
