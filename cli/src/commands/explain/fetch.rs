//! Reading a trace from the graph: the entity of the question and all that was derived from it,
//! many at a time. Bounded; it never follows links out of the retrieval graph.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tg_document::text::leniently;
use tg_schemas::{Term, Triple};

use super::entity::{Entity, Kind, PROV, TG};
use super::trace::Trace;
use crate::args::InCollection;
use crate::client::{Call, Error, Result, Socket};
use crate::commands::graph::{Pattern, triples};
use crate::fields::text;
use crate::session::Session;

/// The graph that holds traces.
pub(super) const RETRIEVAL: &str = tg_schemas::vocabulary::RETRIEVAL_GRAPH;
/// The graph that holds where facts come from.
pub(super) const SOURCE: &str = tg_schemas::vocabulary::SOURCE_GRAPH;
/// More entities than any sensible trace has.
const MAX_ENTITIES: usize = 5000;
/// Triples of one entity.
const SAID: u64 = 1000;
/// What is stored may lag behind what was said by moments.
const TRIES: u32 = 10;
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// Where a trace is.
pub(super) struct TraceLocation<'a> {
    /// Flow to ask.
    pub(super) flow: &'a str,
    /// Collection of the trace.
    pub(super) collection: &'a str,
}

impl<'a> From<&'a InCollection> for TraceLocation<'a> {
    fn from(place: &'a InCollection) -> Self {
        Self {
            flow: &place.flow.flow_id,
            collection: &place.collection,
        }
    }
}

impl TraceLocation<'_> {
    /// The call for what something was derived from, by one graph.
    pub(super) fn parents(&self, iri: &str, graph: &str, limit: u64) -> Call {
        let pattern = Pattern {
            s: Some(Term::iri(iri)),
            p: Some(Term::iri(format!("{PROV}wasDerivedFrom"))),
            ..self.pattern(graph, limit)
        };
        pattern.call(self.flow)
    }

    /// The call for what was derived from something, by one graph.
    pub(super) fn children(&self, iri: &str, graph: &str, limit: u64) -> Call {
        let pattern = Pattern {
            p: Some(Term::iri(format!("{PROV}wasDerivedFrom"))),
            o: Some(Term::iri(iri)),
            ..self.pattern(graph, limit)
        };
        pattern.call(self.flow)
    }

    /// The call for all that one graph says about something.
    pub(super) fn about(&self, iri: &str, graph: &str, limit: u64) -> Call {
        let pattern = Pattern {
            s: Some(Term::iri(iri)),
            ..self.pattern(graph, limit)
        };
        pattern.call(self.flow)
    }

    /// The call for where a fact was found.
    pub(super) fn holders(&self, fact: Triple) -> Call {
        let pattern = Pattern {
            p: Some(Term::iri(format!("{TG}contains"))),
            o: Some(Term::Quoted(Box::new(fact))),
            ..self.pattern(SOURCE, 10)
        };
        pattern.call(self.flow)
    }

    /// A pattern in one graph of this collection.
    pub(super) fn pattern(&self, graph: &str, limit: u64) -> Pattern {
        Pattern {
            g: Some(graph.to_owned()),
            collection: self.collection.to_owned(),
            limit,
            ..Pattern::default()
        }
    }
}

/// The call for all that is said about an entity.
pub(crate) fn entity_call(flow: &str, collection: &str, iri: &str) -> Call {
    TraceLocation { flow, collection }.about(iri, RETRIEVAL, SAID)
}

/// The whole trace below a question.
pub(super) async fn trace(
    session: &Session,
    socket: &mut Socket,
    place: &TraceLocation<'_>,
    root: &str,
) -> Result<Trace> {
    Ok(trace_as_said(session, socket, place, root).await?.0)
}

/// The same, with the triples that say it.
pub(super) async fn trace_as_said(
    session: &Session,
    socket: &mut Socket,
    place: &TraceLocation<'_>,
    root: &str,
) -> Result<(Trace, Vec<Triple>)> {
    let mut said = Vec::new();
    wait_for(session, socket, place, root).await?;
    let mut entities = BTreeMap::new();
    let mut children = BTreeMap::new();
    let mut seen = BTreeSet::from([root.to_owned()]);
    let mut frontier = vec![root.to_owned()];
    while !frontier.is_empty() {
        let calls: Vec<Call> = frontier
            .iter()
            .flat_map(|iri| {
                [
                    place.about(iri, RETRIEVAL, SAID),
                    place.children(iri, RETRIEVAL, SAID),
                ]
            })
            .collect();
        let mut replies = socket.ask_all(&calls).await?.into_iter();
        let mut next = Vec::new();
        for iri in std::mem::take(&mut frontier) {
            let about = triples(&replies.next().transpose()?.unwrap_or_default());
            let below = subjects(&triples(&replies.next().transpose()?.unwrap_or_default()));
            let Some(entity) = Entity::read(&iri, &about) else {
                continue;
            };
            let linked = match entity.kind {
                Kind::Focus => {
                    [entity.texts("selectedEdge"), entity.texts("selectedChunk")].concat()
                }
                Kind::Synthesis | Kind::Conclusion => entity.texts("citation"),
                _ => Vec::new(),
            };
            let new = below.iter().chain(&linked);
            next.extend(new.filter(|iri| seen.insert((*iri).clone())).cloned());
            entities.insert(iri.clone(), entity);
            said.extend(about);
            children.insert(iri, below);
        }
        next.truncate(MAX_ENTITIES.saturating_sub(entities.len()));
        frontier = next;
    }
    Ok((Trace::new(root, entities, children), said))
}

async fn wait_for(
    session: &Session,
    socket: &mut Socket,
    place: &TraceLocation<'_>,
    root: &str,
) -> Result<()> {
    for _ in 0..TRIES {
        let reply = socket.ask(&place.about(root, RETRIEVAL, SAID)).await?;
        if !triples(&reply).is_empty() {
            return Ok(());
        }
        session.pause(RETRY_DELAY).await?;
    }
    Err(Error::Missing(format!(
        "no trace {root} in collection {}",
        place.collection
    )))
}

pub(super) fn subjects(triples: &[Triple]) -> Vec<String> {
    let subjects = triples.iter().filter_map(|triple| iri(triple.s.as_ref()));
    let unique: BTreeSet<String> = subjects.collect();
    unique.into_iter().collect()
}

/// A term that is an IRI.
pub(super) fn iri(term: Option<&Term>) -> Option<String> {
    match term {
        Some(Term::Iri(iri)) => Some(iri.clone()),
        _ => None,
    }
}

/// The texts of documents by id, in whatever charset they are; what cannot be read is left out.
pub(super) async fn texts(
    socket: &mut Socket,
    ids: BTreeSet<String>,
) -> Result<BTreeMap<String, String>> {
    let calls: Vec<Call> = ids
        .iter()
        .map(|id| {
            let request = json!({"operation": "get-document-content", "document-id": id});
            Call::global("librarian", request)
        })
        .collect();
    let replies = socket.ask_all(&calls).await?;
    let decode = |encoded: String| {
        let bytes = STANDARD.decode(encoded).ok()?;
        // As the reader of documents has it: what it took out of them is held against this.
        let text = String::from_utf8(bytes);
        Some(text.unwrap_or_else(|error| leniently(error.as_bytes(), None).0))
    };
    Ok(ids
        .into_iter()
        .zip(replies)
        .filter_map(|(id, reply)| Some((id, decode(text(&reply.ok()?, "content"))?)))
        .filter(|(_, text)| !text.is_empty())
        .collect())
}
