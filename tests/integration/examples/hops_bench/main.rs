//! One run of the agent taken apart, on the embedded bus and over RabbitMQ in one process and in a process per service: what
//! it costs (messages, commits and their cause, tasks, processor time, threads that were woken, bytes that went through the
//! kernel, allocations), then one run hop by hop, by the spans that the system exports: who waited how long for whom, and over
//! RabbitMQ what each hop waited longer than on the embedded bus.
//!
//! `hops_bench [embedded|rabbitmq|both]`, beside the binaries it measures. Nothing has a target here: it says where a run's
//! time is. The run is that of `bench`: two steps, and a tool that asks the model.

mod counts;
mod spans;
mod system;
mod waited;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tg_integration_tests::taken::{By, of_one_run};
use tg_testkit::bench::headline;
use tg_testkit::otlp::{Received, Receiver};
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::socket::Socket;

use crate::counts::Counts;
use crate::system::{Shape, System};
use crate::waited::Waited;

/// Runs before anything is counted, runs that are counted, and runs that are traced.
const WARM_UP: usize = 50;
const COUNTED: usize = 100;
const TRACED: usize = 21;
/// What a run leaves behind is written by then.
const REST: Duration = Duration::from_secs(2);
/// Longest wait for anything.
const BOUND: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<()> {
    println!("{}", headline(1));
    let which = std::env::args().nth(1).unwrap_or_else(|| "both".to_owned());
    let shapes: &[Shape] = match which.as_str() {
        "embedded" => &[Shape::Embedded],
        "rabbitmq" => &[Shape::OneProcess, Shape::ProcessPerService],
        _ => &[Shape::Embedded, Shape::OneProcess, Shape::ProcessPerService],
    };
    let mut embedded = None;
    for shape in shapes {
        let node = match shape {
            Shape::Embedded => None,
            _ => Some(RabbitNode::start().await?),
        };
        println!("\n{}", shape.name());
        costs(*shape, node.as_ref()).await?;
        let waited = hops(*shape, node.as_ref()).await?;
        if *shape == Shape::Embedded {
            memory().await?;
            embedded = Some(waited);
            continue;
        }
        if embedded.is_none() {
            let (all, earlier) = traced(Shape::Embedded, None).await?;
            embedded = Some(Waited::of(&all, earlier));
        }
        let embedded = embedded.as_ref().context("no embedded runs")?;
        println!(
            "  what each hop waited for, medians of {TRACED}, in ms, beside the embedded bus:"
        );
        for line in waited.beside(embedded) {
            println!("    {line}");
        }
    }
    Ok(())
}

/// What a run costs, of which nothing is traced.
async fn costs(shape: Shape, node: Option<&RabbitNode>) -> Result<()> {
    let bus = system::host(node, "costs").await?;
    let model = system::model().await?;
    let system = System::start(shape, &model, bus.as_deref(), None).await?;
    let socket = Socket::connect(&system.url()?, "").await?;
    for number in 0..WARM_UP {
        run(&socket, number).await?;
    }
    tokio::time::sleep(REST).await;
    let before = Counts::of(&system, node).await?;
    let mut took = Vec::new();
    for number in 0..COUNTED {
        took.push(run(&socket, WARM_UP + number).await?);
    }
    tokio::time::sleep(REST).await;
    let after = Counts::of(&system, node).await?;
    took.sort_by(f64::total_cmp);
    let middle = took.get(COUNTED / 2).context("no run")?;
    println!("  a run, p50 of {COUNTED} one after the other: {middle:.2} ms");
    after.since(&before).print(COUNTED);
    system.end().await
}

/// The run of the middle among some, by its spans; what all of them waited for.
async fn hops(shape: Shape, node: Option<&RabbitNode>) -> Result<Waited> {
    let (all, earlier) = traced(shape, node).await?;
    let chosen = spans::middle(&all, earlier).context("no run was traced")?;
    println!("  one run hop by hop, that of the middle of {TRACED}, in ms:");
    for line in spans::drawn(&all, &chosen) {
        println!("    {line}");
    }
    Ok(Waited::of(&all, earlier))
}

/// The spans of a system, and how many of them came before the runs that are looked at.
async fn traced(shape: Shape, node: Option<&RabbitNode>) -> Result<(Vec<Received>, usize)> {
    let receiver = Receiver::start().await?;
    let bus = system::host(node, "hops").await?;
    let model = system::model().await?;
    let to = receiver.url();
    let system = System::start(shape, &model, bus.as_deref(), Some(&to)).await?;
    let socket = Socket::connect(&system.url()?, "").await?;
    for number in 0..WARM_UP {
        run(&socket, number).await?;
    }
    tokio::time::sleep(REST).await;
    let earlier = receiver.spans().len();
    for number in 0..TRACED {
        run(&socket, WARM_UP + number).await?;
    }
    let whole = |all: &[_]| spans::runs(all, earlier).len() >= TRACED;
    ensure!(receiver.until(BOUND, whole).await, "spans did not come");
    // Processes export each on its own.
    tokio::time::sleep(REST).await;
    let faults = receiver.faults();
    ensure!(faults.is_empty(), "{faults:?}");
    system.end().await?;
    Ok((receiver.spans(), earlier))
}

/// How often a run asks for memory: of a build with an allocator that counts, on one thread, with a shorter run.
async fn memory() -> Result<()> {
    let taken = of_one_run(By::Itself).await?;
    println!(
        "  allocations of a run of two steps with the calculator: {:.0}, of {:.0} bytes",
        taken.allocations, taken.bytes
    );
    Ok(())
}

/// One agent run, streamed; milliseconds to its end.
async fn run(socket: &Socket, number: usize) -> Result<f64> {
    let question = format!("What is the answer? nonce-{number}");
    let request = json!({"question": question, "streaming": true, "collection": "default"});
    let envelope = json!({"service": "agent", "flow": "default", "request": request});
    let begun = Instant::now();
    let frames = socket.send(envelope).await?.all(BOUND).await?;
    let took = begun.elapsed().as_secs_f64() * 1_000.0;
    let last = frames.last().context("no answer")?;
    ensure!(last["response"]["end_of_dialog"] == true, "{last}");
    Ok(took)
}
