//! Answering from numbered facts or passages by quoting them with their numbers, and saying so when they do
//! not answer.

use super::answer::{self, Fit};
use super::observation::Line;
use super::prose;
use super::question::{Question, Wanted};
use super::words;

/// What is said when the facts or passages do not answer.
const NO_FACTS: &str = "The facts do not answer this question.";
const NO_PASSAGES: &str = "The passages do not answer this question.";

/// Most sentences of an answer.
const MOST: usize = 3;
/// Share of what is asked, by weight, that a sentence has to speak of.
const COVERED: f64 = 0.6;
/// What it counts when only the rest of the passage has a name, or another word, of the question.
const NAMED_NEAR: f64 = 0.7;
const NEAR: f64 = 0.35;
/// Sentences this close to the best are quoted with it.
const CLOSE: f64 = 0.9;
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

/// Takes `[n] text` apart.
fn numbered(line: &str) -> Option<(usize, &str)> {
    let (number, text) = line.strip_prefix('[')?.split_once("] ")?;
    Some((number.parse().ok()?, text))
}

/// Numbered passages of running text: each begins with the next number in brackets.
fn passages<'a>(lines: &[&'a str]) -> Vec<(usize, Vec<&'a str>)> {
    let mut passages: Vec<(usize, Vec<&str>)> = Vec::new();
    for line in lines {
        match numbered(line) {
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

struct Sentence {
    number: usize,
    text: String,
    words: Vec<String>,
}

/// Whether the first line of a passage says where it stands: what it speaks of, but nothing to quote.
pub(super) fn is_place(line: &str) -> bool {
    line.starts_with('(') && line.ends_with(')')
}

/// Answers from passages by quoting the sentences that say what is asked.
pub(super) fn from_passages(lines: &[&str], question: &str) -> String {
    let question = Question::read(question);
    let mut sentences = Vec::new();
    // What a passage speaks of as a whole: a sentence may take it up with a pronoun.
    let mut about: Vec<Vec<String>> = Vec::new();
    for (number, lines) in passages(lines) {
        let text = lines.join("\n");
        about.push(words::split(&text));
        let said = match lines.as_slice() {
            [place, rest @ ..] if is_place(place) && !rest.is_empty() => rest.join("\n"),
            _ => text,
        };
        for text in prose::sentences(&said)
            .into_iter()
            .filter(|text| !text.ends_with('?'))
        {
            let words = words::split(&text);
            sentences.push(Sentence {
                number,
                text,
                words,
            });
        }
    }
    let weights = weights(&question.words, &sentences);
    let scored: Vec<(f64, &Sentence)> = sentences
        .iter()
        .map(|sentence| {
            (
                score(&question, &weights, sentence, &about[sentence.number - 1]),
                sentence,
            )
        })
        .collect();
    let top = scored.iter().map(|(score, _)| *score).fold(0.0, f64::max);
    if top < COVERED {
        return NO_PASSAGES.to_owned();
    }
    let mut chosen: Vec<&(f64, &Sentence)> = scored
        .iter()
        .filter(|(score, _)| *score >= top * CLOSE)
        .collect();
    chosen.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut quotes: Vec<String> = Vec::new();
    for (_, sentence) in chosen {
        let text = sentence.text.trim_end_matches(['.', ' ']);
        let known = quotes.iter().any(|quote| quote.starts_with(text));
        if quotes.len() < MOST && !known {
            quotes.push(format!("{text} [{}].", sentence.number));
        }
    }
    quotes.join(" ")
}

/// What each word of the question tells: one that every sentence has tells little.
fn weights(asked: &[String], sentences: &[Sentence]) -> Vec<f64> {
    asked
        .iter()
        .map(|word| {
            let holds =
                |sentence: &&Sentence| sentence.words.iter().any(|own| words::same(own, word));
            let holders = sentences.iter().filter(holds).count();
            1.0 + (sentences.len() as f64 / holders.max(1) as f64).ln()
        })
        .collect()
}

/// How much of what is asked a sentence says, from 0 to about 1. Nothing when it lacks the kind of value that
/// is asked for, or its passage does not speak of what the question names.
fn score(question: &Question<'_>, weights: &[f64], sentence: &Sentence, passage: &[String]) -> f64 {
    let holds = |own: &[String], word: &String| own.iter().any(|other| words::alike(other, word));
    let named: Vec<String> = question
        .names
        .iter()
        .filter(|name| name.chars().any(|c| c.is_uppercase() || c.is_numeric()))
        .flat_map(|name| words::content(name))
        .collect();
    let there = |word: &String| passage.iter().any(|other| words::same(other, word));
    if !named.iter().all(there) || !has_kind(question, sentence, &named) {
        return 0.0;
    }
    let beside: Vec<&String> = question
        .words
        .iter()
        .filter(|word| !named.contains(word))
        .collect();
    let said = beside.iter().any(|word| holds(&sentence.words, word));
    if !beside.is_empty() && !said {
        return 0.0;
    }
    let (mut sum, mut all) = (0.0, 0.0);
    for (word, weight) in question.words.iter().zip(weights) {
        all += weight;
        if holds(&sentence.words, word) {
            sum += weight;
        } else if named.contains(word) {
            // The passage speaks of it, as was seen above.
            sum += weight * NAMED_NEAR;
        } else if there(word) {
            sum += weight * NEAR;
        }
    }
    let length = 1.0 + sentence.words.len() as f64 / 400.0;
    sum / all.max(f64::MIN_POSITIVE) / length
}

/// Whether a sentence has a value of the kind that is asked for.
fn has_kind(question: &Question<'_>, sentence: &Sentence, named: &[String]) -> bool {
    const NUMBERS: &[&str] = &[
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve", "dozen", "hundred", "thousand", "million", "once", "twice",
    ];
    let digits = |word: &&String| word.chars().any(|c| c.is_ascii_digit()) && !named.contains(word);
    match question.wanted {
        Wanted::When => {
            let time = |word: &&String| {
                digits(word)
                    || matches!(
                        word.as_str(),
                        "century"
                            | "years"
                            | "yesterday"
                            | "spring"
                            | "summer"
                            | "autumn"
                            | "winter"
                    )
            };
            sentence.words.iter().any(|word| time(&word))
                || sentence.text.contains(" after ")
                || sentence.text.contains(" before ")
        }
        Wanted::Number => sentence
            .words
            .iter()
            .any(|word| digits(&word) || NUMBERS.contains(&word.as_str())),
        Wanted::Who | Wanted::Where | Wanted::Open => true,
    }
}
