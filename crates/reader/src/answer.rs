//! Finding the answer to a question in what tools returned.

use super::observation::{Line, readable};
use super::passages;
use super::question::Question;
use super::quoting::{self, Sentence};
use super::wanted::Wanted;
use super::words;

/// How well something answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// It is about the thing, not about what is asked of it.
    Related,
    /// It has some of the words that are asked for, and may be about something else.
    Partly,
    /// It answers.
    Answers,
}

/// A quotation that may answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) fit: Fit,
    pub(super) score: f64,
    pub(super) text: String,
    /// Which of the facts it quotes, by their place among the facts.
    pub(super) chosen: Vec<usize>,
    /// A thing it leads to while words of the question are still open.
    pub(super) leads_to: Option<Lead>,
}

/// The next thing to look at.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lead {
    pub(super) name: String,
    /// What is still to be found about it.
    pub(super) open: Vec<String>,
}

const MOST_FACTS: usize = 12;
const MOST_RELATED: usize = 6;
const MOST_SENTENCES: usize = 3;
const ROWS: usize = 40;
const PREDICATE: f64 = 3.0;
const VALUE: f64 = 1.5;
const SENTENCE: f64 = 2.0;
const EXACT: f64 = 0.25;
/// What is asked of a thing that has shown up without its name.
const NAME: &str = "name";
/// A value of more words is running text.
const LABEL_WORDS: usize = 6;
const KIND: f64 = 1.0;
const ENOUGH: f64 = 2.0;
/// Share of the words asked for that running text has to have to be an answer.
const COVERED: f64 = 0.6;

/// The best quotation for a question from the lines of one observation. `about` is the name that was
/// looked up, empty for a search; `asked` are the words to be found about it.
pub(super) fn find(
    question: &Question<'_>,
    about: &str,
    asked: &[String],
    lines: &[Line],
) -> Option<Found> {
    let facts: Vec<Fact<'_>> = lines.iter().filter_map(Fact::of).collect();
    if !facts.is_empty() {
        let read_from = quoting::sentences(lines);
        return Some(of_facts(question, about, asked, &facts, &read_from));
    }
    let texts: Vec<&str> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Text(text) => Some(text.as_str()),
            Line::Fact { .. } => None,
        })
        .collect();
    if texts.is_empty() {
        return None;
    }
    let sentences: Vec<&str> = texts
        .iter()
        .flat_map(|text| passages::sentences(text))
        .collect();
    let quoted = passages::best(&sentences, asked);
    if quoted.is_empty() {
        // Short results, such as rows of a query, are the answer as a whole.
        let rows: Vec<&str> = texts.iter().take(ROWS).copied().collect();
        return Some(Found {
            fit: Fit::Related,
            score: 0.0,
            text: rows.join("\n"),
            chosen: Vec::new(),
            leads_to: None,
        });
    }
    Some(Found {
        fit: Fit::Answers,
        score: ENOUGH,
        text: quoted.join(" "),
        chosen: Vec::new(),
        leads_to: None,
    })
}

struct Fact<'a> {
    subject: &'a str,
    predicate: &'a str,
    object: &'a str,
    /// The number by which it is cited, where it was loaded from a file.
    number: Option<usize>,
}

impl<'a> Fact<'a> {
    fn of(line: &'a Line) -> Option<Self> {
        match line {
            Line::Fact {
                subject,
                predicate,
                object,
            } => {
                let (object, number) = cited(object);
                Some(Self {
                    subject,
                    predicate,
                    object,
                    number,
                })
            }
            Line::Text(_) => None,
        }
    }

    fn quote(&self) -> String {
        let mut predicate = readable(self.predicate).to_owned();
        if !predicate.contains(' ') {
            predicate = words::split(&predicate).join(" ");
        }
        let number = self.number.map_or_else(String::new, |n| format!(" [{n}]"));
        format!(
            "{}, {predicate}: {}{number}",
            readable(self.subject),
            value(self.object)
        )
    }
}

/// The object of a fact, and the number that stands behind it.
fn cited(object: &str) -> (&str, Option<usize>) {
    let parts = object
        .strip_suffix(']')
        .and_then(|rest| rest.rsplit_once(" ["));
    match parts.and_then(|(object, number)| Some((object, number.parse().ok()?))) {
        Some((object, number)) => (object, Some(number)),
        None => (object, None),
    }
}

/// Whether a predicate says what a thing is called.
pub(super) fn is_naming(predicate: &str) -> bool {
    const NAMING: &[&str] = &["label", "name", "title", "prefLabel", "altLabel"];
    NAMING.contains(&readable(predicate))
}

/// A value as it is quoted: an IRI stays whole, a literal loses its quotes.
fn value(term: &str) -> &str {
    if term.starts_with('"') {
        readable(term)
    } else {
        term
    }
}

fn of_facts(
    question: &Question<'_>,
    about: &str,
    asked: &[String],
    facts: &[Fact<'_>],
    read_from: &[Sentence<'_>],
) -> Found {
    let scores: Vec<f64> = facts
        .iter()
        .map(|fact| score(question, about, asked, fact))
        .collect();
    let top = scores.iter().copied().fold(0.0, f64::max);
    if top >= ENOUGH {
        let places: Vec<usize> = (0..facts.len())
            .filter(|at| scores[*at] >= top)
            .take(MOST_FACTS)
            .collect();
        let chosen: Vec<&Fact<'_>> = places.iter().map(|at| &facts[*at]).collect();
        let firm = chosen
            .iter()
            .any(|fact| is_firm(question, about, asked, fact));
        let said = said(&chosen, read_from);
        // A fact has two words of its sentence: whether that is what is asked, the sentence says.
        let firm = firm && (said.is_empty() || quoting::covers(&said, about, asked));
        return Found {
            fit: if firm { Fit::Answers } else { Fit::Partly },
            score: top,
            text: quote(&chosen, &said),
            chosen: places,
            // What was read from a sentence leads on only where it is a name.
            leads_to: lead(about, asked, &chosen)
                .filter(|lead| said.is_empty() || lead.name.starts_with(char::is_uppercase)),
        };
    }
    let chosen: Vec<&Fact<'_>> = facts.iter().take(MOST_RELATED).collect();
    // Nothing in particular is asked: whatever is known about the thing is the answer.
    let open = asked.is_empty() && !about.is_empty();
    Found {
        fit: if open { Fit::Answers } else { Fit::Related },
        score: top,
        text: quote(&chosen, &said(&chosen, read_from)),
        chosen: (0..chosen.len()).collect(),
        leads_to: None,
    }
}

/// A fact in words.
pub(super) fn quote_line(line: &Line) -> Option<String> {
    Fact::of(line).map(|fact| fact.quote())
}

/// The sentences of documents from which facts were read, each once.
fn said<'a>(facts: &[&Fact<'_>], read_from: &[Sentence<'a>]) -> Vec<Sentence<'a>> {
    let mut found: Vec<Sentence<'a>> = Vec::new();
    for fact in facts {
        let parts = [fact.subject, fact.predicate, fact.object].map(readable);
        if let Some(sentence) = quoting::of_fact(parts, read_from)
            && found.len() < MOST_SENTENCES
            && !found.contains(sentence)
        {
            found.push(*sentence);
        }
    }
    found
}

/// The sentences, if there are any, and behind them the facts that were loaded: a fact is quoted only where nobody knows a sentence
/// that says it.
fn quote(facts: &[&Fact<'_>], said: &[Sentence<'_>]) -> String {
    let mut quotes: Vec<String> = Vec::new();
    for fact in facts
        .iter()
        .filter(|fact| said.is_empty() || fact.number.is_some())
    {
        let quote = fact.quote();
        if !quotes.contains(&quote) {
            quotes.push(quote);
        }
    }
    let facts = quotes.join("; ");
    let mut parts: Vec<String> = said.iter().map(Sentence::quote).collect();
    match parts.is_empty() {
        true => return facts,
        false if !facts.is_empty() => parts.push(format!("{facts}.")),
        false => {}
    }
    parts.join(" ")
}

fn score(question: &Question<'_>, about: &str, asked: &[String], fact: &Fact<'_>) -> f64 {
    let predicate = words::split(readable(fact.predicate));
    let names = is_naming(fact.predicate);
    // What a thing is called says nothing about it.
    if names && question.wanted != Wanted::Open && asked != [NAME] {
        return 0.0;
    }
    let own = words::split(about);
    let object = words::split(readable(fact.object));
    let running = object.len() > LABEL_WORDS;
    let mut values = object;
    values.extend(words::split(readable(fact.subject)));
    values.retain(|word| !own.contains(word));
    let describes_itself = names || predicate == ["type"];
    // "How many" wants a number, or facts that are named as the question names them.
    let kin = !question.counts() || is_number(readable(fact.object));
    let mut sum = 0.0;
    for word in asked {
        if predicate.iter().any(|other| words::same(other, word)) {
            sum += PREDICATE;
        } else if kin && predicate.iter().any(|other| words::alike(other, word)) {
            sum += PREDICATE - 0.5;
        } else if !describes_itself && values.iter().any(|other| words::same(other, word)) {
            sum += if running { SENTENCE } else { VALUE };
        }
    }
    if !describes_itself && of_kind(question.wanted, fact, &predicate) {
        // A date or place is enough with nothing else to go by; a number may be of anything.
        sum += if sum == 0.0 && question.wanted != Wanted::Number {
            ENOUGH
        } else {
            KIND
        };
    }
    let exact = |term: &str| readable(term).eq_ignore_ascii_case(about);
    if sum > 0.0 && (exact(fact.subject) || exact(fact.object)) {
        sum += EXACT;
    }
    sum
}

/// Whether a fact is an answer for certain: the thing has what is asked by name or by kind, or the fact has
/// most of the words that are asked for.
fn is_firm(question: &Question<'_>, about: &str, asked: &[String], fact: &Fact<'_>) -> bool {
    let predicate = words::split(readable(fact.predicate));
    let named = |word: &&String| predicate.iter().any(|other| words::alike(other, word));
    if !about.is_empty()
        && (asked.iter().any(|word| named(&word)) || of_kind(question.wanted, fact, &predicate))
    {
        return true;
    }
    let mut said = words::split(readable(fact.subject));
    said.extend(words::split(readable(fact.object)));
    let hit = |word: &&String| named(word) || said.iter().any(|other| words::same(other, word));
    asked.iter().filter(hit).count() as f64 >= COVERED * asked.len() as f64
}

fn is_number(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || "+-.,eE ".contains(c))
}

fn of_kind(wanted: Wanted, fact: &Fact<'_>, predicate: &[String]) -> bool {
    let object = readable(fact.object);
    let digits = object.chars().filter(char::is_ascii_digit).count();
    let number = is_number(object);
    match wanted {
        Wanted::When => {
            let year = number && digits == 4;
            year || (digits >= 4 && object.contains(['-', '/']))
                || predicate
                    .iter()
                    .any(|word| matches!(word.as_str(), "date" | "year"))
        }
        Wanted::Where => predicate.iter().any(|word| words::alike(word, "place")),
        Wanted::Number => number,
        // Whether a name is a person's cannot be seen.
        Wanted::Who | Wanted::Open => false,
    }
}

/// When one value answers a part of the question and other words stay open, the value is the next thing
/// to look at ("the population of the capital of …").
fn lead(about: &str, asked: &[String], chosen: &[&Fact<'_>]) -> Option<Lead> {
    let [fact] = chosen else {
        return None;
    };
    let predicate = words::split(readable(fact.predicate));
    if fact.object.contains("://") || fact.object.starts_with("urn:") {
        return Some(Lead {
            name: fact.object.to_owned(),
            open: vec![NAME.to_owned()],
        });
    }
    let object = readable(fact.object);
    let covered = |word: &String| {
        predicate.iter().any(|other| words::alike(other, word))
            || words::split(object)
                .iter()
                .any(|other| words::same(other, word))
    };
    let some = asked.iter().any(covered);
    let open: Vec<String> = asked
        .iter()
        .filter(|word| !covered(word))
        .cloned()
        .collect();
    let name = object.chars().any(char::is_alphabetic)
        && object.split_whitespace().count() <= 8
        && !object.eq_ignore_ascii_case(about);
    (some && !open.is_empty() && name).then(|| Lead {
        name: object.to_owned(),
        open,
    })
}
