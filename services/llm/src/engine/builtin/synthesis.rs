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

/// Answers from lines of the form `[n] s | p | o`.
pub(super) fn from_facts(lines: &[&str], question: &str) -> String {
    let mut numbers = Vec::new();
    let mut facts = Vec::new();
    for line in lines {
        let Some((number, text)) = numbered(line) else {
            continue;
        };
        let mut parts = text.splitn(3, " | ").map(str::to_owned);
        if let (Some(subject), Some(predicate), Some(object)) =
            (parts.next(), parts.next(), parts.next())
        {
            numbers.push(number);
            facts.push(Line::Fact {
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
        .find_map(|name| follow(&question, name, &facts, &numbers))
        .or_else(|| search(&question, &facts, &numbers));
    found.unwrap_or_else(|| NO_FACTS.to_owned())
}

/// Answers from what is said of a named thing, and of what that leads to.
fn follow(
    question: &Question<'_>,
    name: &str,
    facts: &[Line],
    numbers: &[usize],
) -> Option<String> {
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
        quotes.extend(cited(&found.chosen, &own, facts, numbers));
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
fn search(question: &Question<'_>, facts: &[Line], numbers: &[usize]) -> Option<String> {
    if question
        .names
        .iter()
        .any(|name| name.chars().any(char::is_uppercase))
    {
        // What is asked about is not there.
        return None;
    }
    let found = answer::find(question, "", &question.words, facts)?;
    let text = found.text.to_lowercase();
    let said = words::content(&text);
    let hit = |word: &&String| said.iter().any(|other| words::alike(other, word));
    let hits = question.words.iter().filter(hit).count();
    let enough = hits as f64 >= COVERED * question.words.len() as f64 && hits > 0;
    let all: Vec<usize> = (0..facts.len()).collect();
    (found.fit >= Fit::Partly && enough)
        .then(|| cited(&found.chosen, &all, facts, numbers).join(" "))
}

/// The chosen facts in words, each with its number.
fn cited(chosen: &[usize], own: &[usize], facts: &[Line], numbers: &[usize]) -> Vec<String> {
    let quote = |at: &usize| {
        let at = *own.get(*at)?;
        Some(format!(
            "{} [{}].",
            answer::quote_line(&facts[at])?,
            numbers[at]
        ))
    };
    let mut quotes: Vec<String> = Vec::new();
    for quote in chosen.iter().filter_map(quote) {
        if !quotes.contains(&quote) {
            quotes.push(quote);
        }
    }
    quotes
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
