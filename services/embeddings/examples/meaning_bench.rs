//! Whether vectors find what is meant, not only what is written: of ten passages and a paraphrased question to each, how
//! many questions find theirs first. Weights do not ship with the project: `make bench` fetches some.
//!
//! `meaning_bench [DIRECTORY…]`: each a model of static vectors. A missed target is printed, it is no failure. One run: the same
//! weights find the same each time, and no time is measured.

use std::time::Duration;

use tg_embeddings::{Asked, Embedder, Options, ProviderKind};
use tg_testkit::bench::headline;

const PASSAGES: [(&str, &str); 10] = [
    (
        "The heart pumps blood through the arteries to every organ.",
        "What moves oxygen around the body?",
    ),
    (
        "Parliament passed the budget after a long night of debate.",
        "When did lawmakers approve the spending plan?",
    ),
    (
        "The vessel sank in heavy seas off the coast of Norway.",
        "Which ship went down in a storm?",
    ),
    (
        "Penicillin was found by chance in a mouldy dish.",
        "How was the first antibiotic discovered?",
    ),
    (
        "Ripe olives are pressed within a day of the harvest.",
        "How is cooking oil made from fruit?",
    ),
    (
        "The glacier has lost a third of its ice since 1950.",
        "What evidence is there of a warming climate?",
    ),
    (
        "She moved her knight and announced checkmate.",
        "Who won the board game?",
    ),
    (
        "The train to Milan leaves at nine from platform four.",
        "What is the railway timetable?",
    ),
    (
        "Interest rates rose for the third time this year.",
        "Why has borrowing money become expensive?",
    ),
    (
        "Bees visit the orchard and carry pollen from tree to tree.",
        "How do insects help apples grow?",
    ),
];

/// Static vectors find at least so many.
const WANTED: usize = 8;

async fn found(embedder: &Embedder) -> Result<usize, String> {
    let embed = async |texts: Vec<String>| {
        let made = embedder
            .embed(Asked::Flows(None), &texts, Duration::from_secs(60))
            .await;
        made.map(|made| made.vectors).map_err(told)
    };
    let passages = embed(PASSAGES.iter().map(|pair| pair.0.to_owned()).collect()).await?;
    let questions = embed(PASSAGES.iter().map(|pair| pair.1.to_owned()).collect()).await?;
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    let first = |question: &[f32]| {
        let scores = passages.iter().map(|passage| near(passage, question));
        let best = scores.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(at, _)| at)
    };
    let right = questions.iter().enumerate();
    let right = right.filter(|(at, question)| first(question) == Some(*at));
    Ok(right.count())
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[tokio::main]
async fn main() -> Result<(), String> {
    println!("{}", headline(1));
    let written = found(&Options::default().embedder().map_err(told)?).await?;
    let all = PASSAGES.len();
    println!("  lexical: {written} of {all} found first");
    for directory in std::env::args().skip(1) {
        let options = Options {
            provider: ProviderKind::Static,
            path: Some(directory.clone().into()),
            ..Options::default()
        };
        let meant = found(&options.embedder().map_err(told)?).await?;
        let met = meant >= WANTED && meant > written;
        let told = if met { "met" } else { "missed" };
        println!("  static, {directory}: {meant} of {all} found first, {WANTED} wanted: {told}");
    }
    Ok(())
}
