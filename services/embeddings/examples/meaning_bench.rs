//! Static vectors find what is meant, not only what is written. Needs weights that do not ship with the
//! project: an installed `wordllama` package, whose directory `WORDLLAMA_DIR` names.
//!
//! `WORDLLAMA_DIR=… cargo test -p tg-embeddings --test meaning -- --ignored`

use std::time::Duration;

use tg_embeddings::{Embedder, Options, ProviderKind};

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

async fn found(embedder: &Embedder) -> usize {
    let embed = async |texts: Vec<String>| {
        embedder
            .embed(None, &texts, Duration::from_secs(60))
            .await
            .unwrap()
            .vectors
    };
    let passages = embed(PASSAGES.iter().map(|pair| pair.0.to_owned()).collect()).await;
    let questions = embed(PASSAGES.iter().map(|pair| pair.1.to_owned()).collect()).await;
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    let first = |question: &[f32]| {
        let scores = passages.iter().map(|passage| near(passage, question));
        let best = scores.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(at, _)| at)
    };
    let right = questions.iter().enumerate();
    right
        .filter(|(at, question)| first(question) == Some(*at))
        .count()
}

#[tokio::test]
#[ignore = "needs weights: WORDLLAMA_DIR names an installed wordllama package"]
async fn static_vectors_find_paraphrases() {
    let directory = std::env::var("WORDLLAMA_DIR").expect("WORDLLAMA_DIR");
    let options = Options {
        provider: ProviderKind::Static,
        path: Some(directory.into()),
        ..Options::default()
    };
    let meant = found(&options.embedder().unwrap()).await;
    let written = found(&Options::default().embedder().unwrap()).await;
    println!(
        "found first: static {meant}, lexical {written}, of {}",
        PASSAGES.len()
    );
    assert!(meant >= 8, "{meant} of {}", PASSAGES.len());
    assert!(meant > written);
}
