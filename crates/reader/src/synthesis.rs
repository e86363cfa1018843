//! Answering from numbered facts or passages by quoting them with their numbers, and saying so when they do
//! not answer.

use super::answer::{self, Fit};
use super::observation::{Line, numbered};
use super::question::Question;
use super::words;

/// What is said when the facts or passages do not answer.
const NO_FACTS: &str = "The facts do not answer this question.";

/// Share of what is asked, by weight, that a sentence has to speak of.
const COVERED: f64 = 0.6;
/// Most things that lead to one another.
const HOPS: usize = 3;

/// Beginning of the line below a fact that has the sentence from which it was read.
const READ_FROM: &str = "    Read from: ";

/// What was given: facts with their numbers and the sentences that say them.
#[derive(Default)]
struct Given<'a> {
    facts: Vec<Line>,
    numbers: Vec<usize>,
    sentences: Vec<Option<&'a str>>,
}

/// Answers from lines of the form `[n] s | p | o`, below which a sentence may stand.
pub(super) fn from_facts(lines: &[&str], question: &str) -> String {
    let mut given = Given::default();
    for line in lines {
        if let (Some(sentence), Some(last)) =
            (line.strip_prefix(READ_FROM), given.sentences.last_mut())
        {
            // One that was cut says less than its document.
            *last = Some(sentence.trim()).filter(|text| !text.ends_with('\u{2026}'));
            continue;
        }
        let Some((number, text)) = numbered(line) else {
            continue;
        };
        let mut parts = text.splitn(3, " | ").map(str::to_owned);
        if let (Some(subject), Some(predicate), Some(object)) =
            (parts.next(), parts.next(), parts.next())
        {
            given.numbers.push(number);
            given.sentences.push(None);
            given.facts.push(Line::Fact {
                subject,
                predicate,
                object,
            });
        }
    }
    let question = Question::read(question);
    let found = question
        .names
        .iter()
        .find_map(|name| follow(&question, name, &given))
        .or_else(|| search(&question, &given));
    found.unwrap_or_else(|| NO_FACTS.to_owned())
}

/// Answers from what is said of a named thing, and of what that leads to.
fn follow(question: &Question<'_>, name: &str, given: &Given<'_>) -> Option<String> {
    let facts = &given.facts;
    let mut about = name.to_owned();
    let mut asked = question.asked_beside(name);
    let mut quotes: Vec<String> = Vec::new();
    let mut answered = false;
    for _ in 0..HOPS {
        let own: Vec<usize> = (0..facts.len())
            .filter(|at| speaks_of(&facts[*at], &about))
            .collect();
        let lines: Vec<Line> = own.iter().map(|at| facts[*at].clone()).collect();
        let Some(found) =
            answer::find(question, &about, &asked, &lines).filter(|found| found.fit >= Fit::Partly)
        else {
            break;
        };
        for quote in given.cited(&found.chosen, &own) {
            if !quotes.contains(&quote) {
                quotes.push(quote);
            }
        }
        answered = true;
        match found.leads_to {
            Some(lead) => {
                answered = false;
                about = lead.name;
                asked = lead.open;
            }
            None => break,
        }
    }
    (answered || (!quotes.is_empty() && asked.len() <= 1)).then(|| quotes.join(" "))
}

/// Answers a question that names nothing the facts know: by words alone, most of which must be found.
fn search(question: &Question<'_>, given: &Given<'_>) -> Option<String> {
    if question
        .names
        .iter()
        .any(|name| name.chars().any(char::is_uppercase))
    {
        // What is asked about is not there.
        return None;
    }
    let found = answer::find(question, "", &question.words, &given.facts)?;
    let text = found.text.to_lowercase();
    let said = words::content(&text);
    let hit = |word: &&String| said.iter().any(|other| words::alike(other, word));
    let hits = question.words.iter().filter(hit).count();
    let enough = hits as f64 >= COVERED * question.words.len() as f64 && hits > 0;
    let all: Vec<usize> = (0..given.facts.len()).collect();
    (found.fit >= Fit::Partly && enough).then(|| given.cited(&found.chosen, &all).join(" "))
}

impl Given<'_> {
    /// The sentences of the chosen facts, or the facts in words where no sentence says them, each with its number.
    fn cited(&self, chosen: &[usize], own: &[usize]) -> Vec<String> {
        let mut said: Vec<String> = Vec::new();
        let mut quotes: Vec<String> = Vec::new();
        for at in chosen.iter().filter_map(|at| own.get(*at)) {
            let text = match self.sentences[*at] {
                Some(sentence) => Some(sentence.trim_end_matches(['.', ' ']).to_owned()),
                None => answer::quote_line(&self.facts[*at]),
            };
            // Two facts may have been read from one sentence.
            if let Some(text) = text.filter(|text| !said.contains(text)) {
                quotes.push(format!("{text} [{}].", self.numbers[*at]));
                said.push(text);
            }
        }
        quotes
    }
}

fn speaks_of(fact: &Line, name: &str) -> bool {
    let Line::Fact {
        subject, object, ..
    } = fact
    else {
        return false;
    };
    let name = words::content(name);
    [subject, object].iter().any(|term| {
        let own = words::split(super::observation::readable(term));
        !name.is_empty()
            && name
                .iter()
                .all(|word| own.iter().any(|other| words::same(other, word)))
    })
}

/// Whether the first line of a passage says where it stands: what it speaks of, but nothing to quote.
pub(super) fn is_place(line: &str) -> bool {
    line.starts_with('(') && line.ends_with(')')
}
