//! What a process may take is shared out: all shares together are less than the whole, a process with less of it has
//! smaller ones, and what is given counts.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tg_testkit::process::{Launch, bin_dir, client};
use tg_testkit::services::SERVICES;
use tokio::process::Command;

/// Every consumer of memory, and how many processes have such a share.
const SHARES: [(&str, u64); 12] = [
    ("graph.memory_mb", 1),
    ("graph.queries_memory_mb", 1),
    ("vectors.memory_mb", 1),
    ("gateway.parsing_mb", 1),
    ("gateway.receiving_mb", 1),
    ("gateway.sending_mb", 1),
    ("ingest.memory_mb", 1),
    ("embeddings.cache_mb", 1),
    ("bus_memory_mb", 1),
    ("exports_mb", 1),
    ("answers_mb", SERVICES.len() as u64),
    ("questions_mb", 2),
];

/// Address space that is only mapped: it is not counted.
const MAPPED_MB: u64 = 1_280;

/// Value and source of the settings of a process with so much address space.
struct Settings(HashMap<String, (String, String)>);

impl Settings {
    async fn of(space_mb: u64, given: &[(&str, &str)]) -> Result<Self> {
        let limits = format!("ulimit -v {}; exec \"$0\" settings --json", space_mb << 10);
        let output = Command::new("sh")
            .args(["-c", &limits])
            .arg(bin_dir()?.join("threadgraph"))
            .env_clear()
            .envs(given.iter().copied())
            .output()
            .await?;
        let rows: Vec<Value> = serde_json::from_slice(&output.stdout)?;
        let text = |row: &Value, field: &str| row[field].as_str().map(str::to_owned);
        let read = |row| {
            Some((
                text(row, "name")?,
                (text(row, "value")?, text(row, "from")?),
            ))
        };
        Ok(Self(rows.iter().filter_map(read).collect()))
    }

    fn number(&self, name: &str) -> Result<u64> {
        let (value, _) = self.0.get(name).with_context(|| name.to_owned())?;
        Ok(value.parse()?)
    }

    fn whence(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |(_, from)| from)
    }

    fn sum(&self) -> Result<u64> {
        let parts = SHARES.iter();
        parts
            .map(|(name, processes)| Ok(processes * self.number(name)?))
            .sum()
    }
}

#[tokio::test]
async fn an_address_space_is_the_whole_and_shares_are_parts_of_it() -> Result<()> {
    let large = Settings::of(MAPPED_MB + 6_000, &[]).await?;
    let small = Settings::of(MAPPED_MB + 2_000, &[]).await?;
    for (settings, whole) in [(&large, 6_000), (&small, 2_000)] {
        assert_eq!(settings.number("memory_mb")?, whole);
        assert_eq!(settings.whence("memory_mb"), "address space");
        let sum = settings.sum()?;
        ensure!(
            (whole / 2..=whole * 9 / 10).contains(&sum),
            "{sum} of {whole}"
        );
    }
    for (name, _) in SHARES {
        let (more, less) = (large.number(name)?, small.number(name)?);
        // Of some a bound is enough whatever there is.
        ensure!(
            less < more || name == "embeddings.cache_mb",
            "{name}: {less}, {more}"
        );
        assert_eq!(small.whence(name), "memory_mb", "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_given_counts_and_the_others_share_what_it_leaves() -> Result<()> {
    let given = [
        ("THREADGRAPH_MEMORY_MB", "4000"),
        ("THREADGRAPH_GRAPH__MEMORY_MB", "3000"),
    ];
    let settings = Settings::of(6_000, &given).await?;
    assert_eq!(settings.number("memory_mb")?, 4_000);
    assert_eq!(settings.whence("memory_mb"), "environment");
    assert_eq!(settings.number("graph.memory_mb")?, 3_000);
    assert_eq!(settings.whence("graph.memory_mb"), "environment");
    ensure!(settings.number("vectors.memory_mb")? < 200);
    ensure!(settings.sum()? <= 3_600);
    Ok(())
}

#[tokio::test]
async fn a_process_with_little_serves() -> Result<()> {
    let server = Launch::up().address_space(3_500 << 20).ready().await?;
    let ready = client()?
        .get(format!("{}health/ready", server.url()))
        .send();
    assert_eq!(ready.await?.status().as_u16(), 200);
    Ok(())
}
