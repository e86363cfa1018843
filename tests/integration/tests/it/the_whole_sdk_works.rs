//! The official Python SDK as a library, unmodified, against a system with users: a program uses every public method
//! that is not broken by itself and looks at what it gives. A method that it leaves out without a reason is told.

use anyhow::Result;
use tg_testkit::process::root;
use tokio::process::Command;

use crate::client_program::finds_nothing;
use crate::edge::with_keys;
use crate::official_commands::{first_key, mcp};
use crate::world::{Bus, on_both_buses};

on_both_buses!(every_method_gives_what_it_says);

async fn every_method_gives_what_it_says(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let server = with_keys().over(node.as_ref()).ready().await?;
    let (key, mcp) = (first_key(&server).await?, mcp().await);
    let mut work = Command::new(root().join(".cache/venv/bin/python3"));
    work.arg(root().join("tests/integration/clients/sdk_whole.py"))
        .args([server.url(), key, format!("{}/mcp", mcp.url)])
        .env("PYTHONDONTWRITEBYTECODE", "1");
    finds_nothing(&mut work, &server).await
}
