//! How far a run is, in numbers that people understand.

use std::collections::BTreeMap;

use super::readers::Reader;
use super::state::Counts;

/// What one reader did in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) reader: Reader,
    /// Records known to be for it.
    pub(crate) expected: i64,
    /// Records it handled well.
    pub(crate) done: i64,
    /// Records it failed at.
    pub(crate) failed: i64,
}

/// What was done, of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) kind: String,
    /// By those who hand it on.
    pub(crate) made: i64,
    /// By those who store it.
    pub(crate) stored: i64,
}

/// Effects that stores confirm.
const STORED: [&str; 4] = ["triples", "vectors", "rows", "keywords"];

/// The numbers: `records`, `pages`, `chunks`, and whatever handlers counted; `-total` beside those of which
/// the whole is known so far.
pub(crate) fn progress(
    counts: Counts,
    readings: &[Reading],
    effects: &[Effect],
    unchanged: i64,
) -> BTreeMap<String, i64> {
    let mut told = BTreeMap::new();
    let mut tell = |key: &str, number: i64| {
        told.insert(key.to_owned(), number);
    };
    tell("records", counts.settled - counts.failed);
    tell("records-total", counts.expected);
    if counts.failed > 0 {
        tell("records-failed", counts.failed);
    }
    if unchanged > 0 {
        tell("unchanged", unchanged);
    }
    let pages = of(readings, "Document").and_then(|_| of(readings, "TextDocument"));
    let stages = [("pages", pages), ("chunks", of(readings, "Chunk"))];
    for (kind, stage) in stages {
        if let Some((done, total)) = stage {
            tell(kind, done);
            tell(&format!("{kind}-total"), total);
        }
    }
    for effect in effects {
        let kind = effect.kind.as_str();
        if stages
            .iter()
            .any(|(told, stage)| *told == kind && stage.is_some())
        {
            continue;
        }
        let stored = STORED.contains(&kind);
        match (effect.made, effect.stored) {
            (made, 0) if !stored => tell(kind, made),
            (0, done) => tell(kind, done),
            (made, done) => {
                tell(kind, done);
                tell(&format!("{kind}-total"), made);
            }
        }
    }
    told
}

/// Records of a message that all its readers handled, and that there are; `None` without any.
fn of(readings: &[Reading], message: &str) -> Option<(i64, i64)> {
    let mut read = readings
        .iter()
        .filter(|one| one.expected > 0 && one.reader.message() == message);
    let first = read.next()?;
    Some(
        read.fold((first.done, first.expected), |(done, total), one| {
            (done.min(one.done), total.max(one.expected))
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(processor: &str, expected: i64, done: i64) -> Reading {
        Reading {
            reader: Reader {
                topic: String::new(),
                subscription: format!("{processor}--w--f--input"),
            },
            expected,
            done,
            failed: 0,
        }
    }

    fn effect(kind: &str, made: i64, stored: i64) -> Effect {
        Effect {
            kind: kind.into(),
            made,
            stored,
        }
    }

    #[test]
    fn chunks_are_done_when_all_who_read_them_are() {
        let readings = [
            reading("document-decoder", 1, 1),
            reading("chunker", 4, 3),
            reading("kw-index", 40, 40),
            reading("document-embeddings", 40, 12),
            reading("kg-extract-definitions", 0, 0),
        ];
        let effects = [
            effect("pages", 4, 0),
            effect("chunks", 40, 0),
            effect("triples", 300, 250),
            effect("vectors", 0, 7),
            effect("model-calls", 33, 0),
            effect("keywords", 0, 40),
        ];
        let counts = Counts {
            expected: 100,
            settled: 70,
            failed: 2,
        };
        let told = progress(counts, &readings, &effects, 5);
        let told: Vec<_> = told.iter().map(|(key, n)| (key.as_str(), *n)).collect();
        assert_eq!(
            told,
            [
                ("chunks", 12),
                ("chunks-total", 40),
                ("keywords", 40),
                ("model-calls", 33),
                ("pages", 3),
                ("pages-total", 4),
                ("records", 68),
                ("records-failed", 2),
                ("records-total", 100),
                ("triples", 250),
                ("triples-total", 300),
                ("unchanged", 5),
                ("vectors", 7),
            ]
        );
    }
}
