//! Prints the engine's figures: writing with journal, memory a quad, pattern look-ups by size, start-up and loading.
//! Three rounds, each with stores of its own; memory is told of the first, as later ones use what it gave back.
//!
//! `cargo run --release -p tg-graph --example graph_bench [power]`

use std::time::{Duration, Instant};

use tg_graph::{Asked, Batch, CollectionKey, EmbeddedGraph, Limits, Pattern, convert};
use tg_schemas::{Term, Triple};
use tg_storage::Durability;
use tg_testkit::bench::{ROUNDS, Rounds, headline};

const BATCH: usize = 1_000;
const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
const LOOKUPS: usize = 20_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let power = std::env::args().any(|word| word == "power");
    let durability = if power {
        Durability::Power
    } else {
        Durability::Process
    };
    println!("{}", headline(1));
    println!("durability {durability}, {BATCH}-quad batches");
    let mut rounds = Rounds::default();
    for nth in 0..ROUNDS {
        round(durability, nth == 0, &mut rounds).await?;
    }
    rounds.print();
    Ok(())
}

async fn round(
    durability: Durability,
    first: bool,
    rounds: &mut Rounds,
) -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("graph.db");
    let engine = EmbeddedGraph::open(&path, durability, Limits::default())?;
    let key = CollectionKey::new("bench", "default");
    let mut done = 0;
    let before = resident();
    for size in SIZES {
        let started = Instant::now();
        fill(&engine, &key, done, size).await?;
        let rate = (size - done) as f64 / started.elapsed().as_secs_f64();
        rounds.add(format!("writing up to {size}"), "triples/s", rate);
        done = size;
        if first {
            let grown = resident().saturating_sub(before) as f64 / 1_000.0 / size as f64;
            rounds.add(format!("resident a quad of {size}"), "KB", grown);
        }
        lookups(&engine, &key, size, rounds).await?;
    }
    let query = "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }";
    let started = Instant::now();
    sparql(&engine, &key, query).await?;
    rounds.add("SPARQL count over all", "ms", millis(started));

    drop(engine);
    let size: u64 = std::fs::metadata(&path)?.len();
    let started = Instant::now();
    let engine = EmbeddedGraph::open(&path, durability, Limits::default())?;
    rounds.add("open", "ms", millis(started));
    rounds.add("journal", "MiB", (size >> 20) as f64);
    let started = Instant::now();
    find(&engine, &key, subject(1), None).await?;
    let what = format!("first touch, loading {done} triples");
    rounds.add(what, "ms", millis(started));
    let started = Instant::now();
    let dropped = engine.drop_collection(&key).await?;
    let what = format!("drop of {dropped} triples");
    rounds.add(what, "ms", millis(started));
    Ok(())
}

fn millis(from: Instant) -> f64 {
    from.elapsed().as_secs_f64() * 1_000.0
}

/// Bytes of this process in memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

fn triple(n: usize) -> Triple {
    let node = n / 10;
    let s = Term::iri(format!("http://example.org/thing/{node}"));
    match n % 10 {
        0 => Triple::new(
            s,
            Term::iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"),
            Term::iri(format!("http://example.org/Class{}", node % 20)),
        ),
        k if k < 5 => Triple::new(
            s,
            Term::iri(format!("http://example.org/link{k}")),
            Term::iri(format!(
                "http://example.org/thing/{}",
                node.wrapping_mul(31) % (node + 1)
            )),
        ),
        k => Triple::new(
            s,
            Term::iri(format!("http://example.org/property{k}")),
            Term::literal(format!("value {n} of a property of a thing")),
        ),
    }
}

async fn fill(
    engine: &EmbeddedGraph,
    key: &CollectionKey,
    from: usize,
    to: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    let batches: Vec<usize> = (from..to).step_by(BATCH).collect();
    // Two writers, as two flows would be.
    let halves: Vec<_> = (0..2)
        .map(|half| {
            let engine = engine.clone();
            let key = key.clone();
            let mine: Vec<usize> = batches.iter().copied().skip(half).step_by(2).collect();
            tokio::spawn(async move {
                for start in mine {
                    let triples: Vec<Triple> = (start..start + BATCH).map(triple).collect();
                    let quads = triples.iter().map(|triple| convert::quad("", triple));
                    let quads = quads.collect::<Result<Vec<_>, _>>()?;
                    engine.write(&key, Batch::insert(quads)).await?;
                }
                Ok::<_, tg_graph::GraphError>(())
            })
        })
        .collect();
    for half in halves {
        half.await??;
    }
    Ok(())
}

fn subject(node: usize) -> Pattern {
    let s = Term::iri(format!("http://example.org/thing/{node}"));
    read(Some(&s), None, None)
}

fn read(s: Option<&Term>, p: Option<&Term>, o: Option<&Term>) -> Pattern {
    match Pattern::read(s, p, o, None) {
        Ok(Asked::Pattern(pattern)) => pattern,
        _ => Pattern::default(),
    }
}

async fn find(
    engine: &EmbeddedGraph,
    key: &CollectionKey,
    pattern: Pattern,
    limit: Option<usize>,
) -> Result<usize, tg_graph::GraphError> {
    Ok(engine.find(key, pattern, limit).await?.len())
}

async fn lookups(
    engine: &EmbeddedGraph,
    key: &CollectionKey,
    size: usize,
    rounds: &mut Rounds,
) -> Result<(), Box<dyn std::error::Error>> {
    let nodes = size / 10;
    let pick = |n: usize| n.wrapping_mul(7_919) % nodes;
    let property = Term::iri("http://example.org/property7");
    let link = Term::iri("http://example.org/link2");
    type Make<'a> = Box<dyn Fn(usize) -> Pattern + 'a>;
    let kinds: [(&str, Make<'_>); 3] = [
        ("s ? ?", Box::new(|n| subject(pick(n)))),
        (
            "s p ?",
            Box::new(|n| {
                let s = Term::iri(format!("http://example.org/thing/{}", pick(n)));
                read(Some(&s), Some(&property), None)
            }),
        ),
        (
            "? p o",
            Box::new(|n| {
                let o = Term::iri(format!("http://example.org/thing/{}", pick(n)));
                read(None, Some(&link), Some(&o))
            }),
        ),
    ];
    for (name, make) in &kinds {
        let started = Instant::now();
        for n in 0..LOOKUPS {
            find(engine, key, make(n), Some(10)).await?;
        }
        let what = format!("look-up {name} of {size}, 1 at a time");
        rounds.add(what, "/s", rate(started));
    }
    let started = Instant::now();
    let tasks: Vec<_> = (0..8)
        .map(|lane| {
            let engine = engine.clone();
            let key = key.clone();
            tokio::spawn(async move {
                for n in 0..LOOKUPS / 8 {
                    let node = (n * 8 + lane).wrapping_mul(7_919) % nodes;
                    find(&engine, &key, subject(node), Some(10)).await?;
                }
                Ok::<_, tg_graph::GraphError>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let what = format!("look-up s ? ? of {size}, 8 at a time");
    rounds.add(what, "/s", rate(started));
    Ok(())
}

fn rate(from: Instant) -> f64 {
    LOOKUPS as f64 / from.elapsed().as_secs_f64()
}

async fn sparql(
    engine: &EmbeddedGraph,
    key: &CollectionKey,
    query: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut answer = engine
        .sparql(
            key,
            tg_graph::SparqlAsk {
                query: query.to_owned(),
                graphs: tg_graph::Graphs::default(),
                limit: None,
                batch: 100,
                time: Duration::from_secs(30),
                user: None,
                cancel: tokio_util::sync::CancellationToken::new(),
            },
        )
        .await?;
    while answer.next().await?.is_some() {}
    Ok(())
}
