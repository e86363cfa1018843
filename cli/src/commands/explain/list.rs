//! `tg list-explain-traces`: the sessions of a collection, newest first. Sessions that another one
//! started are left out before the limit counts.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tg_schemas::{Term, Triple};

use super::entity::{PROV, Session as Sort, TG};
use super::fetch::{RETRIEVAL, TraceLocation};
use crate::args::{InCollection, Options};
use crate::client::{Call, Error, Result, Socket};
use crate::commands::graph::{Pattern, triples};
use crate::layout::{Width, cut, table};
use crate::registry::Command;
use crate::session::Session;

/// Questions looked at, at most.
const MAX_QUESTIONS: u64 = 100_000;
/// Questions whose parents are asked for at a time.
const WINDOW: usize = 50;
/// Characters of a question that are listed.
const LONGEST: usize = 70;

/// How the list is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

/// Arguments of `tg list-explain-traces`.
#[derive(Debug, Args)]
pub struct ListExplainTraces {
    #[command(flatten)]
    place: InCollection,
    /// Maximum number of sessions
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: usize,
    /// How the list is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

impl Command for ListExplainTraces {
    const NAME: &'static str = "list-explain-traces";
    const ABOUT: &'static str = "List the sessions that left a trace";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let place = TraceLocation::from(&self.place);
        let mut socket = session.socket().await?;
        let questions = questions(&mut socket, &place).await?;
        let sessions = first_ones(&mut socket, &place, questions, self.limit).await?;
        socket.close().await;
        let shown: Value = sessions.iter().map(Question::json).collect();
        match self.format == Format::Json || session.out.is_json() {
            true => session.out.json(&shown),
            false => {
                let width = session.out.width();
                session.out.line(render(&sessions, width))
            }
        }
    }
}

/// A question that left a trace.
#[derive(Debug, Clone, PartialEq)]
struct Question {
    iri: String,
    text: String,
    time: String,
}

impl Question {
    fn json(&self) -> Value {
        json!({
            "id": self.iri,
            "type": Sort::of(&self.iri).title(),
            "question": self.text,
            "time": self.time,
        })
    }
}

/// The session that is meant: the named one, else the newest that no other one asked.
pub(super) async fn meant(
    socket: &mut Socket,
    place: &TraceLocation<'_>,
    named: Option<String>,
) -> Result<String> {
    if let Some(named) = named {
        return Ok(named);
    }
    let questions = questions(socket, place).await?;
    let newest = first_ones(socket, place, questions, 1).await?;
    let newest = newest.into_iter().next();
    newest
        .map(|question| question.iri)
        .ok_or_else(|| Error::Missing("no session left a trace yet".to_owned()))
}

/// All questions, newest first.
async fn questions(socket: &mut Socket, place: &TraceLocation<'_>) -> Result<Vec<Question>> {
    let all = |predicate: String| {
        let pattern = Pattern {
            p: Some(Term::Iri(predicate)),
            ..place.pattern(RETRIEVAL, MAX_QUESTIONS)
        };
        pattern.call(place.flow)
    };
    let calls = [
        all(format!("{TG}query")),
        all(format!("{PROV}startedAtTime")),
    ];
    let mut replies = socket.ask_all(&calls).await?.into_iter();
    let texts = triples(&replies.next().transpose()?.unwrap_or_default());
    let times = triples(&replies.next().transpose()?.unwrap_or_default());
    Ok(newest_first(texts, times))
}

fn newest_first(texts: Vec<Triple>, times: Vec<Triple>) -> Vec<Question> {
    let pairs = |triples: Vec<Triple>| -> BTreeMap<String, String> {
        let pair = |triple: Triple| match (triple.s?, triple.o?) {
            (Term::Iri(iri), Term::Literal { value, .. }) => Some((iri, value)),
            _ => None,
        };
        triples.into_iter().filter_map(pair).collect()
    };
    let mut times = pairs(times);
    let mut questions: Vec<Question> = pairs(texts)
        .into_iter()
        .map(|(iri, text)| Question {
            time: times.remove(&iri).unwrap_or_default(),
            iri,
            text,
        })
        .collect();
    questions.sort_by(|left, right| right.time.cmp(&left.time));
    questions
}

/// The newest questions that no other session asked.
async fn first_ones(
    socket: &mut Socket,
    place: &TraceLocation<'_>,
    questions: Vec<Question>,
    limit: usize,
) -> Result<Vec<Question>> {
    let mut found = Vec::new();
    for window in questions.chunks(WINDOW) {
        if found.len() >= limit {
            break;
        }
        let calls: Vec<Call> = window
            .iter()
            .map(|question| place.parents(&question.iri, RETRIEVAL, 1))
            .collect();
        for (question, reply) in window.iter().zip(socket.ask_all(&calls).await?) {
            if triples(&reply?).is_empty() {
                found.push(question.clone());
            }
        }
    }
    found.truncate(limit);
    Ok(found)
}

fn render(sessions: &[Question], width: Width) -> String {
    if sessions.is_empty() {
        return "No explainability sessions found.".to_owned();
    }
    let rows = sessions.iter().map(|session| {
        [
            cut(&session.text, LONGEST),
            Sort::of(&session.iri).title().to_owned(),
            session.time.clone(),
            session.iri.clone(),
        ]
    });
    table(["Question", "Type", "Time", "Session ID"], rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(iri: &str, text: &str) -> Triple {
        Triple::new(Term::iri(iri), Term::iri("urn:p"), Term::literal(text))
    }

    #[test]
    fn the_newest_question_comes_first() {
        let questions = newest_first(
            vec![
                says("urn:trustgraph:agent:a", "old"),
                says("urn:trustgraph:question:b", "new"),
            ],
            vec![
                says("urn:trustgraph:agent:a", "2026-01-01"),
                says("urn:trustgraph:question:b", "2026-01-02"),
            ],
        );
        let texts: Vec<&str> = questions
            .iter()
            .map(|question| question.text.as_str())
            .collect();
        assert_eq!(texts, ["new", "old"]);
        let shown = render(&questions, None);
        assert!(shown.contains("GraphRAG") && shown.contains("Agent"));
        assert_eq!(render(&[], None), "No explainability sessions found.");
    }
}
