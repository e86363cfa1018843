//! What each sentence of an answer rests on. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tg_citations::{is_refusal, quotations, sentences, stands_in};

/// Longest sentence that is shown.
const SHOWN: usize = 160;

/// What a sentence rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Rests {
    /// The passages with these numbers.
    On(Vec<usize>),
    /// On passages in which these quotations do not stand.
    Misquotes(Vec<usize>, Vec<String>),
    /// It says that there is no answer.
    Refuses,
    /// Nothing.
    Nothing,
}

/// The sentences of an answer.
#[derive(Debug, Default)]
pub(super) struct Judged(Vec<(String, Rests)>);

impl Judged {
    /// Judges an answer. `known` tells numbers that the trace knows, with the chunk's text where there is one.
    pub(super) fn new(answer: &str, known: &BTreeMap<usize, Option<String>>) -> Self {
        let judge = |sentence: tg_citations::Sentence| {
            let mut numbers = sentence.numbers;
            numbers.retain(|number| known.contains_key(number));
            numbers.dedup();
            let texts: Vec<&String> = numbers
                .iter()
                .filter_map(|number| known.get(number)?.as_ref())
                .collect();
            let stands = |quoted: &&str| texts.iter().any(|text| stands_in(quoted, text));
            let quoted = quotations(&sentence.text).into_iter();
            let wrong: Vec<String> = quoted
                // Without a text there is nothing to hold a quotation against.
                .filter(|quoted| !texts.is_empty() && !stands(quoted))
                .map(str::to_owned)
                .collect();
            let rests = match (numbers.is_empty(), wrong.is_empty()) {
                (true, _) if is_refusal(&sentence.text) => Rests::Refuses,
                (true, _) => Rests::Nothing,
                (false, true) => Rests::On(numbers),
                (false, false) => Rests::Misquotes(numbers, wrong),
            };
            (sentence.text, rests)
        };
        Self(sentences(answer).into_iter().map(judge).collect())
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether one rests on a passage.
    pub(super) fn cite(&self) -> bool {
        let cites =
            |(_, rests): &(String, Rests)| matches!(rests, Rests::On(_) | Rests::Misquotes(..));
        self.0.iter().any(cites)
    }

    /// How many rest on nothing.
    pub(super) fn unsupported(&self) -> usize {
        self.0
            .iter()
            .filter(|(_, rests)| *rests == Rests::Nothing)
            .count()
    }

    /// How many quote what does not stand in their passages.
    pub(super) fn misquoting(&self) -> usize {
        let wrong = |(_, rests): &&(String, Rests)| matches!(rests, Rests::Misquotes(..));
        self.0.iter().filter(wrong).count()
    }

    /// For `--json`.
    pub(super) fn json(&self) -> Vec<Value> {
        let none = Vec::new();
        let one = |(text, rests): &(String, Rests)| {
            let (support, by, misquoted) = match rests {
                Rests::On(by) => ("passages", by, None),
                Rests::Misquotes(by, wrong) => ("misquoted", by, Some(wrong)),
                Rests::Refuses => ("refusal", &none, None),
                Rests::Nothing => ("nothing", &none, None),
            };
            json!({"text": text, "support": support, "by": by, "misquoted": misquoted})
        };
        self.0.iter().map(one).collect()
    }

    /// For people, one line a sentence and one for each wrong quotation.
    pub(super) fn text(&self) -> String {
        let numbers = |by: &[usize]| {
            let shown: Vec<String> = by.iter().map(|number| format!("[{number}]")).collect();
            shown.join(", ")
        };
        let line = |(text, rests): &(String, Rests)| {
            let text = shortened(text);
            match rests {
                Rests::On(by) => format!("✓ {text}\n    supported by {}", numbers(by)),
                Rests::Misquotes(by, wrong) => {
                    let wrong: Vec<String> = wrong
                        .iter()
                        .map(|quoted| {
                            format!(
                                "    quoted wrongly: \"{quoted}\" does not stand in {}",
                                numbers(by)
                            )
                        })
                        .collect();
                    format!("✗ {text}\n{}", wrong.join("\n"))
                }
                Rests::Refuses => format!("– {text}\n    says that there is no answer"),
                Rests::Nothing => format!("– {text}\n    supported by nothing"),
            }
        };
        self.0.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_is_told_by_what_it_rests_on() {
        let known = BTreeMap::from([
            (1, Some("The lantern is a lamp of blue glass.".to_owned())),
            (2, None),
        ]);
        let answer = "It is \"a lamp of blue glass\" [1]. It is \"a lamp of red glass\" [1]. It hangs [2, 7]. \
                      I like it. It is old [9].";
        let judged = Judged::new(answer, &known);
        assert_eq!(
            judged.text(),
            "✓ It is \"a lamp of blue glass\".\n    supported by [1]\n\
             ✗ It is \"a lamp of red glass\".\n    quoted wrongly: \"a lamp of red glass\" does not stand in [1]\n\
             ✓ It hangs.\n    supported by [2]\n\
             – I like it.\n    supported by nothing\n\
             – It is old.\n    supported by nothing"
        );
        assert_eq!(
            (judged.count(), judged.unsupported(), judged.misquoting()),
            (5, 2, 1)
        );
        assert!(judged.cite());
        assert_eq!(judged.json()[1]["support"], "misquoted");
        assert_eq!(judged.json()[0]["by"], json!([1]));
    }

    #[test]
    fn a_refusal_rests_on_nothing_and_is_no_fault() {
        let judged = Judged::new(
            "The passages do not answer this question.",
            &BTreeMap::new(),
        );
        assert!(!judged.cite());
        assert_eq!(judged.unsupported(), 0);
        assert_eq!(judged.json()[0]["support"], "refusal");
    }
}
