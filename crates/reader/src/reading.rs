//! Answering from numbered passages of running text: the sentences that say most of what is asked, each with the number of
//! its passage, or that the passages do not answer.
//!
//! A passage is read once: each distinct word of it is held against the words of the question, and what a sentence says is a
//! set of those. A sentence need not repeat what those around it, or the heading above it, have just said.

use std::collections::HashMap;

use super::languages::{is_full_stop, is_han};
use super::prose;
use super::question::Question;
use super::rows::{begins_with_values, is_row};
use super::wanted::Wanted;
use super::words;

/// What is said when the passages do not answer.
pub(super) const NO_PASSAGES: &str = "The passages do not answer this question.";

/// Words of a question that are looked for: one bit each.
const ASKED: usize = 64;
/// Most sentences of an answer.
const MOST: usize = 3;

/// What is given for a word of the question, as a share of its weight: to a sentence that has it, has a word of the same thing,
/// or stands near the word.
const KIN: f64 = 0.7;
const HEADED: f64 = 0.8;
const NEAR: f64 = 0.6;
const ABOUT: f64 = 0.3;
/// What a word tells that only says how something is asked.
const LIGHT: f64 = 0.35;
/// Sentences of so few words may be headings of those that follow.
const HEADING: usize = 6;
/// Sentences a heading reaches.
const BELOW: usize = 3;
/// Share of what is asked, by weight, that the best sentence has to say; and what is quoted with it.
const ENOUGH: f64 = 0.55;
const CLOSE: f64 = 0.85;
/// A long sentence has many words by chance: of this many words it counts half.
const LONG: f64 = 400.0;
/// What remains of the score without a value of the kind that is asked for, and without a word that was not asked.
const OTHER_KIND: f64 = 0.6;
const NOTHING_NEW: f64 = 0.5;
const NOTHING_SAID: f64 = 0.7;
/// What remains for a row of a table that has no word of the question but the names of its columns.
const ANY_ROW: f64 = 0.5;

/// Sentences that a word which none has counts for.
const UNHEARD: f64 = 0.5;

/// Words that say how something is asked and nothing of it.
const HOW: &[&str] = &[
    "according",
    "became",
    "become",
    "call",
    "called",
    "come",
    "comes",
    "does",
    "happen",
    "happened",
    "happens",
    "kind",
    "long",
    "may",
    "mean",
    "means",
    "meant",
    "must",
    "name",
    "named",
    "part",
    "said",
    "say",
    "says",
    "shall",
    "should",
    "sort",
    "take",
    "thing",
    "told",
    "used",
    "way",
];

/// Which words of the question, by their bits.
type Words = u64;

struct Sentence {
    number: usize,
    /// Its passage, from 0.
    passage: usize,
    text: String,
    length: usize,
    has: Words,
    kin: Words,
    /// Words that carry meaning and are not asked; what is shorter than three letters is a mark of a dictionary rather.
    new: usize,
    /// The sentence that names the columns of the table that it is a row of.
    header: Option<usize>,
    /// It is the first row of a table, which names the columns of the others.
    is_header: bool,
    /// It has a number that is not in the question, or a name that is not.
    number_new: bool,
    name_new: bool,
}

/// Answers from passages by quoting the sentences that say what is asked.
pub(super) fn from_passages(lines: &[&str], question: &str) -> String {
    let question = Question::read(question);
    let asked = Asked::new(&question);
    if asked.words.is_empty() {
        return NO_PASSAGES.to_owned();
    }
    let mut reader = Reader::new(&asked);
    for (number, lines) in passages(lines) {
        reader.read(number, &lines);
    }
    reader.answer(&question)
}

/// The words that are asked for.
struct Asked {
    words: Vec<String>,
    /// Stems of each, and of words of the same thing.
    stems: Vec<String>,
    kin: Vec<Vec<&'static str>>,
    /// Those that are parts of names.
    named: Words,
    light: Words,
}

impl Asked {
    fn new(question: &Question<'_>) -> Self {
        let mut words: Vec<String> = Vec::new();
        for word in &question.words {
            if words.len() < ASKED && !words.contains(word) {
                words.push(word.clone());
            }
        }
        let names: Vec<String> = question
            .names
            .iter()
            .filter(|_| !question.german)
            .filter(|name| name.chars().any(|c| c.is_uppercase() || c.is_numeric()))
            .flat_map(|name| words::content(name))
            .collect();
        let bits = |holds: &dyn Fn(&String) -> bool| {
            (0..words.len())
                .filter(|at| holds(&words[*at]))
                .fold(0, |set, at| set | 1 << at)
        };
        let named = bits(&|word| names.contains(word));
        let light = bits(&|word| HOW.binary_search(&word.as_str()).is_ok()) & !named;
        let stems = words.iter().map(|word| words::stem(word).to_owned());
        let stems = stems.collect();
        let kin = |word: &String| words::kin(word).into_iter().map(words::stem).collect();
        let kin = words.iter().map(kin).collect();
        Self {
            named,
            light,
            stems,
            kin,
            words,
        }
    }

    /// Which of them a word is a form of, and which it is of the same thing as.
    fn of(&self, word: &str) -> (Words, Words) {
        let (mut has, mut kin) = (0, 0);
        let stem = words::stem(word);
        for (at, asked) in self.stems.iter().enumerate() {
            if words::same_stem(stem, asked) {
                has |= 1 << at;
            } else if self.kin[at].iter().any(|kin| words::same_stem(stem, kin)) {
                kin |= 1 << at;
            }
        }
        (has, kin)
    }
}

struct Reader<'a> {
    asked: &'a Asked,
    known: HashMap<String, (Words, Words)>,
    sentences: Vec<Sentence>,
    /// Words of the question that a passage has.
    about: Vec<Words>,
    /// Those that are in the title and the headings above it: they ask where it is said, not what.
    place: Vec<Words>,
}

impl<'a> Reader<'a> {
    fn new(asked: &'a Asked) -> Self {
        Self {
            asked,
            known: HashMap::new(),
            sentences: Vec::new(),
            about: Vec::new(),
            place: Vec::new(),
        }
    }

    fn read(&mut self, number: usize, lines: &[&str]) {
        let passage = self.about.len();
        let mut place_of = 0;
        let said = match lines {
            [place, rest @ ..] if super::synthesis::is_place(place) && !rest.is_empty() => {
                for word in words::split(place) {
                    place_of |= self.meaning(word).0;
                }
                rest.join("\n")
            }
            whole => whole.join("\n"),
        };
        let mut about = place_of;
        let (first, mut table) = (self.sentences.len(), None);
        for text in prose::sentences(&said) {
            let at = self.sentences.len();
            let mut sentence = self.sentence(number, passage, text);
            about |= sentence.has;
            if is_of_table(&sentence.text) {
                // Columns are named by the first row, or above it where that has values already. A table that goes on from
                // another passage names none.
                let digits = sentence.text.contains(|c: char| c.is_ascii_digit());
                let head = match begins_with_values(&sentence.text) && at > first {
                    true => Some(at - 1),
                    false => Some(at).filter(|_| !digits),
                };
                let head = *table.get_or_insert(head);
                sentence.header = head.filter(|head| *head != at);
                if let Some(above) = sentence.header {
                    let above = &mut self.sentences[above];
                    above.is_header |= is_of_table(&above.text);
                }
            } else {
                table = None;
            }
            self.sentences.push(sentence);
        }
        self.about.push(about);
        self.place.push(place_of);
    }

    fn meaning(&mut self, word: String) -> (Words, Words) {
        match self.known.get(&word) {
            Some(known) => *known,
            None => {
                let of = self.asked.of(&word);
                self.known.insert(word, of);
                of
            }
        }
    }

    fn sentence(&mut self, number: usize, passage: usize, text: String) -> Sentence {
        let split = words::split(&text);
        let mut sentence = Sentence {
            number,
            passage,
            length: split.len(),
            has: 0,
            kin: 0,
            new: 0,
            header: None,
            is_header: false,
            number_new: false,
            name_new: self.names_another(&text),
            text,
        };
        for word in split {
            let stop = words::is_stop(&word);
            let digits = word.contains(|c: char| c.is_ascii_digit());
            let counts = words::is_number(&word);
            let times = words::is_time(&word);
            let letters = word.chars().count();
            let character = word.chars().all(is_han);
            let (has, kin) = self.meaning(word);
            sentence.has |= has;
            sentence.kin |= kin;
            if has == 0 && !stop && (digits || letters > 2 || character) {
                sentence.new += 1;
                sentence.number_new |= digits || counts || times;
            }
        }
        sentence
    }

    /// Whether a sentence names something that the question does not, behind its first word.
    fn names_another(&self, text: &str) -> bool {
        text.split_whitespace().skip(1).any(|token| {
            let word = token.trim_matches(|c: char| !c.is_alphanumeric());
            word.starts_with(char::is_uppercase)
                && word.chars().count() > 1
                && !self
                    .asked
                    .words
                    .iter()
                    .any(|asked| word.to_lowercase().starts_with(asked.as_str()))
        })
    }

    /// What each word tells: one that every sentence has tells little.
    fn weights(&self) -> Vec<f64> {
        let all = self.sentences.len().max(1) as f64;
        let weight = |at: usize| {
            let holders = self
                .sentences
                .iter()
                .filter(|one| one.has >> at & 1 == 1)
                .count();
            // One that none has is what is missing, if something is.
            let tells = 1.0 + (all / (holders as f64).max(UNHEARD)).ln();
            if self.asked.light >> at & 1 == 1 {
                tells * LIGHT
            } else {
                tells
            }
        };
        (0..self.asked.words.len()).map(weight).collect()
    }

    fn answer(&self, question: &Question<'_>) -> String {
        let weights = self.weights();
        let mut scored: Vec<(f64, usize)> = (0..self.sentences.len())
            .map(|at| (self.score(at, question.wanted, &weights), at))
            .filter(|(score, _)| *score > 0.0)
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let Some((top, _)) = scored.first().copied() else {
            return NO_PASSAGES.to_owned();
        };
        if top < ENOUGH {
            return NO_PASSAGES.to_owned();
        }
        let mut quotes: Vec<String> = Vec::new();
        for (_, at) in scored.iter().filter(|(score, _)| *score >= top * CLOSE) {
            let sentence = &self.sentences[*at];
            let text = sentence
                .text
                .trim_end_matches(|c: char| matches!(c, '.' | ' ') || is_full_stop(c));
            let known = quotes.iter().any(|quote| quote.starts_with(text));
            if quotes.len() < MOST && !known {
                quotes.push(format!("{text} [{}].", sentence.number));
            }
        }
        quotes.join(" ")
    }

    /// How much of what is asked a sentence says, as a share.
    fn score(&self, at: usize, wanted: Wanted, weights: &[f64]) -> f64 {
        let sentence = &self.sentences[at];
        if sentence.is_header || sentence.text.ends_with(['?', '\u{ff1f}']) {
            return 0.0;
        }
        let about = self.about[sentence.passage];
        // Its passage does not speak of what the question names.
        if self.asked.named & !about != 0 {
            return 0.0;
        }
        let (near, headed) = self.around(at);
        let (mut sum, mut all) = (0.0, 0.0);
        let mut place = self.place[sentence.passage];
        if weights.len() == place.count_ones() as usize {
            // Nothing else is asked.
            place = 0;
        }
        for (bit, weight) in weights.iter().enumerate() {
            let is = |set: Words| set >> bit & 1 == 1;
            if is(place) {
                continue;
            }
            all += weight;
            sum += weight
                * if is(sentence.has) {
                    1.0
                } else if is(headed) {
                    HEADED
                } else if is(sentence.kin) {
                    KIN
                } else if is(near) {
                    NEAR
                } else if is(about) {
                    ABOUT
                } else {
                    0.0
                };
        }
        let kind = match wanted {
            Wanted::When | Wanted::Number => sentence.number_new,
            Wanted::Who => sentence.name_new,
            Wanted::Where | Wanted::Open => true,
        };
        if !kind {
            sum *= OTHER_KIND;
        }
        if sentence.new == 0 {
            sum *= NOTHING_NEW;
        }
        if sentence.has & !self.asked.named == 0 && headed == 0 {
            sum *= NOTHING_SAID;
        }
        // Each row of a table has its columns.
        let of_table = sentence.header.map(|head| &self.sentences[head]);
        if of_table.is_some_and(|head| sentence.has & !head.has == 0) {
            sum *= ANY_ROW;
        }
        sum / all / (1.0 + sentence.length as f64 / LONG)
    }

    /// Words of the question that the sentences beside it have, and the heading above it.
    fn around(&self, at: usize) -> (Words, Words) {
        let passage = self.sentences[at].passage;
        let of = |at: Option<usize>| {
            at.and_then(|at| self.sentences.get(at))
                .filter(|one| one.passage == passage)
        };
        let (mut near, mut headed) = (0, 0);
        for beside in [at.checked_sub(2), at.checked_sub(1), Some(at + 1)] {
            near |= of(beside).map_or(0, |one| one.has);
        }
        for above in 1..=BELOW {
            let Some(one) = of(at.checked_sub(above)) else {
                break;
            };
            if one.length <= HEADING {
                headed = one.has;
                break;
            }
        }
        if let Some(head) = self.sentences[at].header {
            headed |= self.sentences[head].has | self.sentences[head].kin;
        }
        (near, headed)
    }
}

/// Whether a sentence is a row of a table.
fn is_of_table(text: &str) -> bool {
    is_row(text) || text.contains(" | ")
}

/// Numbered passages of running text: each begins with the next number in brackets.
fn passages<'a>(lines: &[&'a str]) -> Vec<(usize, Vec<&'a str>)> {
    let mut passages: Vec<(usize, Vec<&str>)> = Vec::new();
    for line in lines {
        match super::observation::numbered(line) {
            Some((number, text)) if number == passages.len() + 1 => {
                passages.push((number, vec![text]))
            }
            _ => {
                if let Some((_, lines)) = passages.last_mut() {
                    lines.push(line);
                }
            }
        }
    }
    passages
}
