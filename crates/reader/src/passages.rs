//! Answering from running text: the sentences that share most with the question.

use std::collections::HashMap;

use super::question::bounded;
use super::words;

const MOST: usize = 3;

/// What is said when there is no text to quote.
pub(super) const NOTHING: &str = "The built-in reader only quotes text that it is given, and this \
request holds none that answers it. Set up a model provider for open questions.";

/// Answers a prompt that holds both text and question.
pub(super) fn answer(prompt: &str) -> String {
    let sentences = sentences(prompt);
    let asked = sentences
        .iter()
        .rposition(|sentence| sentence.ends_with('?'))
        .or_else(|| {
            sentences
                .iter()
                .rposition(|sentence| sentence.to_lowercase().starts_with("question:"))
        });
    let quoted = match asked {
        Some(asked) => {
            let text: Vec<&str> = sentences
                .iter()
                .enumerate()
                .filter(|(at, sentence)| *at != asked && !sentence.ends_with(['?', ':']))
                .map(|(_, sentence)| *sentence)
                .collect();
            best(&text, &words::content(bounded(sentences[asked])))
        }
        None => central(&sentences),
    };
    if quoted.is_empty() {
        NOTHING.to_owned()
    } else {
        quoted.join(" ")
    }
}

/// The sentences that share most with the words asked for, in their order; none when nothing is shared.
pub(super) fn best<'a>(sentences: &[&'a str], asked: &[String]) -> Vec<&'a str> {
    let split: Vec<Vec<String>> = sentences.iter().map(|text| words::content(text)).collect();
    // A word that every sentence has tells little.
    let weight = |word: &String| {
        let holders = split
            .iter()
            .filter(|own| own.iter().any(|other| words::same(other, word)))
            .count();
        1.0 + (split.len() as f64 / holders.max(1) as f64).ln()
    };
    let weights: Vec<f64> = asked.iter().map(weight).collect();
    let scores: Vec<f64> = split
        .iter()
        .map(|own| {
            let hit = |word: &String| own.iter().any(|other| words::alike(other, word));
            let sum: f64 = asked
                .iter()
                .zip(&weights)
                .filter(|(word, _)| hit(word))
                .map(|(_, weight)| weight)
                .sum();
            sum / (1.0 + own.len() as f64 / 60.0)
        })
        .collect();
    pick(sentences, &scores)
}

/// The sentences that hold the words the text repeats most.
fn central<'a>(sentences: &[&'a str]) -> Vec<&'a str> {
    let split: Vec<Vec<String>> = sentences.iter().map(|text| words::content(text)).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in split.iter().flatten() {
        *counts.entry(word).or_default() += 1;
    }
    let scores: Vec<f64> = split
        .iter()
        .map(|own| {
            let often: usize = own.iter().map(|word| counts[word.as_str()]).sum();
            often as f64 / own.len().max(4) as f64
        })
        .collect();
    pick(sentences, &scores)
}

fn pick<'a>(sentences: &[&'a str], scores: &[f64]) -> Vec<&'a str> {
    let top = scores.iter().copied().fold(0.0, f64::max);
    if top <= 0.0 {
        return Vec::new();
    }
    let mut chosen: Vec<usize> = (0..sentences.len())
        .filter(|at| scores[*at] >= top * 0.8)
        .collect();
    chosen.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    chosen.truncate(MOST);
    chosen.sort_unstable();
    chosen.into_iter().map(|at| sentences[at]).collect()
}

/// Cuts text into sentences and lines.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut from = 0;
        for (at, c) in line.char_indices() {
            let end = at + c.len_utf8();
            let stop = matches!(c, '.' | '!' | '?') && line[end..].starts_with(' ');
            if stop {
                found.push(line[from..end].trim());
                from = end;
            }
        }
        found.push(line[from..].trim());
    }
    found.retain(|sentence| sentence.chars().any(char::is_alphanumeric));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_matching_sentence_is_quoted() {
        let prompt = "The Lantern was lit in 1802. It stands on a cliff. Ships fear the reef.\n\n\
                      When was the Lantern lit?";
        assert_eq!(answer(prompt), "The Lantern was lit in 1802.");
    }

    #[test]
    fn without_text_nothing_is_invented() {
        assert_eq!(answer("What is the capital of Freedonia?"), NOTHING);
        assert_eq!(answer(""), NOTHING);
    }
}
