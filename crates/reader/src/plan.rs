//! Choosing the next step of a ReAct dialog from the question, the tools on offer and what was seen.

use std::collections::HashSet;

use serde_json::Value;

use super::answer::{self, Fit, Found, Lead};
use super::arithmetic;
use super::asking;
use super::observation::{self, Line, readable};
use super::queries::{by_class, by_words, iri_in, sparql_in};
use super::question::Question;
use super::quoting::is_sentence;
use super::react::{Past, Prompt, Step};
use super::tools::{ABOUT, CALCULATOR, CLOCK, PATTERN, SPARQL};
use super::words;

/// Most tool calls for one question.
const MOST_CALLS: usize = 6;
/// Most rows of a query that are quoted.
const MOST_ROWS: usize = 100;
/// Most names of a question that are looked up.
const MOST_NAMES: usize = 3;

/// The next step.
pub(super) fn next(prompt: &Prompt) -> Step {
    let question = Question::read(&prompt.question);
    if let Some(last) = prompt.steps.last()
        && let Some(step) = exact(last)
    {
        return step;
    }
    let seen = read(&question, prompt);
    let best = best(&seen);
    let may_call = prompt.steps.len() < MOST_CALLS;
    // What the graph does not answer for certain, the documents may; they have a call of their own.
    let documents = asking::documents(prompt, &question)
        .filter(|step| prompt.steps.len() <= MOST_CALLS && !made(prompt, step));
    if let Some(best) = best
        && best.fit >= Fit::Partly
    {
        let documents = documents.filter(|_| best.fit == Fit::Partly);
        let lead = lead(prompt, best).filter(|_| may_call);
        // What a search came upon by a word or two is a poor lead.
        let last = prompt.steps.last();
        let steps = match last.is_some_and(|past| past.action == SPARQL) {
            true => [documents, lead],
            false => [lead, documents],
        };
        if let Some(step) = steps.into_iter().flatten().next() {
            return step;
        }
        if best.fit == Fit::Answers || !asking::documents_asked(prompt) {
            return Step::answer(
                "The observation holds the answer; I quote it.",
                best.text.clone(),
            );
        }
    } else if may_call
        && let Some(step) = called(prompt, &question)
            .into_iter()
            .chain(ideas(prompt, &question))
            .find(|step| !made(prompt, step))
    {
        return step;
    } else if let Some(step) = documents {
        return step;
    }
    match best {
        Some(found) => Step::answer(
            "Nothing answers this exactly; I quote what comes closest.",
            format!(
                "I found no exact answer. What comes closest: {}",
                found.text
            ),
        ),
        None => Step::answer(
            "The tools returned nothing about this.",
            "I found nothing that answers this.".to_owned(),
        ),
    }
}

/// Looks at what was found to lead on, unless that was done.
fn lead(prompt: &Prompt, found: &Found) -> Option<Step> {
    prompt.tool(ABOUT)?;
    let Lead { name, .. } = found.leads_to.as_ref()?;
    let thought = format!("That leads to {name}; I look at it as well.");
    let step = Step::call(thought, ABOUT, Some(("name", name)));
    (!made(prompt, &step)).then_some(step)
}

/// What each observation offers. Where one led to the next, the later quotes the earlier as well.
fn read(question: &Question<'_>, prompt: &Prompt) -> Vec<Found> {
    let mut seen: Vec<Found> = Vec::new();
    let mut known = HashSet::new();
    let mut lead: Option<(Lead, String)> = None;
    for past in &prompt.steps {
        if asking::answers(prompt, past) {
            seen.extend(asking::told(past));
            continue;
        }
        let select = past.action == SPARQL
            && argument(&past.args, "query").is_some_and(|query| query.contains("SELECT"));
        let mut lines = if select {
            observation::rows(&past.observation)
        } else {
            observation::read(&past.observation)
        };
        if past.action == SPARQL && asked_by_class(past) {
            seen.extend(of_class(question, &lines));
            continue;
        }
        // What an earlier step showed is no news.
        lines.retain(|line| is_sentence(line) || known.insert(line.clone()));
        let about = argument(&past.args, "name").unwrap_or_default();
        let led = lead
            .take()
            .filter(|(lead, _)| lead.name.eq_ignore_ascii_case(&about));
        let asked = match &led {
            Some((lead, _)) => lead.open.clone(),
            None => question.asked_beside(&about),
        };
        let Some(mut found) = answer::find(question, &about, &asked, &lines) else {
            continue;
        };
        // Letters that a search met inside other words.
        let searched = past.action == SPARQL && sparql_in(question.text).is_none();
        if searched && found.score == 0.0 && !found.chosen.is_empty() {
            continue;
        }
        if let Some((_, before)) = led
            && found.fit >= Fit::Partly
        {
            let between = if before.ends_with('.') { "" } else { ";" };
            found.text = format!("{before}{between} {}", found.text);
        }
        lead = found
            .leads_to
            .clone()
            .map(|lead| (lead, found.text.clone()));
        seen.push(found);
    }
    seen
}

fn asked_by_class(past: &Past) -> bool {
    argument(&past.args, "query").is_some_and(|query| query.contains("?item a ?class"))
}

/// Things that a search came upon and whose whole name stands in the question.
fn called(prompt: &Prompt, question: &Question<'_>) -> Vec<Step> {
    let searches = prompt.steps.iter().filter(|past| past.action == SPARQL);
    let facts = searches.flat_map(|past| observation::rows(&past.observation));
    let mut steps = Vec::new();
    for fact in facts {
        let Line::Fact {
            subject,
            predicate,
            object,
        } = &fact
        else {
            continue;
        };
        let parts = words::content(object);
        let whole = parts.iter().all(|part| question.words.contains(part));
        let own = words::content(subject);
        let looked_up = prompt.tool(ABOUT).is_some() && !own.is_empty();
        if answer::is_naming(predicate) && whole && !parts.is_empty() && looked_up {
            let thought = format!("The search came upon {object}; I look it up.");
            steps.push(Step::call(thought, ABOUT, Some(("name", subject))));
        }
    }
    steps
}

/// The rows of a query for a kind of things: the query was made for the question, they are the answer.
fn of_class(question: &Question<'_>, lines: &[Line]) -> Option<Found> {
    let rows = lines.iter().filter_map(|line| match line {
        Line::Text(row) => Some(row.as_str()),
        Line::Fact { .. } => None,
    });
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        let name = row
            .rsplit(" | ")
            .map(str::trim)
            .find(|part| !part.is_empty())
            .unwrap_or(row);
        let name = name.trim_end_matches(" |");
        if !names.contains(&name) && names.len() < MOST_ROWS {
            names.push(name);
        }
    }
    if !question.counts() {
        // A name that has only words of the question says nothing that was asked.
        names.retain(|name| {
            let own = words::content(readable(name));
            let asked = |word: &String| question.words.iter().any(|other| words::same(other, word));
            own.is_empty() || !own.iter().all(asked)
        });
    }
    if names.is_empty() || names == ["0"] {
        return None;
    }
    let class = question.class().unwrap_or_default();
    let text = match (&names[..], question.counts()) {
        ([count], true) => format!("{count} (counted: {class})"),
        _ => names.join("; "),
    };
    Some(Found {
        fit: Fit::Answers,
        score: 0.0,
        text,
        chosen: Vec::new(),
        leads_to: None,
    })
}

/// The best of what was seen: the last that answers, else the closest.
fn best(seen: &[Found]) -> Option<&Found> {
    let mut best: Option<&Found> = None;
    for found in seen {
        let better = best.is_none_or(|best| {
            found.fit > best.fit
                || (found.fit == best.fit && (found.fit >= Fit::Partly || found.score > best.score))
        });
        if better {
            best = Some(found);
        }
    }
    best
}

/// Tools whose result is the answer.
fn exact(last: &Past) -> Option<Step> {
    let result = last.observation.trim();
    if result.is_empty() || result.to_lowercase().starts_with("error") {
        return None;
    }
    let thought = "The tool gave the result.";
    match last.action.as_str() {
        CALCULATOR => {
            let expression = argument(&last.args, "expression").unwrap_or_default();
            Some(Step::answer(thought, format!("{expression} = {result}")))
        }
        CLOCK => Some(Step::answer(thought, result.to_owned())),
        _ => None,
    }
}

/// An argument of a past step, whose text may be only nearly JSON.
fn argument(args: &str, name: &str) -> Option<String> {
    if let Ok(Value::Object(map)) = serde_json::from_slice::<Value>(args.as_bytes()) {
        return map.get(name).map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
    }
    let (_, rest) = args.split_once(&format!("\"{name}\""))?;
    let (_, rest) = rest.split_once('"')?;
    let end = rest.rfind('"')?;
    Some(rest[..end].to_owned())
}

/// Whether a call was made before.
fn made(prompt: &Prompt, step: &Step) -> bool {
    let Step::Call { tool, args, .. } = step else {
        return false;
    };
    prompt.steps.iter().any(|past| {
        past.action == *tool
            && args.as_object().is_none_or(|args| {
                args.iter().all(|(name, value)| {
                    let known = argument(&past.args, name);
                    known.as_deref().map(words::split) == value.as_str().map(words::split)
                })
            })
    })
}

/// Calls worth making, most promising first.
fn ideas(prompt: &Prompt, question: &Question<'_>) -> Vec<Step> {
    let mut ideas = Vec::new();
    let has = |name: &str| prompt.tool(name).is_some();
    if has(CALCULATOR)
        && let Some(expression) = arithmetic::expression(question.text)
    {
        let thought = "This is a calculation.".to_owned();
        ideas.push(Step::call(
            thought,
            CALCULATOR,
            Some(("expression", &expression)),
        ));
    }
    if has(CLOCK) && asks_the_time(question.text) {
        ideas.push(Step::call(
            "I need the current date and time.".to_owned(),
            CLOCK,
            None,
        ));
    }
    if has(SPARQL)
        && let Some(query) = sparql_in(question.text)
    {
        let thought = "The question holds a query; I run it.".to_owned();
        ideas.push(Step::call(thought, SPARQL, Some(("query", query))));
    }
    if has(PATTERN)
        && let Some(iri) = iri_in(question.text)
    {
        let thought = format!("I look up the facts of {iri}.");
        ideas.push(Step::call(thought, PATTERN, Some(("subject", iri))));
    }
    // With a name in capitals or quotes the question is about a thing, else it may be about a kind.
    let named = question
        .names
        .iter()
        .any(|name| name.chars().any(|c| c.is_uppercase() || c.is_numeric()));
    let class = question.class().filter(|_| has(SPARQL));
    if !named && let Some(class) = &class {
        ideas.push(by_class(class, None, question.counts()));
    }
    if has(ABOUT) {
        for name in question.names.iter().take(MOST_NAMES) {
            let thought = format!("I need to know what the graph says about {name}.");
            ideas.push(Step::call(thought, ABOUT, Some(("name", name))));
        }
    }
    if named && let (Some(class), Some(name)) = (&class, question.names.first()) {
        ideas.push(by_class(class, Some(name), question.counts()));
    }
    if has(SPARQL) && !question.words.is_empty() {
        ideas.push(by_words(question));
    }
    ideas.extend(asking::by_description(prompt, question));
    ideas
}

fn asks_the_time(question: &str) -> bool {
    let words = words::split(question);
    let has = |word: &str| words.iter().any(|other| other == word);
    let now = has("now") || has("today") || has("current") || has("currently");
    let lower = question.to_lowercase();
    lower.contains("what time is it")
        || lower.contains("what day is it")
        || (now && (has("time") || has("date") || has("day") || has("year")))
}
