//! Sentences of documents that a tool returned beside its facts, each with its number: a fact that was read from a sentence is
//! answered by the sentence, as the fact has only a part of what the sentence says.

use super::observation::{Line, numbered};
use super::words;

/// Share of the words asked for that the sentences have to have to be an answer.
const COVERED: f64 = 0.5;

/// A sentence and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sentence<'a> {
    number: usize,
    text: &'a str,
}

impl Sentence<'_> {
    /// The sentence with its number before the full stop, as answers cite.
    pub(super) fn quote(&self) -> String {
        format!(
            "{} [{}].",
            self.text.trim_end_matches(['.', ' ']),
            self.number
        )
    }
}

fn sentence(line: &Line) -> Option<(usize, &str)> {
    match line {
        Line::Text(text) => numbered(text),
        Line::Fact { .. } => None,
    }
}

/// Whether a line is a sentence with its number.
pub(super) fn is_sentence(line: &Line) -> bool {
    sentence(line).is_some()
}

/// The sentences among the lines of an observation. One that was cut says less than its document, and is left out.
pub(super) fn sentences(lines: &[Line]) -> Vec<Sentence<'_>> {
    lines
        .iter()
        .filter_map(sentence)
        .filter(|(_, text)| !text.ends_with('\u{2026}'))
        .map(|(number, text)| Sentence { number, text })
        .collect()
}

/// The sentence that has all words of a fact's object and most of the others: subject, predicate and object, as they are read.
pub(super) fn of_fact<'s, 'a>(
    [subject, predicate, object]: [&str; 3],
    sentences: &'s [Sentence<'a>],
) -> Option<&'s Sentence<'a>> {
    let (object, mut beside) = (words::content(object), words::content(predicate));
    beside.extend(words::content(subject));
    let mut best: Option<(usize, &Sentence<'a>)> = None;
    for sentence in sentences {
        let own = words::split(sentence.text);
        let has = |word: &&String| own.iter().any(|other| words::same(other, word));
        let whole = !object.is_empty() && object.iter().all(|word| has(&word));
        let shared = beside.iter().filter(has).count();
        if whole && shared > 0 && best.is_none_or(|(most, _)| shared > most) {
            best = Some((shared, sentence));
        }
    }
    best.map(|(_, sentence)| sentence)
}

/// Whether sentences speak of what is asked about a thing.
pub(super) fn covers(sentences: &[Sentence<'_>], about: &str, asked: &[String]) -> bool {
    let mut own = words::split(about);
    for sentence in sentences {
        own.extend(words::split(sentence.text));
    }
    let has = |word: &&String| own.iter().any(|other| words::alike(other, word));
    asked.iter().filter(has).count() as f64 >= COVERED * asked.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &[&str] = &[
        "Read from:",
        "[3] The Old Bridge was built in 1429 by Nerina Vosk.",
        "[7] The Old Bridge was restored in 1987.",
        "[8] The Old Bridge was widened in 1990, and\u{2026}",
    ];

    #[test]
    fn a_fact_is_quoted_by_the_sentence_that_says_it() {
        let lines: Vec<Line> = LINES
            .iter()
            .map(|line| Line::Text((*line).into()))
            .collect();
        let sentences = sentences(&lines);
        assert_eq!(sentences.len(), 2, "{sentences:?}");
        let quote = |fact| of_fact(fact, &sentences).map(Sentence::quote);
        assert_eq!(
            quote(["Old Bridge", "was restored in", "1987"]).as_deref(),
            Some("The Old Bridge was restored in 1987 [7].")
        );
        assert_eq!(
            quote(["Old Bridge", "was built by", "Nerina Vosk"]).as_deref(),
            Some("The Old Bridge was built in 1429 by Nerina Vosk [3].")
        );
        assert_eq!(quote(["Old Bridge", "crosses", "River Sell"]), None);
        assert!(covers(&sentences, "Old Bridge", &["built".into()]));
        assert!(!covers(&sentences, "Old Bridge", &["mayor".into()]));
    }
}
