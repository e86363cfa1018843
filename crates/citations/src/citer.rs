//! Citations in an answer while it is written: numbers in brackets that name a passage.
//!
//! Passages are numbered anew, from 1 in the order in which the answer first uses them. A number that names no passage
//! is taken out, with its bracket if nothing is left in it. A sentence that cites nothing but plainly says what
//! passages say gets their numbers. One that only says that there is no answer bears none. Everything else passes as
//! it is. How the text is cut into pieces changes nothing in the result.

use std::collections::{BTreeSet, HashSet};

use super::refusal::is_refusal;
use super::sentences::{self, BRACKET, is_closing, is_end, numbers};
use super::words::{word_set, words};

/// Share of a sentence's telling words that its passages must have.
const SUPPORT: f64 = 0.75;
/// Telling words that a sentence must have, and that one more passage must add.
const WORDS: usize = 3;
const GAIN: usize = 2;
/// Share of a passage's words that an answer must have to lean on it.
const LEANS: f64 = 0.6;
/// Passages cited for one sentence.
const PASSAGES: usize = 3;
/// Bytes of a sentence that wait behind its first citation until it is known what the sentence says.
const WAITING: usize = 2_000;
const WAITING_PARTS: usize = 64;
/// What a model is asked to write behind a sentence that says that there is no answer.
const NO_PASSAGE: usize = 0;

/// A passage that an answer cites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cited {
    /// Which of the passages, from 0.
    pub passage: usize,
    /// The sentence that cites it first.
    pub said: String,
}

/// Reads an answer piece by piece.
pub struct Citer {
    passages: Vec<HashSet<String>>,
    /// What is not passed on yet: blanks, a bracket or the end of a sentence that may go on.
    held: String,
    state: State,
    /// The sentence so far, without citations.
    sentence: String,
    /// The sentence from its first citation on: it bears numbers only if it says something.
    waiting: Vec<Waiting>,
    /// The sentence was said to have no passage.
    nothing: bool,
    cited: Vec<Cited>,
    refusals: bool,
    /// A sentence says something else.
    says: bool,
}

/// A part of a sentence that is not passed on yet.
enum Waiting {
    Text(String),
    /// A citation: the blanks before it, and what it names.
    Mark(String, Vec<usize>),
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
            waiting: Vec::new(),
            nothing: false,
            cited: Vec::new(),
            refusals: false,
            says: false,
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

    /// What was cited, by number: the first has number 1.
    pub fn cited(&self) -> &[Cited] {
        &self.cited
    }

    /// Whether the answer is that there is none: it says so, and nothing else.
    pub fn refused(&self) -> bool {
        self.refusals && !self.says
    }

    fn take(&mut self, c: char, out: &mut String) {
        match self.state {
            State::Text => self.in_text(c, out),
            State::Bracket { from, ended } => self.in_bracket(c, from, ended, out),
            State::Stop if c.is_whitespace() => {
                self.held.push(c);
                self.state = State::After;
            }
            State::Stop if is_end(c) || is_closing(c) => {
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
            self.held.push(c);
            self.pass(out);
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
        self.put(&bracket, out);
        self.state = State::Text;
    }

    /// The bracket is a citation: what it names is noted, what it cannot name taken out.
    fn cite(&mut self, numbers: &[usize], from: usize, ended: bool, out: &mut String) {
        self.nothing |= numbers.contains(&NO_PASSAGE);
        let known: Vec<usize> = numbers
            .iter()
            .filter(|number| (1..=self.passages.len()).contains(number))
            .map(|number| number - 1)
            .collect();
        // The blank before it goes with it.
        self.held.truncate(from);
        let text = self.held.trim_end_matches(' ').len();
        let blanks = self.held.split_off(text);
        if !known.is_empty() {
            self.pass(out);
            self.waiting.push(Waiting::Mark(blanks, known));
            if self.waiting.len() > WAITING_PARTS {
                self.settle(false, out);
            }
        }
        self.state = if ended { State::After } else { State::Text };
    }

    /// The sentence is over: gives it citations if it has none and deserves them.
    fn close(&mut self, out: &mut String) {
        let refusal = self.nothing || is_refusal(&self.sentence);
        self.refusals |= refusal;
        self.says |= !refusal && self.sentence.contains(char::is_alphanumeric);
        if !refusal && !self.cites() {
            let found = self.support();
            if !found.is_empty() {
                self.waiting.push(Waiting::Mark(" ".to_owned(), found));
            }
        }
        self.settle(refusal, out);
        self.pass(out);
        self.sentence.clear();
        self.nothing = false;
        self.state = State::Text;
    }

    fn cites(&self) -> bool {
        let is_mark = |part: &Waiting| matches!(part, Waiting::Mark(..));
        self.waiting.iter().any(is_mark)
    }

    /// Passes on what waited, with numbers unless the sentence only says that there is no answer.
    fn settle(&mut self, refusal: bool, out: &mut String) {
        for part in std::mem::take(&mut self.waiting) {
            match part {
                Waiting::Text(text) => out.push_str(&text),
                Waiting::Mark(..) if refusal => {}
                Waiting::Mark(blanks, passages) => {
                    let mut numbers: Vec<usize> =
                        passages.into_iter().map(|at| self.number(at)).collect();
                    numbers.sort_unstable();
                    numbers.dedup();
                    out.push_str(&blanks);
                    out.push_str(&bracket(&numbers));
                }
            }
        }
    }

    /// The number of a passage: the next one, when it is used first.
    fn number(&mut self, passage: usize) -> usize {
        let known = self.cited.iter().position(|cited| cited.passage == passage);
        let at = known.unwrap_or_else(|| {
            self.cited.push(Cited {
                passage,
                said: self.sentence.trim().to_owned(),
            });
            self.cited.len() - 1
        });
        at + 1
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
        let held = std::mem::take(&mut self.held);
        self.put(&held, out);
    }

    /// Text of the sentence: passed on, unless a citation before it waits.
    fn put(&mut self, text: &str, out: &mut String) {
        match self.waiting.last_mut() {
            None => {
                out.push_str(text);
                return;
            }
            Some(Waiting::Text(last)) => last.push_str(text),
            Some(Waiting::Mark(..)) if text.is_empty() => {}
            Some(Waiting::Mark(..)) => self.waiting.push(Waiting::Text(text.to_owned())),
        }
        if let Some(Waiting::Text(last)) = self.waiting.last()
            && last.len() > WAITING
        {
            // Nothing that says so little is so long.
            self.settle(false, out);
        }
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

fn bracket(numbers: &[usize]) -> String {
    let all: Vec<String> = numbers.iter().map(usize::to_string).collect();
    format!("[{}]", all.join(", "))
}

/// A text whose numbers are others: `number` gives the new one, or none where the old one names nothing.
pub fn renumbered(text: &str, number: impl Fn(usize) -> Option<usize>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        out.push_str(&rest[..at]);
        let inside = sentences::bracket(&rest[at + 1..]);
        match inside.and_then(|(inside, after)| Some((numbers(inside)?, after))) {
            Some((numbers, after)) => {
                let mut known: Vec<usize> = numbers.into_iter().filter_map(&number).collect();
                known.sort_unstable();
                known.dedup();
                if known.is_empty() {
                    out.truncate(out.trim_end_matches(' ').len());
                } else {
                    out.push_str(&bracket(&known));
                }
                rest = after;
            }
            None => {
                out.push('[');
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests;
