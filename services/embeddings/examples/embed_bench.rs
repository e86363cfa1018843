//! Prints how fast texts become vectors: lexical, and a static model if its directory is given.
//!
//! `cargo run --release -p tg-embeddings --example embed_bench [directory]`

use std::time::{Duration, Instant};

use tg_embeddings::{Options, ProviderKind};

const CHUNKS: usize = 2_000;
const CHUNK: usize = 2_000;
const BATCH: usize = 64;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load {}, {CHUNKS} chunks of {CHUNK} bytes", load.trim());
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
    let started = Instant::now();
    let embedder = options.embedder()?;
    let built = started.elapsed();
    let texts: Vec<String> = (0..CHUNKS).map(text).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let started = Instant::now();
    let mut model = String::new();
    for batch in texts.chunks(BATCH) {
        let left = Duration::from_secs(600);
        model = embedder.embed(None, batch, left).await?.model;
    }
    let took = started.elapsed().as_secs_f64();
    println!(
        "{model}: ready in {built:?}; {:.0} chunks/s, {:.1} MB/s, one batch at a time",
        CHUNKS as f64 / took,
        bytes as f64 / took / 1e6
    );
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
