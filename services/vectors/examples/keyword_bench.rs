//! Prints the keyword index's figures: indexing, searching, dropping.
//!
//! `cargo run --release -p tg-vectors --example keyword_bench [power] [chunks]`

use std::sync::Arc;
use std::time::{Duration, Instant};

use tg_collections::CollectionStore;
use tg_storage::Durability;
use tg_testkit::bench::{ROUNDS, Rounds, headline};
use tg_vectors::{ChunkText, CollectionKey, KeywordStore, Quota, SqliteKeywords, WriteKind};

const WRITERS: usize = 256;
const SEARCHES: usize = 100;
const WORDS: usize = 330;
const VOCABULARY: u64 = 50_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", headline(1));
    let words: Vec<String> = std::env::args().skip(1).collect();
    let power = words.iter().any(|word| word == "power");
    let count = words.iter().find_map(|word| word.parse::<u64>().ok());
    let count = count.unwrap_or(50_000);
    let durability = if power {
        Durability::Power
    } else {
        Durability::Process
    };
    println!("durability {durability}, {count} chunks of {WORDS} words");
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        measure(durability, count, &mut rounds).await?;
    }
    rounds.print();
    Ok(())
}

/// One round, in an index of its own.
async fn measure(
    durability: Durability,
    count: u64,
    rounds: &mut Rounds,
) -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("keywords.sqlite");
    let index = Arc::new(SqliteKeywords::open(&path, durability, Quota::UNLIMITED)?);
    let key = CollectionKey::new("bench", "default");
    let started = Instant::now();
    let mut bytes = 0;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..count {
        while tasks.len() >= WRITERS {
            tasks.join_next().await;
        }
        let chunk = ChunkText {
            id: format!("urn:chunk:{n:032x}"),
            text: text(n + 1, WORDS),
        };
        bytes += chunk.text.len();
        let (index, key) = (index.clone(), key.clone());
        tasks.spawn(async move { index.put(&key, WriteKind::Direct, chunk).await });
    }
    while tasks.join_next().await.is_some() {}
    let took = started.elapsed().as_secs_f64();
    rounds.add("indexing", "chunks/s", count as f64 / took);
    rounds.add("text", "MB/s", bytes as f64 / took / 1e6);
    let disk = std::fs::metadata(&path)?.len() as f64;
    rounds.add("on disk", "of the text", disk / bytes as f64);
    let rare = |n: u64| format!("what is the {}", word(n * 31 % VOCABULARY + VOCABULARY / 2));
    search(&index, &key, "a rare word and common ones", rare, rounds).await?;
    let some = |n: u64| text(n + 77, 6);
    search(&index, &key, "six words as they come", some, rounds).await?;
    let common = |_: u64| "the of and to".to_owned();
    let what = "only words that every chunk has";
    search(&index, &key, what, common, rounds).await?;
    let started = Instant::now();
    index.drop_collection(&key).await?;
    rounds.add(
        "drop, confirmed",
        "ms",
        started.elapsed().as_secs_f64() * 1e3,
    );
    Ok(())
}

async fn search(
    index: &SqliteKeywords,
    key: &CollectionKey,
    what: &str,
    question: impl Fn(u64) -> String,
    rounds: &mut Rounds,
) -> Result<(), tg_vectors::VectorError> {
    let mut times: Vec<Duration> = Vec::new();
    for n in 0..SEARCHES as u64 {
        let started = Instant::now();
        index.search(key, &question(n), 60).await?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    for (name, at) in [("p50", SEARCHES / 2), ("p95", SEARCHES * 95 / 100)] {
        let took = times[at].as_secs_f64() * 1e3;
        rounds.add(format!("top 60, {what}, {name}"), "ms", took);
    }
    Ok(())
}

/// Words of a skewed vocabulary: low numbers are common, as in real texts.
fn text(seed: u64, words: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    for _ in 0..words {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let chance = (state >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = (VOCABULARY as f64).powf(chance) as u64;
        text += &word(rank);
        text.push(' ');
    }
    text
}

fn word(rank: u64) -> String {
    match ["the", "of", "and", "to", "in", "is"].get(rank as usize) {
        Some(word) => (*word).to_owned(),
        None => format!("w{rank:x}"),
    }
}
