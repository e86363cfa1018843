//! Those who hand a document on hold little of it: each service at most 64 MiB extra in its process, through the flow that is
//! shipped, and one process of all twice as much that does not stay, as the records that wait are in it, too, and not in a broker.
//! What the stores keep of it is theirs, and told apart.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tg_integration_tests::large::{ALLOWED, Phase, process, stream, upload};
use tg_testkit::process::{Launch, Server};
use tg_testkit::services::{SERVICES, without};
use tg_testkit::shared_node::VirtualHost;

/// Where each MiB of text cost sixteen or more, it would be seen.
const SIZE: usize = 16 << 20;
const BOUND: Duration = Duration::from_secs(420);
/// In one process, in MiB. Most of it are chunks that wait for extraction: 58 to 83 in all were seen.
const ALLOWED_TOGETHER: f64 = 2.0 * ALLOWED;
/// Those that keep what is found in a document.
const STORES: [&str; 4] = ["graph", "vectors", "rows", "knowledge"];
/// After so long a thread that has nothing to do has given its heap back.
const SETTLED: Duration = Duration::from_secs(20);
/// What the stores keep of a MiB of this text, in MiB: facts, vectors and words of some 530 chunks.
const KEPT: f64 = 16.0;

/// Through upload, stream and the shipped flow; what of `server` is meant by the phase.
async fn passes(server: &Server) -> Result<Phase> {
    let phase = Phase::begin(server)?;
    upload(server, SIZE).await?;
    stream(server, SIZE).await?;
    let chunks = process(server, "default", BOUND).await?;
    ensure!(chunks > 8_000, "{chunks}");
    Ok(phase)
}

fn kept(phase: &Phase) -> Result<()> {
    let kept = phase.now()? - phase.before;
    let text = SIZE as f64 / f64::from(1 << 20);
    ensure!(
        kept <= KEPT * text,
        "the stores keep {kept:.0} MiB of {text}"
    );
    Ok(())
}

#[tokio::test]
async fn over_rabbitmq() -> Result<()> {
    let node = VirtualHost::new().await?;
    let data = tempfile::tempdir()?;
    let apart = |services: &[&'static str]| {
        // What embeddings remembers beside is a setting, 64 MiB at most where nothing is said.
        Launch::serve(services, &node.url())
            .data(&data.path().join(services[0]))
            .env("THREADGRAPH_EMBEDDINGS__CACHE_MB", "8")
    };
    let stores = apart(&STORES).spawn().await?;
    let mut others = Vec::new();
    for service in without(&SERVICES, &STORES) {
        others.push((service, apart(&[service]).spawn().await?));
    }
    let gateway = others.iter_mut().find(|(service, _)| *service == "gateway");
    let (_, gateway) = gateway.context("a gateway")?;
    gateway.wait_ready().await?;
    let stored = Phase::begin(&stores)?;
    let phases = others.iter().map(|(_, server)| Phase::begin(server));
    let phases = phases.collect::<Result<Vec<_>>>()?;
    let gateway = others.iter().find(|(service, _)| *service == "gateway");
    passes(&gateway.context("a gateway")?.1).await?;
    for ((service, _), phase) in others.iter().zip(phases) {
        let extra = phase.peak()? - phase.before;
        let over = phase.before;
        ensure!(extra <= ALLOWED, "{service}: {extra:.0} MiB over {over:.0}");
    }
    kept(&stored)
}

#[tokio::test]
async fn in_one_process() -> Result<()> {
    let server = Launch::up().ready().await?;
    let phase = passes(&server).await?;
    let peak = phase.peak()?;
    tokio::time::sleep(SETTLED).await;
    let passed = peak - phase.now()?;
    ensure!(
        passed <= ALLOWED_TOGETHER,
        "{passed:.0} MiB of {peak:.0} did not stay"
    );
    eprintln!("ONE passed {passed}");
    kept(&phase)
}
