//! A workspace that is disabled is not served, and nothing of it is lost, in no store: enabled again, it has what it had,
//! its flows serve, and what was paid for it is not paid again.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::holdings::Tenant;
use crate::poison_is_dead_lettered_once::counted_at;
use crate::workspaces::{closed, iam, make};
use crate::world::{Bus, post, up};

/// The two ways to disable one.
const WAYS: [&str; 2] = ["disable-workspace", "update-workspace"];
const WORD: &str = "Quillfern";

/// Replies that the extractors of a process worked with so far: of the model, and of what is kept of it.
pub async fn replies(url: &str) -> Result<(f64, f64)> {
    let from = async |what: &str| {
        let name = format!("tg_extract_replies_total{{from=\"{what}\"}}");
        counted_at(url, &name).await
    };
    Ok((from("model").await?, from("ledger").await?))
}

async fn disabled_and_enabled(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let url = server.url();
    make(&url, "acme").await?;
    let (url, workspace) = (url.as_str(), "acme");
    let acme = Tenant { url, workspace };
    acme.prepare().await?;
    let before = acme.fill(WORD).await?;
    let flows = acme.flows().await?;
    ensure!(flows.len() == 2, "a flow and its row: {flows:?}");
    let (paid, free) = replies(url).await?;
    ensure!(paid > 0.0, "no reply was asked for");
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
        ensure!(acme.flows().await? == flows, "{operation}: {flows:?}");
    }
    // The same document once more, for another collection.
    acme.process("again", WORD, "again").await?;
    let (asked, kept) = replies(url).await?;
    ensure!(asked == paid, "{} were paid again", asked - paid);
    ensure!(kept >= free + paid, "{kept} of {paid} were kept");
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
