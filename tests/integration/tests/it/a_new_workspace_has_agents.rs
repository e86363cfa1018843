//! A workspace that somebody makes begins with two agents, in the same order everywhere, and the one that the system made has none.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::shared::{another_id, system};
use crate::workspaces::{iam, patiently};
use crate::world::Bus;

async fn names(url: &str, workspace: &str) -> Result<Vec<String>> {
    let ask = json!({"operation": "list-agents", "workspace": workspace});
    let told = patiently(url, "api/v1/sessions", ask).await?;
    let items = told["result"]["items"].as_array();
    let name = |one: &Value| one["name"].as_str().unwrap_or_default().to_owned();
    ensure!(items.is_some(), "{told}");
    Ok(items.into_iter().flatten().map(name).collect())
}

async fn line_047(bus: Bus) -> Result<()> {
    let url = system(bus).await?.url();
    let made = another_id();
    iam(&url, "create-workspace", &made).await?;
    // Asking again makes no others.
    for _ in 0..2 {
        let found = names(&url, &made).await?;
        ensure!(found == ["Bobby", "Maven"], "{found:?}");
    }
    ensure!(names(&url, "default").await?.is_empty());
    iam(&url, "delete-workspace", &made).await
}

#[tokio::test]
async fn line_047_on_the_embedded_bus() -> Result<()> {
    line_047(Bus::Embedded).await
}

#[tokio::test]
async fn line_047_over_rabbitmq() -> Result<()> {
    line_047(Bus::Rabbit).await
}
