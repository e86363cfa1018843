//! What each sentence of an answer rests on: judged here once, for whoever shows it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::refusal::is_refusal;
use super::sentences::{Plain, Sentence, quotations, sentences};

/// What a sentence rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rests {
    /// The passages with these numbers.
    On(Vec<usize>),
    /// On passages in which these quotations do not stand.
    Misquotes(Vec<usize>, Vec<String>),
    /// It says that there is no answer.
    Refuses,
    /// Nothing.
    Nothing,
}

impl Rests {
    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::On(_) => "passages",
            Self::Misquotes(..) => "misquoted",
            Self::Refuses => "refusal",
            Self::Nothing => "nothing",
        }
    }

    /// Numbers of the passages.
    pub fn by(&self) -> &[usize] {
        match self {
            Self::On(by) | Self::Misquotes(by, _) => by,
            Self::Refuses | Self::Nothing => &[],
        }
    }

    /// Quotations that do not stand in the passages.
    pub fn misquoted(&self) -> &[String] {
        match self {
            Self::Misquotes(_, wrong) => wrong,
            _ => &[],
        }
    }
}

/// A sentence with what it rests on, as it is written in JSON, by the gateway and by the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct JudgedSentence<'a> {
    /// The sentence.
    pub text: &'a str,
    /// Name of what it rests on: `passages`, `misquoted`, `refusal` or `nothing`.
    pub support: &'static str,
    /// Numbers of the passages.
    pub by: &'a [usize],
    /// Quotations that do not stand in the passages; absent without any.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub misquoted: &'a [String],
}

impl<'a> From<&'a (String, Rests)> for JudgedSentence<'a> {
    fn from((text, rests): &'a (String, Rests)) -> Self {
        Self {
            text,
            support: rests.name(),
            by: rests.by(),
            misquoted: rests.misquoted(),
        }
    }
}

/// The sentences of an answer with what each rests on.
#[derive(Debug, Default)]
pub struct Judged(Vec<(String, Rests)>);

impl Judged {
    /// Judges an answer. `known` tells which numbers name something, with the passage's text where there is one: without
    /// a text there is nothing to hold a quotation against.
    pub fn new(answer: &str, known: &BTreeMap<usize, Option<String>>) -> Self {
        let read = |(number, text): (&usize, &Option<String>)| {
            let text = text.as_ref().map(|text| Plain::of(text));
            (*number, text)
        };
        let known: BTreeMap<usize, Option<Plain>> = known.iter().map(read).collect();
        let judge = |sentence: Sentence| {
            let rests = rests(&sentence.text, sentence.numbers, &known);
            (sentence.text, rests)
        };
        Self(sentences(answer).into_iter().map(judge).collect())
    }

    /// Bytes that are looked through to judge an answer: for each quotation, the passages that its sentence cites.
    pub fn cost(answer: &str, known: &BTreeMap<usize, Option<String>>) -> usize {
        let size = |number: &usize| known.get(number)?.as_ref().map(String::len);
        let of = |sentence: Sentence| {
            let cited: BTreeSet<usize> = sentence.numbers.into_iter().collect();
            let bytes: usize = cited.iter().filter_map(size).sum();
            quotations(&sentence.text).len().saturating_mul(bytes)
        };
        let all = sentences(answer).into_iter().map(of);
        all.fold(0, usize::saturating_add)
    }

    /// Each sentence with what it rests on, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Rests)> {
        self.0.iter().map(|(text, rests)| (text.as_str(), rests))
    }

    /// Each sentence as it is written in JSON, in order.
    pub fn sentences(&self) -> Vec<JudgedSentence<'_>> {
        self.0.iter().map(JudgedSentence::from).collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether one rests on a passage.
    pub fn cite(&self) -> bool {
        self.iter().any(|(_, rests)| !rests.by().is_empty())
    }

    /// How many rest on nothing.
    pub fn unsupported(&self) -> usize {
        let nothing = |(_, rests): &(&str, &Rests)| **rests == Rests::Nothing;
        self.iter().filter(nothing).count()
    }

    /// How many quote what does not stand in their passages.
    pub fn misquoting(&self) -> usize {
        let wrong = |(_, rests): &(&str, &Rests)| !rests.misquoted().is_empty();
        self.iter().filter(wrong).count()
    }
}

fn rests(text: &str, mut numbers: Vec<usize>, known: &BTreeMap<usize, Option<Plain>>) -> Rests {
    let mut seen = BTreeSet::new();
    numbers.retain(|number| known.contains_key(number) && seen.insert(*number));
    if numbers.is_empty() {
        return match is_refusal(text) {
            true => Rests::Refuses,
            false => Rests::Nothing,
        };
    }
    let passage = |number: &usize| known.get(number)?.as_ref();
    let passages: Vec<&Plain> = numbers.iter().filter_map(passage).collect();
    let stands = |quoted: &&str| passages.iter().any(|passage| passage.holds(quoted));
    let quoted = quotations(text).into_iter();
    let wrong: Vec<String> = quoted
        .filter(|quoted| !passages.is_empty() && !stands(quoted))
        .map(str::to_owned)
        .collect();
    match wrong.is_empty() {
        true => Rests::On(numbers),
        false => Rests::Misquotes(numbers, wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(judged: &Judged) -> Vec<(&str, &[usize], &[String])> {
        let all = judged.iter();
        all.map(|(_, rests)| (rests.name(), rests.by(), rests.misquoted()))
            .collect()
    }

    #[test]
    fn each_sentence_is_told_by_what_it_rests_on() {
        let known = BTreeMap::from([
            (1, Some("The lantern is a lamp of blue glass.".to_owned())),
            (2, None),
        ]);
        let answer = "It is \"a lamp of blue glass\" [1]. It is \"a lamp of red glass\" [1]. It hangs [2, 7]. \
                      I like it. It is old [9]. He says \"what nobody can know\" [2].";
        let judged = Judged::new(answer, &known);
        let wrong = ["a lamp of red glass".to_owned()];
        assert_eq!(
            told(&judged),
            [
                ("passages", &[1][..], &[][..]),
                ("misquoted", &[1], &wrong),
                ("passages", &[2], &[]),
                ("nothing", &[], &[]),
                ("nothing", &[], &[]),
                ("passages", &[2], &[]),
            ]
        );
        assert_eq!(
            (judged.count(), judged.unsupported(), judged.misquoting()),
            (6, 2, 1)
        );
        assert!(judged.cite());
        assert_eq!(
            serde_json::to_value(&judged.sentences()[..2]).expect("JSON"),
            serde_json::json!([
                {"text": "It is \"a lamp of blue glass\".", "support": "passages", "by": [1]},
                {"text": "It is \"a lamp of red glass\".", "support": "misquoted", "by": [1],
                    "misquoted": ["a lamp of red glass"]},
            ])
        );
    }

    #[test]
    fn a_refusal_rests_on_nothing_and_is_no_fault() {
        let judged = Judged::new(
            "The passages do not answer this question.",
            &BTreeMap::new(),
        );
        assert_eq!(told(&judged), [("refusal", &[][..], &[][..])]);
        assert!(!judged.cite() && judged.unsupported() == 0);
    }

    #[test]
    fn any_of_several_passages_may_hold_a_quotation() {
        let text = |text: &str| Some(text.to_owned());
        let known = BTreeMap::from([(1, text("It is old.")), (2, text("A lamp of Blue\nglass!"))]);
        let judged = Judged::new("\"A lamp of blue glass\", they say [1, 2].", &known);
        assert_eq!(told(&judged), [("passages", &[1, 2][..], &[][..])]);
    }

    #[test]
    fn a_number_counts_once_and_what_is_looked_through_is_counted_by_sentence() {
        let known = BTreeMap::from([(1, Some("x".repeat(100))), (2, Some("y".repeat(10)))]);
        let answer =
            "He says \"what nobody knows\" [1-2][1-2][2]. \"It is so and so\" [2]. « It is.";
        let judged = Judged::new(answer, &known);
        assert_eq!(judged.0[0].1.by(), [1, 2]);
        assert_eq!(Judged::cost(answer, &known), 110 + 10);
    }
}
