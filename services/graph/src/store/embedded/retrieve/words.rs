//! The words of a question, numbered, and which of them a text has: a bit for each, however many they are. Every
//! edge of a hub is read by this, so a text is looked through without allocation where it is ASCII.

use std::borrow::Cow;
use std::collections::HashMap;

use tg_citations::forms::folded;

/// Words of one text that are looked at.
const LOOKED_AT: usize = 200;
/// Bits of a part of a mask.
const BITS: usize = u64::BITS as usize;

/// The words that are asked for.
pub(super) struct Words<'a> {
    numbers: HashMap<Cow<'a, str>, usize>,
    /// Of each first byte: lengths of the words that begin with it, a bit each; longer ones share the last.
    lengths: [u64; 128],
    /// A word in lower case; kept for the next one.
    folded: String,
}

impl<'a> Words<'a> {
    pub(super) fn of(asked: &'a [String]) -> Self {
        let mut numbers = HashMap::new();
        let mut lengths = [0; 128];
        for word in asked {
            let next = numbers.len();
            let word = folded(word);
            numbers.entry(word.clone()).or_insert(next);
            if let Some(first) = word.bytes().next()
                && let Some(known) = lengths.get_mut(usize::from(first))
            {
                *known |= length_bit(word.len());
            }
        }
        Self {
            numbers,
            lengths,
            folded: String::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// A mask without any of them.
    pub(super) fn none(&self) -> Mask {
        let parts = self.numbers.len().div_ceil(BITS);
        Mask {
            first: 0,
            rest: vec![0; parts.saturating_sub(1)].into(),
        }
    }

    /// Adds those that a text has.
    pub(super) fn mark(&mut self, text: &str, into: &mut Mask) {
        if self.is_empty() {
            return;
        }
        let text = folded(text);
        let found = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty());
        for word in found.take(LOOKED_AT) {
            if let Some(number) = self.number(word) {
                into.set(number);
            }
        }
    }

    fn number(&mut self, word: &str) -> Option<usize> {
        if !word.is_ascii() {
            // Its case may hang on what stands beside a letter, and it may be ASCII in lower case.
            return self.numbers.get(word.to_lowercase().as_str()).copied();
        }
        let first = word.bytes().next()?.to_ascii_lowercase();
        if self.lengths[usize::from(first)] & length_bit(word.len()) == 0 {
            return None;
        }
        self.folded.clear();
        self.folded.push_str(word);
        self.folded.make_ascii_lowercase();
        self.numbers.get(self.folded.as_str()).copied()
    }
}

fn length_bit(length: usize) -> u64 {
    1 << length.min(BITS - 1)
}

/// Which words there are. As many as have a bit in one number take no memory of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mask {
    first: u64,
    rest: Box<[u64]>,
}

impl Mask {
    fn set(&mut self, number: usize) {
        let bit = 1 << (number % BITS);
        match (number / BITS).checked_sub(1) {
            None => self.first |= bit,
            Some(at) => self.rest[at] |= bit,
        }
    }

    /// Adds those of another mask of the same words.
    pub(super) fn add(&mut self, other: &Self) {
        self.first |= other.first;
        for (part, other) in self.rest.iter_mut().zip(&other.rest) {
            *part |= other;
        }
    }

    pub(super) fn count(&self) -> usize {
        let parts = std::iter::once(&self.first).chain(&self.rest);
        parts.map(|part| part.count_ones() as usize).sum()
    }

    /// Bytes that it takes elsewhere.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn count(words: &mut Words<'_>, text: &str) -> usize {
        let mut mask = words.none();
        words.mark(text, &mut mask);
        mask.count()
    }

    #[test]
    fn words_count_once_in_whatever_case() {
        let long = "x".repeat(100);
        let asked = asked(&[
            "bridge",
            "bridge",
            "straße",
            "οδυσσεύς",
            "k",
            "Upper",
            "",
            &long,
        ]);
        let mut words = Words::of(&asked);
        for (text, expected) in [
            ("The BRIDGE-bridge, Bridge!", 1),
            ("STRASSE Straße", 1),
            ("ΟΔΥΣΣΕΎΣ", 1),
            ("\u{212a}", 1),
            ("upper UPPER Upper bridges ridge", 0),
            (&format!("{} {}x", long.to_uppercase(), long), 1),
            ("", 0),
            (&format!("{}bridge", "a ".repeat(200)), 0),
            (&format!("{}bridge", "a ".repeat(199)), 1),
        ] {
            assert_eq!(count(&mut words, text), expected, "{text}");
        }
        assert_eq!(count(&mut Words::of(&[]), "bridge"), 0);
    }

    #[test]
    fn words_meet_in_one_form() {
        let asked = asked(&["café", "grosse", "bridge", "が"]);
        let mut words = Words::of(&asked);
        for text in [
            "Cafe\u{301}!",
            "die GROẞE, große",
            "ＢＲＩＤＧＥ",
            "か\u{3099}",
        ] {
            assert_eq!(count(&mut words, text), 1, "{text}");
        }
    }

    #[test]
    fn more_words_than_bits_are_all_told_apart() {
        let asked: Vec<String> = (0..1_000).map(|at| format!("word{at}")).collect();
        let mut words = Words::of(&asked);
        let mut all = words.none();
        for part in asked.chunks(150) {
            let mut mask = words.none();
            words.mark(&part.join(" "), &mut mask);
            assert_eq!(mask.count(), part.len());
            all.add(&mask);
        }
        assert_eq!(all.count(), 1_000);
        assert_eq!(count(&mut words, "word64 WORD64 word999 word1000"), 2);
    }
}
