//! Prints the vector store's figures: writing, loading, memory, searching, dropping. Three rounds, each with
//! a store of its own; what the process holds is told of the first, as later ones use what it gave back.
//!
//! `cargo run --release -p tg-vectors --example vector_bench [power] [count] [dimension]`

use std::time::Instant;

use tg_collections::CollectionStore;
use tg_storage::Durability;
use tg_testkit::bench::{ROUNDS, Rounds, headline};
use tg_vectors::{
    CollectionKey, Facets, Kind, Limits, Point, PointStore, Search, SqlitePoints, Subject, Write,
    WriteKind,
};

const BATCH: usize = 64;
const WRITERS: usize = 32;
const SEARCHES: usize = 100;
const TOP: usize = 50;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let power = words.iter().any(|word| word == "power");
    let mut numbers = words.iter().filter_map(|word| word.parse::<usize>().ok());
    let count = numbers.next().unwrap_or(100_000);
    let dimension = numbers.next().unwrap_or(256);
    let durability = if power {
        Durability::Power
    } else {
        Durability::Process
    };
    println!("{}", headline(1));
    println!("durability {durability}, {count} vectors of {dimension}");
    let mut rounds = Rounds::default();
    for nth in 0..ROUNDS {
        round(durability, (count, dimension), nth == 0, &mut rounds).await?;
    }
    rounds.print();
    Ok(())
}

async fn round(
    durability: Durability,
    (count, dimension): (usize, usize),
    first: bool,
    rounds: &mut Rounds,
) -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("vectors.sqlite");
    let open = || SqlitePoints::open(&path, durability, Limits::default());
    let key = CollectionKey::new("bench", "default");

    let engine = std::sync::Arc::new(open()?);
    let started = Instant::now();
    write(&engine, &key, count, dimension).await;
    let rate = count as f64 / started.elapsed().as_secs_f64();
    let what = format!("writing in records of {BATCH}, {WRITERS} at once");
    rounds.add(what, "vectors/s", rate);
    drop(engine);

    let size = std::fs::metadata(&path)?.len();
    let engine = std::sync::Arc::new(open()?);
    let before = resident();
    let started = Instant::now();
    engine.search(ask(&key, dimension, 0)).await?;
    rounds.add("loading", "ms", millis(started));
    let raw = (count * dimension * size_of::<f32>()) as f64;
    let index = engine.memory() as f64;
    rounds.add("a vector in memory", "bytes", index / count as f64);
    rounds.add("memory", "of the raw vectors", index / raw);
    if first {
        let grown = resident().saturating_sub(before) as f64;
        rounds.add("the process's memory", "of the raw vectors", grown / raw);
    }
    rounds.add("on disk", "of the raw vectors", size as f64 / raw);

    searches(&engine, &key, (count, dimension), rounds).await?;
    let started = Instant::now();
    let dropped = engine.drop_collection(&key).await?;
    let what = format!("drop of {dropped} vectors confirmed");
    rounds.add(what, "ms", millis(started));
    Ok(())
}

async fn searches(
    engine: &std::sync::Arc<SqlitePoints>,
    key: &CollectionKey,
    (count, dimension): (usize, usize),
    rounds: &mut Rounds,
) -> Result<(), Box<dyn std::error::Error>> {
    let (mut times, cpu) = (Vec::new(), cpu_ms());
    for n in 0..SEARCHES {
        let started = Instant::now();
        let hits = engine.search(ask(key, dimension, n)).await?;
        times.push(started.elapsed());
        assert_eq!(hits.len(), TOP.min(count));
    }
    let each = (cpu_ms() - cpu) / SEARCHES as f64;
    times.sort_unstable();
    for (name, share) in [("p50", 0.5), ("p95", 0.95), ("most", 1.0)] {
        let time = times[((times.len() - 1) as f64 * share) as usize];
        let what = format!("top {TOP}, one at a time, {name}");
        rounds.add(what, "ms", time.as_secs_f64() * 1_000.0);
    }
    rounds.add("processor time of a search", "ms", each);

    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..SEARCHES {
        let (engine, key) = (engine.clone(), key.clone());
        tasks.spawn(async move {
            let started = Instant::now();
            engine
                .search(ask(&key, dimension, n))
                .await
                .map(|_| started.elapsed())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let rate = SEARCHES as f64 / started.elapsed().as_secs_f64();
    let what = format!("top {TOP}, {SEARCHES} at once");
    rounds.add(what, "searches/s", rate);
    Ok(())
}

fn millis(from: Instant) -> f64 {
    from.elapsed().as_secs_f64() * 1_000.0
}

async fn write(
    engine: &std::sync::Arc<SqlitePoints>,
    key: &CollectionKey,
    count: usize,
    dimension: usize,
) {
    let mut tasks = tokio::task::JoinSet::new();
    for start in (0..count).step_by(BATCH) {
        while tasks.len() >= WRITERS {
            tasks.join_next().await;
        }
        let (engine, key) = (engine.clone(), key.clone());
        tasks.spawn(async move {
            let points = (start..count.min(start + BATCH)).map(|n| Point {
                subject: Subject::Chunk(format!("urn:chunk:{n:032x}")),
                chunk: format!("urn:chunk:{n:032x}"),
                made_by: String::new(),
                facets: Facets::default(),
                text: None,
                vector: vector(n as u64 + 1, dimension),
            });
            let write = Write {
                key,
                kind: Kind::Chunk,
                model: "bench".into(),
                write_kind: WriteKind::Direct,
                points: points.collect(),
            };
            if let Err(error) = engine.put(write).await {
                eprintln!("{error}");
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

fn ask(key: &CollectionKey, dimension: usize, n: usize) -> Search {
    Search {
        key: key.clone(),
        kind: Kind::Chunk,
        vector: vector(n as u64 * 7_919 + 3, dimension),
        model: "bench".into(),
        limit: TOP,
        conditions: Vec::new(),
    }
}

/// The same numbers each time, spread evenly.
fn vector(seed: u64, dimension: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..dimension).map(next).collect()
}

/// Processor time of this process so far: what a search costs, however busy the machine is.
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = |at: usize| after_name.split_whitespace().nth(at)?.parse::<f64>().ok();
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) * 10.0
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    kilobytes.unwrap_or(0) * 1_024
}
