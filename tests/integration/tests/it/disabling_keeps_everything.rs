//! A workspace that is disabled is not served, and nothing of it is lost: enabled again, it has what it had.

use anyhow::Result;

use crate::workspaces::{add, closed, documents, has, iam, make, put};
use crate::world::{Bus, up};

async fn disabled_and_enabled(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let url = server.url();
    make(&url, "acme").await?;
    put(&url, "acme", "keep-me").await?;
    has(&url, "acme", &["keep-me"]).await?;
    add(&url, "acme", "urn:d").await?;
    iam(&url, "disable-workspace", "acme").await?;
    closed(&url, "acme").await?;
    // Time for whoever takes absence for a deletion.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    iam(&url, "enable-workspace", "acme").await?;
    has(&url, "acme", &["keep-me"]).await?;
    assert_eq!(documents(&url, "acme").await?, ["urn:d"]);
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
