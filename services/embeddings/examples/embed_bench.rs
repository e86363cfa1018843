//! Prints how fast texts become vectors: lexical, and a static model if its directory is given.
//!
//! `cargo run --release -p tg-embeddings --example embed_bench [directory]`

use std::time::{Duration, Instant};

use tg_embeddings::{Asked, Options, ProviderKind};
use tg_testkit::bench::{ROUNDS, Rounds, headline};

const CHUNKS: usize = 2_000;
const CHUNK: usize = 2_000;
const BATCH: usize = 64;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", headline(1));
    println!("{CHUNKS} chunks of {CHUNK} bytes");
    let directory = std::env::args().nth(1);
    measure(Options::default()).await?;
    if let Some(directory) = directory {
        let options = Options {
            provider: ProviderKind::Static,
            path: Some(directory.into()),
            ..Options::default()
        };
        measure(options).await?;
    }
    Ok(())
}

async fn measure(options: Options) -> Result<(), Box<dyn std::error::Error>> {
    let texts: Vec<String> = (0..CHUNKS).map(text).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let mut model = String::new();
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let embedder = options.embedder()?;
        rounds.add("ready", "ms", started.elapsed().as_secs_f64() * 1e3);
        let started = Instant::now();
        for batch in texts.chunks(BATCH) {
            let left = Duration::from_secs(600);
            model = embedder.embed(Asked::Flows(None), batch, left).await?.model;
        }
        let took = started.elapsed().as_secs_f64();
        rounds.add("one batch at a time", "chunks/s", CHUNKS as f64 / took);
        rounds.add("the same", "MB/s", bytes as f64 / took / 1e6);
    }
    println!("{model}");
    rounds.print();
    Ok(())
}

/// Words that look like words, the same each time.
fn text(seed: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ta", "ren", "o", "mil", "va", "ster", "ing", "pro", "con", "de", "al", "ity", "ex", "un",
        "ly", "er",
    ];
    let mut state = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::with_capacity(CHUNK + 16);
    while text.len() < CHUNK {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        for part in 0..=(state >> 60) % 4 {
            text += SYLLABLES[(state >> (part * 4) & 15) as usize];
        }
        text.push(' ');
    }
    text
}
