//! One turn of a comparison of two programs, which take turns: the figures of a run of the agent alone, each as a line of its
//! name and its value.

use std::sync::Arc;

use anyhow::{Result, ensure};
use tg_testkit::socket::Socket;

use crate::figures::{BROKERS, Figures, OURS, RUN, RUNS, TEXT};
use crate::system::{self, Shape, System};
use crate::{REST, SOCKETS, WARM_UP, broker, host, one_by_one, run, runs_at_once};

/// Measurements of a turn, unless the caller names another number.
pub const MEASUREMENTS: usize = 5;
const FIGURES: [&str; 5] = [RUN, TEXT, RUNS, OURS, BROKERS];

/// Starts a system, measures it so many times and ends it. Each figure is the median of the measurements.
pub async fn measured(shape: Shape, measurements: usize) -> Result<()> {
    ensure!(measurements > 0, "a turn needs a measurement");
    let node = broker(shape).await?;
    let bus = match &node {
        Some(node) => Some(node.vhost(&host(0)).await?),
        None => None,
    };
    let model = system::model().await?;
    let kept = tempfile::tempdir()?;
    let data = kept.path().join("data");
    let (system, _) = System::start(shape, &model, bus.as_deref(), &data).await?;
    let mut sockets = Vec::new();
    for _ in 0..SOCKETS {
        sockets.push(Arc::new(Socket::connect(&system.url(), "").await?));
    }
    let first = sockets[0].clone();
    for number in 0..WARM_UP {
        run(&first, number, true).await?;
    }
    tokio::time::sleep(REST).await;
    let mut figures = Figures::default();
    for _ in 0..measurements {
        let (whole, text) = one_by_one(&first).await?;
        figures.add(RUN, whole);
        figures.add(TEXT, text);
        runs_at_once(&system, node.as_ref(), &sockets, &mut figures).await?;
    }
    ensure!(figures.faults.is_empty(), figures.faults.join("\n"));
    // How an earlier program ends is not compared.
    let mut ends = Figures::default();
    system.end(&mut ends).await;
    for fault in &ends.faults {
        eprintln!("{}: {fault}", shape.name());
    }
    for name in FIGURES {
        if let Some(median) = figures.median(name) {
            println!("{name}\t{median}");
        }
    }
    Ok(())
}
