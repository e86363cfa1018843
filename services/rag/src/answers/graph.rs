//! `graph-rag`: what the question is about → entities near it → a walk from them, scored hop by hop → where
//! the kept facts come from → an answer from them.

use std::collections::BTreeMap;

use serde_json::json;
use tg_citations::Cited;
use tg_clients::traces::{Text, answer_title};
use tg_mesh::{Cx, clock};
use tg_provenance::{
    Numbered, Retrieval, SelectedEdge, SessionFacts, Synthesis, asked, explored_graph,
    focused_on_edges, grounded, synthesised,
};
use tg_schemas::msg::{Citation, GraphRagQuery, GraphRagResponse, SourcesRequest, SourcesResponse};
use tg_schemas::{Error, Term};

use super::citations::{self, Named};
use super::frames::End;
use super::stream::AnswerStream;
use super::synthesis::{self, Task, usage};
use super::trace::trace_id;
use crate::ask::{self, Graph, Judge, Library, Spent};
use crate::engine::concepts;
use crate::engine::documents::Passage;
use crate::engine::facts::{Facts, Origin};
use crate::engine::plan::GraphPlan;
use crate::engine::seeds::{self, Seed};
use crate::engine::traversal::{RankedEdge, Scored, Traversal};

const PROMPT: &str = "kg-synthesis";
/// What is said when the graph has nothing.
const NOTHING: &str = "The knowledge graph holds nothing that answers this question.";
/// Warnings: what an answer goes on without.
const NO_RERANKER: &str = "the reranker did not answer: words decided which facts fit";
const NO_SOURCES: &str = "the sources of the facts could not be read: the answer names none";
const NO_TEXTS: &str =
    "the texts behind the facts could not be read: the citations quote the facts";
/// Properties of one document that are told to the model.
const PROPERTIES: i64 = 20;

type Stream = AnswerStream<GraphRagResponse>;

/// Answers a question by its plan, step by step along `stream`.
///
/// # Errors
/// What a service that had to be asked said; what is optional is done without.
pub async fn answer(
    cx: &Cx,
    ask: &GraphRagQuery,
    plan: &GraphPlan,
    stream: &mut Stream,
) -> Result<(), Error> {
    let started_at = clock::rfc3339();
    let names = Retrieval::graph(&trace_id(cx, &started_at));
    let facts = SessionFacts {
        question: &plan.question,
        started_at: &started_at,
        parent: Some(ask.parent_uri.as_str()).filter(|parent| !parent.is_empty()),
    };
    stream.tell(asked(&names, &facts)).await?;

    let concepts = ground(cx, ask, plan, &names, stream).await?;
    let searches = concepts::searches(&plan.question, &concepts);
    let (seeds, embeddings) = begin(cx, ask, plan, &searches).await?;

    let graph = Graph::of(cx, ask.user_context.clone());
    let (kept, examined) = walk(cx, &graph, plan, &searches, seeds.clone(), stream).await?;
    let mut terms: Vec<_> = seeds.into_iter().map(|seed| seed.term).collect();
    if cx.headers.user_context.is_some() {
        // Vectors know of things that policies hide: only what the graph showed is told.
        let shown = |term: &Term| {
            let mut edges = kept.iter().map(|kept| &kept.edge.triple);
            edges.any(|edge| [&edge.s, &edge.o].contains(&&Some(term.clone())))
        };
        terms.retain(shown);
    }
    stream
        .tell(explored_graph(&names, examined, &terms))
        .await?;

    let sources = trace(cx, &graph, plan, &kept, stream).await?;
    let selected: Vec<SelectedEdge> = kept
        .iter()
        .map(|kept| SelectedEdge {
            edge: kept.edge.triple.clone(),
            concept: searches[kept.search].clone(),
            score: kept.score,
        })
        .collect();
    stream
        .store_and_tell(focused_on_edges(&names, &selected))
        .await?;

    let mut known = Facts::new(&kept, &sources);
    let mut texts = Texts::of(cx, &mut known).await?;
    let task = Task {
        prompt: PROMPT,
        terms: BTreeMap::from([
            ("query".to_owned(), json!(plan.question).to_string()),
            ("knowledge".to_owned(), json!(known.facts).to_string()),
        ]),
        passages: &known.passages,
        nothing: NOTHING,
    };
    let written = synthesis::write(cx, stream, task).await?;

    let document = names.answer_document();
    let answer = Text {
        id: document.clone(),
        title: answer_title("GraphRAG", &plan.question),
        text: &written.text,
    };
    let (stored, citations) = tokio::join!(
        stream.traces.save(&answer),
        cited(cx, plan, &names, &known, &written.cited, &mut texts)
    );
    let citations = citations?;
    if texts.unread {
        stream.warn(NO_TEXTS);
    }
    let end = Synthesis {
        focused: true,
        stored,
        cites: &citations.iter().map(Numbered::from).collect::<Vec<_>>(),
        refused: written.refused,
        usage: usage(&written.spent),
    };
    let text = stored.then_some(written.text.as_str());
    stream.tell_with(synthesised(&names, &end), text).await?;
    let end = End {
        spent: stream.spent.clone(),
        sources: match written.refused {
            true => Vec::new(),
            false => known.sources(&written.text, &written.cited),
        },
        embeddings,
        citations,
        refused: written.refused,
        trace: names.question(),
        ..End::default()
    };
    stream.end(written.text, end).await
}

/// Texts of chunks that were looked up for an answer.
#[derive(Default)]
struct Texts {
    passages: Vec<Passage>,
    asked: Vec<String>,
    /// The library could not be read.
    unread: bool,
}

impl Texts {
    /// Reads what the first facts were read from, and gives them their sentences.
    async fn of(cx: &Cx, known: &mut Facts<'_>) -> Result<Self, Error> {
        let mut texts = Self::default();
        texts.read(cx, &known.chunks()).await?;
        known.read_from(&texts.passages);
        Ok(texts)
    }

    /// Reads the texts of chunks that were not asked for before. An answer without them is better than none.
    async fn read(&mut self, cx: &Cx, chunks: &[String]) -> Result<(), Error> {
        // Policies are about things and not about texts: a caller who is held to them is quoted none.
        if cx.headers.user_context.is_some() || self.unread {
            return Ok(());
        }
        let new = |chunk: &&String| !chunk.is_empty() && !self.asked.contains(chunk);
        let new: Vec<String> = chunks.iter().filter(new).cloned().collect();
        match Library::of(cx).texts(&new).await {
            Ok(texts) => self.passages.extend(texts),
            Err(error) if error.code().is_over() => return Err(error),
            Err(error) => {
                tg_mesh::warn_of!(cx, %error, "texts of facts could not be read");
                self.unread = true;
            }
        }
        self.asked.extend(new);
        Ok(())
    }
}

/// What the cited facts are: the words that say them where they were found in a text, else they themselves.
async fn cited(
    cx: &Cx,
    plan: &GraphPlan,
    names: &Retrieval,
    known: &Facts<'_>,
    cited: &[Cited],
    texts: &mut Texts,
) -> Result<Vec<Citation>, Error> {
    let chunks: Vec<String> = cited.iter().map(|one| known.chunk(one.passage)).collect();
    let mut origins: Vec<Option<Origin>> =
        cited.iter().map(|one| known.origin(one.passage)).collect();
    // Where a fact was found more than once, its first chunk is looked up alone.
    let open: Vec<usize> = (0..origins.len())
        .filter(|at| origins[*at].is_none())
        .collect();
    let asked: Vec<String> = open.iter().map(|at| chunks[*at].clone()).collect();
    let (read, looked_up) = tokio::join!(
        texts.read(cx, &chunks),
        citations::origins(cx, &plan.collection, &asked)
    );
    read?;
    for (at, origin) in open.into_iter().zip(looked_up?) {
        origins[at] = Some(origin);
    }
    let named = cited.iter().zip(origins).enumerate();
    let one = |(at, (cited, origin)): (usize, (&Cited, Option<Origin>))| {
        let passage = texts
            .passages
            .iter()
            .find(|passage| passage.chunk == chunks[at]);
        let fact = known.texts[cited.passage].as_str();
        // What is said of the fact's subject tells the sentence better than the answer, and than a name that many have.
        let cited = &Cited {
            said: known.said(cited.passage),
            ..cited.clone()
        };
        let named = Named {
            cited,
            chunk: &chunks[at],
            text: passage.map_or(fact, |passage| passage.text.as_str()),
            selection: known
                .is_chosen(cited.passage)
                .then(|| names.selection(cited.passage)),
        };
        citations::citation(at, named, &origin.unwrap_or_default())
    };
    Ok(named.map(one).collect())
}

/// What the question is about: as given, or as the model says.
async fn ground(
    cx: &Cx,
    ask: &GraphRagQuery,
    plan: &GraphPlan,
    names: &Retrieval,
    stream: &mut Stream,
) -> Result<Vec<String>, Error> {
    let given = concepts::given(&ask.grounding_seeds);
    let (found, took) = if !ask.graph_seeds.is_empty() {
        (vec![plan.question.clone()], Spent::default())
    } else if !given.is_empty() {
        (given, Spent::default())
    } else {
        ask::concepts(cx, &plan.question).await?
    };
    stream.spent.add(&took);
    stream.tell(grounded(names, &found, &usage(&took))).await?;
    Ok(found)
}

/// Where the walk begins: as given, or the entities nearest to what is looked up, and by whose vectors.
async fn begin(
    cx: &Cx,
    ask: &GraphRagQuery,
    plan: &GraphPlan,
    searches: &[String],
) -> Result<(Vec<Seed>, Option<String>), Error> {
    let limit = plan.limits.entities;
    if !ask.graph_seeds.is_empty() {
        return Ok((seeds::given(&ask.graph_seeds, limit), None));
    }
    let (found, embedded) = ask::entities(cx, &plan.collection, searches.to_vec(), limit).await?;
    Ok((seeds::merge(found, limit), embedded.told()))
}

async fn walk(
    cx: &Cx,
    graph: &Graph,
    plan: &GraphPlan,
    searches: &[String],
    seeds: Vec<Seed>,
    stream: &mut Stream,
) -> Result<(Vec<RankedEdge>, usize), Error> {
    let mut walk = Traversal::new(plan, searches, seeds);
    let mut examined = 0;
    while let Some(request) = walk.next_request() {
        let (found, looked_at) = graph.around(&request, searches).await?;
        examined += looked_at;
        let candidates = walk.candidates(found);
        let texts: Vec<&str> = candidates.iter().map(|c| c.text.as_str()).collect();
        let limit = plan.limits.scored.max(plan.limits.edges);
        let (ranked, judge) = ask::rerank(cx, searches, &texts, limit).await?;
        if judge == Judge::WordsInstead {
            stream.warn(NO_RERANKER);
        }
        let scores = ranked
            .into_iter()
            .map(|ranked| Scored {
                candidate: ranked.text,
                search: ranked.query,
                score: ranked.score,
            })
            .collect();
        walk.keep(candidates, scores);
    }
    Ok((walk.finish(), examined))
}

/// Where the kept facts come from. An answer without sources is better than none, and says so.
async fn trace(
    cx: &Cx,
    graph: &Graph,
    plan: &GraphPlan,
    kept: &[RankedEdge],
    stream: &mut Stream,
) -> Result<SourcesResponse, Error> {
    if kept.is_empty() {
        return Ok(SourcesResponse::default());
    }
    let request = SourcesRequest {
        collection: plan.collection.clone(),
        edges: kept.iter().map(|kept| kept.edge.triple.clone()).collect(),
        nodes: Vec::new(),
        properties: PROPERTIES,
    };
    match graph.sources(&request).await {
        Ok(found) => Ok(found),
        Err(error) if error.code().is_over() => Err(error),
        Err(error) => {
            tg_mesh::warn_of!(cx, %error, "sources of facts could not be traced");
            stream.warn(NO_SOURCES);
            Ok(SourcesResponse::default())
        }
    }
}
