//! The client from npm, unmodified, against a system with users: a program uses every public method and looks at what it
//! gives. A method that it leaves out without a reason is told.

use anyhow::Result;
use tg_testkit::process::root;
use tokio::process::Command;

use crate::client_program::finds_nothing;
use crate::edge::with_keys;
use crate::official_commands::first_key;
use crate::world::{Bus, on_both_buses};

on_both_buses!(every_method_gives_what_it_says);

async fn every_method_gives_what_it_says(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let server = with_keys().over(node.as_ref()).ready().await?;
    let key = first_key(&server).await?;
    let socket = format!("{}api/socket", server.url().replacen("http", "ws", 1));
    let mut work = Command::new(root().join(".cache/npm/node"));
    work.arg(root().join("tests/integration/clients/npm_whole.mjs"))
        .arg(root().join(".cache/npm/node_modules"))
        .args([socket, key]);
    finds_nothing(&mut work, &server).await
}
