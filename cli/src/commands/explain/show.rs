//! `tg show-explain-trace`: what was done to answer one question.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args, ValueEnum};
use tg_schemas::{Term, Triple};

use super::entity::Kind;
use super::fetch::{SOURCE, TraceLocation, iri, texts, trace};
use super::list::meant;
use super::render::{View, edge};
use super::trace::Trace;
use crate::args::{InCollection, Options};
use crate::client::{Call, Result, Socket};
use crate::commands::graph::{Pattern, triples};
use crate::registry::Command;
use crate::session::Session;

/// Hops from a fact back to its document at most.
const MAX_HOPS: usize = 10;

/// How the trace is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Arguments of `tg show-explain-trace`.
#[derive(Debug, Args)]
pub struct ShowExplainTrace {
    #[command(flatten)]
    place: InCollection,
    /// IRI of the question or session [default: the newest]
    #[arg(value_name = "SESSION")]
    question_id: Option<String>,
    /// Characters of each text to show
    #[arg(long, default_value_t = 10_000, value_name = "COUNT")]
    max_answer: usize,
    /// Follow what was selected back to its documents
    #[arg(long)]
    show_provenance: bool,
    /// How the trace is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

impl Command for ShowExplainTrace {
    const NAME: &'static str = "show-explain-trace";
    const ABOUT: &'static str = "Show what was done to answer a question";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let place = TraceLocation::from(&self.place);
        let mut socket = session.socket().await?;
        let question = meant(&mut socket, &place, self.question_id.clone()).await?;
        let trace = trace(session, &mut socket, &place, &question).await?;
        let documents = trace
            .entities()
            .filter(|entity| entity.kind != Kind::ChunkSelection)
            .filter_map(|entity| entity.text("document"));
        let texts = texts(&mut socket, documents.collect()).await?;
        let labels = labels(&mut socket, &place, named_in(&trace)).await?;
        let sources = match self.show_provenance {
            true => sources(&mut socket, &place, &trace).await?,
            false => BTreeMap::new(),
        };
        socket.close().await;
        let view = View {
            trace: &trace,
            texts: &texts,
            labels: &labels,
            sources: &sources,
            max_text: self.max_answer,
        };
        match self.format == Format::Json || session.out.is_json() {
            true => session.out.json(&view.json()),
            false => session.out.line(view.text().trim_end()),
        }
    }
}

/// The IRIs in selected edges.
fn named_in(trace: &Trace) -> BTreeSet<String> {
    let terms = trace.entities().filter_map(edge).flatten();
    terms.filter_map(|term| iri(Some(term))).collect()
}

async fn labels(
    socket: &mut Socket,
    place: &TraceLocation<'_>,
    iris: BTreeSet<String>,
) -> Result<BTreeMap<String, String>> {
    let calls: Vec<Call> = iris
        .iter()
        .map(|iri| {
            // Labels may be in any graph.
            let pattern = Pattern {
                s: Some(Term::iri(iri)),
                p: Some(Term::iri(tg_schemas::vocabulary::rdfs::LABEL)),
                g: None,
                ..place.pattern("", 1)
            };
            pattern.call(place.flow)
        })
        .collect();
    let replies = socket.ask_all(&calls).await?;
    let label = |triples: Vec<Triple>| match triples.into_iter().next()?.o? {
        Term::Literal { value, .. } => Some(value),
        _ => None,
    };
    Ok(iris
        .into_iter()
        .zip(replies)
        .filter_map(|(iri, reply)| Some((iri, label(triples(&reply.ok()?))?)))
        .collect())
}

/// For each selected edge or chunk, the ways back to its documents.
async fn sources(
    socket: &mut Socket,
    place: &TraceLocation<'_>,
    trace: &Trace,
) -> Result<BTreeMap<String, Vec<String>>> {
    let mut sources = BTreeMap::new();
    for selection in trace.entities() {
        if selection.kind == Kind::ChunkSelection {
            if let Some(chunk) = selection.text("document") {
                let way = way_back(socket, place, chunk).await?;
                sources.insert(selection.iri.clone(), vec![way]);
            }
            continue;
        }
        let Some([s, p, o]) = edge(selection) else {
            continue;
        };
        let fact = Triple::new(s.clone(), p.clone(), o.clone());
        let reply = socket.ask(&place.holders(fact)).await?;
        let mut ways = Vec::new();
        for holder in triples(&reply) {
            if let Some(iri) = iri(holder.s.as_ref()) {
                ways.push(way_back(socket, place, iri).await?);
            }
        }
        sources.insert(selection.iri.clone(), ways);
    }
    Ok(sources)
}

async fn way_back(socket: &mut Socket, place: &TraceLocation<'_>, start: String) -> Result<String> {
    let mut way = vec![start];
    while way.len() <= MAX_HOPS {
        let Some(last) = way.last() else { break };
        let reply = socket.ask(&place.parents(last, SOURCE, 1)).await?;
        let above = triples(&reply)
            .iter()
            .find_map(|triple| iri(triple.o.as_ref()));
        match above {
            Some(iri) if !way.contains(&iri) => way.push(iri),
            _ => break,
        }
    }
    let labels = labels(socket, place, way.iter().cloned().collect()).await?;
    let names: Vec<String> = way
        .into_iter()
        .map(|iri| labels.get(&iri).cloned().unwrap_or(iri))
        .collect();
    Ok(names.join(" -> "))
}
