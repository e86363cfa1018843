//! Counts the instructions of one run of the agent, of a `threadgraph` of whichever commit, on the embedded bus: what
//! `scripts/bisect.sh` asks of each. Needs valgrind.
//!
//! `run_instructions PROGRAM`

use std::path::PathBuf;

use anyhow::{Context, Result};
use tg_integration_tests::taken::instructions_of;

#[tokio::main]
async fn main() -> Result<()> {
    let program = std::env::args()
        .nth(1)
        .context("usage: run_instructions PROGRAM")?;
    let count = instructions_of(&PathBuf::from(program)).await?;
    println!("{count:.0}");
    Ok(())
}
