//! A shell gives a process few file descriptors and lets it have more: it takes what it may have.

use anyhow::{Context, Result, ensure};
use tg_testkit::process::Launch;

/// As many as some systems give a shell.
const FEW: u64 = 256;

/// The soft and the hard limit of open files of a process; `None` for one is: as many as wanted.
fn open_files(limits: &str) -> Result<[Option<u64>; 2]> {
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let line = line.context("no such line")?;
    let mut numbers = line
        .split_whitespace()
        .skip(3)
        .map(|text| text.parse().ok());
    let (soft, hard) = (numbers.next(), numbers.next());
    Ok([
        soft.context("no soft limit")?,
        hard.context("no hard limit")?,
    ])
}

#[tokio::test]
async fn to_what_the_system_lets_it_have() -> Result<()> {
    let own = std::fs::read_to_string("/proc/self/limits")?;
    let [_, most] = open_files(&own)?;
    ensure!(
        most.is_none_or(|most| most > FEW),
        "this shell may have no more: {own}"
    );
    let server = Launch::up().descriptors_at_first(FEW).ready().await?;
    let pid = server.pid().context("it runs")?;
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits"))?;
    let [soft, hard] = open_files(&limits)?;
    ensure!(hard == most && soft == hard, "{limits}\n{}", server.log());
    Ok(())
}
