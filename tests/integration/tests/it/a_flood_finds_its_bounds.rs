//! A workspace that writes without end, in a process that may take little memory and has no setting: it is refused once
//! its share is used up, the others still find room, and what was kept is there when the process starts again.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::services::{SERVICES, without};

use crate::a_graph_over_quota_is_refused::{count, dead_letter, number};
use crate::workspaces::{has, literals, make, put};
use crate::world::{Bus, on_both_buses};

/// What a small machine leaves to the process with the graph.
pub const ADDRESS_SPACE: u64 = 2 << 30;
/// Records of eight megabytes that are more than it has room for.
const RECORDS: usize = 60;
/// Collections that they go to in turn.
const COLLECTIONS: usize = 5;
const REFUSED: &str = "of memory for the graphs of one workspace";
/// Eight megabytes of texts, as one record. Written as text: as values it takes longer than being stored.
async fn texts(url: &str, record: usize) -> Result<()> {
    let lamps = "lamp ".repeat(40_000);
    let triple = |n: usize| {
        format!(
            r#"{{"s":{{"t":"i","i":"urn:s:{record}:{n}"}},"p":{{"t":"i","i":"urn:p"}},"o":{{"t":"l","v":"{record} {n} {lamps}"}}}}"#
        )
    };
    let triples: Vec<String> = (0..40).map(triple).collect();
    let line = format!(
        r#"{{"metadata":{{"id":"r{record}","collection":"c{}"}},"triples":[{}]}}"#,
        record % COLLECTIONS,
        triples.join(",")
    );
    let import = format!("{url}api/v1/flow/default/import/triples?workspace=default");
    let answer = client()?.post(import).body(line + "\n").send().await?;
    assert!(answer.status().is_success(), "{}", answer.text().await?);
    Ok(())
}

/// Writes until it is refused by who has the graph.
async fn flood(url: &str, graph: &mut Server) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(600);
    let mut records = 0..RECORDS;
    loop {
        if let Some(record) = records.next() {
            texts(url, record).await.with_context(|| graph.log())?;
        }
        let told = dead_letter(url).await.with_context(|| graph.log())?;
        if told.to_string().contains(REFUSED) {
            return Ok(());
        }
        assert!(graph.alive(), "{}", graph.log());
        assert!(Instant::now() < end, "{told}");
    }
}

/// How many triples each collection has, as soon as the graph answers.
async fn counts(url: &str) -> Result<Vec<usize>> {
    let mut counts = Vec::new();
    let end = Instant::now() + Duration::from_secs(180);
    while counts.len() < COLLECTIONS {
        let (_, answer) = count(url, &format!("c{}", counts.len())).await?;
        match number(&answer) {
            Some(count) => counts.push(count),
            None => ensure!(Instant::now() < end, "{answer}"),
        }
    }
    Ok(counts)
}

/// Two workspaces that hold little, beside the one that writes without end.
async fn small(url: &str, workspace: &str) -> Result<()> {
    make(url, workspace).await?;
    put(url, workspace, "mine").await?;
    has(url, workspace, &["mine"]).await
}

async fn others_still_find_room(bus: Bus) -> Result<()> {
    let dir = tempfile::tempdir()?;
    // Over a broker the graph has a process of its own.
    let node = bus.broker().await?;
    let mut rest = match &node {
        None => None,
        Some(node) => Some(
            Launch::serve(&without(&SERVICES, &["graph"]), &node.url())
                .spawn()
                .await?,
        ),
    };
    let graph = || match &node {
        None => Launch::up(),
        Some(node) => Launch::serve(&["graph"], &node.url()),
    };
    let start = async |rest: Option<&mut Server>| {
        let mut server = graph()
            .address_space(ADDRESS_SPACE)
            .data(dir.path())
            .spawn()
            .await?;
        let gateway = rest.unwrap_or(&mut server);
        gateway.wait_ready().await?;
        let url = gateway.url();
        // The graph answers: it may have a process of its own.
        literals(&url, "default")
            .await
            .with_context(|| server.log())?;
        Ok::<_, anyhow::Error>((server, url))
    };
    let (mut server, url) = start(rest.as_mut()).await?;
    small(&url, "acme").await.with_context(|| server.log())?;
    flood(&url, &mut server).await?;
    // Others still find room.
    small(&url, "late").await.with_context(|| server.log())?;
    let held = counts(&url).await.with_context(|| server.log())?;
    assert!(held.iter().sum::<usize>() > 300, "{held:?}");
    assert!(server.alive());
    server.terminate().await?;

    let (mut server, url) = start(rest.as_mut()).await?;
    let again = counts(&url).await.with_context(|| server.log())?;
    // What was under way may have come to it.
    let kept = again.iter().zip(&held).all(|(now, then)| now >= then);
    assert!(kept, "{again:?}, {held:?}: {}", server.log());
    for workspace in ["acme", "late"] {
        let found = literals(&url, workspace).await;
        assert_eq!(found.with_context(|| server.log())?, ["mine"]);
    }
    assert!(server.alive());
    Ok(())
}

on_both_buses!(others_still_find_room);
