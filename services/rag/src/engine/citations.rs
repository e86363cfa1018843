//! Citations in an answer while it is written: numbers in brackets that name a passage.
//!
//! A number that names no passage is taken out, with its bracket if nothing is left in it. A sentence that
//! cites nothing but plainly says what passages say gets their numbers. Everything else passes as it is.
//! How the text is cut into pieces changes nothing in the result.

use std::collections::{BTreeSet, HashSet};

use super::words::{word_set, words};

/// Longest bracket that may be a citation, in characters.
const BRACKET: usize = 40;
/// Share of a sentence's telling words that its passages must have.
const SUPPORT: f64 = 0.75;
/// Telling words that a sentence must have, and that one more passage must add.
const WORDS: usize = 3;
const GAIN: usize = 2;
/// Share of a passage's words that an answer must have to lean on it.
const LEANS: f64 = 0.6;
/// Passages cited for one sentence.
const PASSAGES: usize = 3;

/// Reads an answer piece by piece.
pub struct Citer {
    passages: Vec<HashSet<String>>,
    /// What is not passed on yet: blanks, a bracket or the end of a sentence that may go on.
    held: String,
    state: State,
    /// The sentence so far, without citations.
    sentence: String,
    cites: bool,
    cited: BTreeSet<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Inside a sentence; blanks are held.
    Text,
    /// Inside a bracket that begins at this place of what is held, maybe behind the end of a sentence.
    Bracket {
        /// Where it begins.
        from: usize,
        /// Whether the sentence had ended.
        ended: bool,
    },
    /// After what may end a sentence.
    Stop,
    /// After the end of a sentence, which a citation may still follow.
    After,
}

impl Citer {
    /// An answer from these passages, numbered from 1.
    pub fn new<T: AsRef<str>>(passages: &[T]) -> Self {
        Self {
            passages: passages
                .iter()
                .map(|text| word_set(text.as_ref()))
                .collect(),
            held: String::new(),
            state: State::Text,
            sentence: String::new(),
            cites: false,
            cited: BTreeSet::new(),
        }
    }

    /// Takes a piece; returns what can be passed on.
    pub fn push(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len() + 8);
        for c in piece.chars() {
            self.take(c, &mut out);
        }
        out
    }

    /// The rest of the text.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        if let State::Bracket { from, ended } = self.state {
            self.plain(from, ended, &mut out);
        }
        self.close(&mut out);
        out
    }

    /// Passages that were cited, counted from 0.
    pub fn cited(&self) -> &BTreeSet<usize> {
        &self.cited
    }

    fn take(&mut self, c: char, out: &mut String) {
        match self.state {
            State::Text => self.in_text(c, out),
            State::Bracket { from, ended } => self.in_bracket(c, from, ended, out),
            State::Stop if c.is_whitespace() => {
                self.held.push(c);
                self.state = State::After;
            }
            State::Stop if is_end(c) || matches!(c, '"' | '\'' | ')' | '”' | '’') => {
                self.held.push(c);
            }
            State::Stop if c == '[' => self.open(true),
            State::Stop => {
                // Not the end: a number, an address, an abbreviation.
                self.sentence.push_str(&self.held);
                self.pass(out);
                self.in_text(c, out);
            }
            State::After if c == '[' => self.open(true),
            State::After if c.is_whitespace() => self.held.push(c),
            State::After => {
                self.close(out);
                self.in_text(c, out);
            }
        }
    }

    fn in_text(&mut self, c: char, out: &mut String) {
        if c == '[' {
            self.open(false);
        } else if c == '\n' {
            self.held.push(c);
            self.state = State::After;
        } else if is_end(c) {
            self.sentence.push_str(&self.held);
            self.pass(out);
            self.held.push(c);
            self.state = State::Stop;
        } else if c.is_whitespace() {
            self.held.push(c);
        } else {
            self.sentence.push_str(&self.held);
            self.sentence.push(c);
            self.pass(out);
            out.push(c);
        }
    }

    fn open(&mut self, ended: bool) {
        let from = self.held.len();
        self.state = State::Bracket { from, ended };
        self.held.push('[');
    }

    fn in_bracket(&mut self, c: char, from: usize, ended: bool, out: &mut String) {
        if c == ']' {
            let inside = self.held[from + 1..].to_owned();
            self.held.push(c);
            match numbers(&inside) {
                Some(numbers) => self.cite(&numbers, from, ended, out),
                None => self.plain(from, ended, out),
            }
            return;
        }
        let long = self.held.len() - from > BRACKET;
        if long || !(c.is_ascii_digit() || matches!(c, ',' | ';' | '-' | '–' | ' ')) {
            self.plain(from, ended, out);
            self.take(c, out);
        } else {
            self.held.push(c);
        }
    }

    /// The bracket is part of the text.
    fn plain(&mut self, from: usize, ended: bool, out: &mut String) {
        let bracket = self.held.split_off(from);
        if ended {
            self.close(out);
        } else {
            self.sentence.push_str(&self.held);
            self.pass(out);
        }
        self.sentence.push_str(&bracket);
        out.push_str(&bracket);
        self.state = State::Text;
    }

    /// The bracket is a citation: what it names is noted, what it cannot name taken out.
    fn cite(&mut self, numbers: &[usize], from: usize, ended: bool, out: &mut String) {
        let known: Vec<usize> = numbers
            .iter()
            .copied()
            .filter(|number| (1..=self.passages.len()).contains(number))
            .collect();
        if known.is_empty() {
            // The blank before it goes too.
            self.held.truncate(from);
            let kept = self.held.trim_end_matches(' ').len();
            self.held.truncate(kept);
        } else {
            self.cites = true;
            self.cited.extend(known.iter().map(|number| number - 1));
            if known.len() < numbers.len() {
                self.held.truncate(from);
                self.held.push_str(&bracket(&known));
            }
            self.pass(out);
        }
        self.state = if ended { State::After } else { State::Text };
    }

    /// The sentence is over: gives it citations if it has none and deserves them.
    fn close(&mut self, out: &mut String) {
        if !self.cites {
            let found = self.support();
            if !found.is_empty() {
                let numbers: Vec<usize> = found.iter().map(|at| at + 1).collect();
                out.push(' ');
                out.push_str(&bracket(&numbers));
                self.cited.extend(found);
            }
        }
        self.pass(out);
        self.sentence.clear();
        self.cites = false;
        self.state = State::Text;
    }

    /// The fewest passages that together say what the sentence says, if there are such.
    fn support(&self) -> Vec<usize> {
        let said: HashSet<String> = words(&self.sentence).into_iter().collect();
        if said.len() < WORDS {
            return Vec::new();
        }
        let mut missing = said.clone();
        let mut found: Vec<usize> = Vec::new();
        while found.len() < PASSAGES {
            let share = 1.0 - missing.len() as f64 / said.len() as f64;
            if share >= SUPPORT {
                found.sort_unstable();
                return found;
            }
            let gain = |at: &usize| self.passages[*at].intersection(&missing).count();
            let best = (0..self.passages.len())
                .filter(|at| !found.contains(at))
                .max_by_key(|at| (gain(at), std::cmp::Reverse(*at)));
            match best {
                Some(best) if gain(&best) >= GAIN => {
                    missing.retain(|word| !self.passages[best].contains(word));
                    found.push(best);
                }
                _ => return Vec::new(),
            }
        }
        let share = 1.0 - missing.len() as f64 / said.len() as f64;
        found.sort_unstable();
        if share >= SUPPORT { found } else { Vec::new() }
    }

    fn pass(&mut self, out: &mut String) {
        out.push_str(&self.held);
        self.held.clear();
    }
}

/// Passages that an answer without citations leans on: those of which it has most of the words. For short
/// passages, such as facts.
pub fn leans_on<T: AsRef<str>>(answer: &str, passages: &[T]) -> BTreeSet<usize> {
    let said = word_set(answer);
    let leans = |text: &T| {
        let words = word_set(text.as_ref());
        let shared = words.intersection(&said).count();
        shared >= 2 && shared as f64 >= LEANS * words.len() as f64
    };
    (0..passages.len())
        .filter(|at| leans(&passages[*at]))
        .collect()
}

fn is_end(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '。')
}

/// The numbers of a bracket such as `1`, `1, 3` or `2-4`; nothing if it is something else.
fn numbers(inside: &str) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for part in inside.split([',', ';']) {
        let ends: Vec<&str> = part.split(['-', '–']).map(str::trim).collect();
        let number = |text: &str| text.parse::<usize>().ok();
        match ends.as_slice() {
            [one] => found.push(number(one)?),
            [first, last] => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last || last - first > BRACKET {
                    return None;
                }
                found.extend(first..=last);
            }
            _ => return None,
        }
    }
    Some(found)
}

fn bracket(numbers: &[usize]) -> String {
    let all: Vec<String> = numbers.iter().map(usize::to_string).collect();
    format!("[{}]", all.join(", "))
}

#[cfg(test)]
mod tests;
