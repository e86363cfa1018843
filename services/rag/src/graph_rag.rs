//! `graph-rag`: what the question is about → entities near it → a walk from them, scored hop by hop → where
//! the kept facts come from → an answer from them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tg_clients::embeddings::embed;
use tg_clients::traces::{Text, answer_title};
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_provenance::{
    Retrieval, SelectedEdge, SessionFacts, Synthesis, asked, explored_graph, focused_on_edges,
    grounded, synthesised,
};
use tg_schemas::Error;
use tg_schemas::msg::{
    GraphRagQuery, GraphRagResponse, Source, SourceDocument, SourcesRequest, SourcesResponse,
};

use crate::answer_stream::AnswerStream;
use crate::ask::{self, Graph, Spent};
use crate::engine::budget::{fitting, shorten};
use crate::engine::citations::leans_on;
use crate::engine::concepts;
use crate::engine::plan::GraphPlan;
use crate::engine::seeds::{self, Seed};
use crate::engine::traversal::{Kept, Scored, Traversal};
use crate::fault;
use crate::frames::End;
use crate::options::Options;
use crate::processors::{now, trace_id};
use crate::synthesis::{self, Task, Written, usage};

const PROMPT: &str = "kg-synthesis";
/// What is said when the graph has nothing.
const NOTHING: &str = "The knowledge graph holds nothing that answers this question.";
/// Properties of one document that are told to the model, and of all together.
const PROPERTIES: i64 = 20;
const ALL_PROPERTIES: usize = 60;
/// Characters of one part of a fact, and bytes of all facts, that the model is given.
const PART: usize = 4_000;
const FACTS: usize = 120 << 10;

/// Serves `request` of `graph-rag`.
pub struct GraphRag(pub Arc<Options>);

#[async_trait]
impl RequestHandler<GraphRagQuery, GraphRagResponse> for GraphRag {
    async fn serve(
        &self,
        cx: Cx,
        ask: GraphRagQuery,
        out: Responder<GraphRagResponse>,
    ) -> Result<(), Error> {
        let plan = GraphPlan::new(&ask, &self.0)?;
        let mut narrator = AnswerStream::new(&cx, out, ask.streaming, &plan.collection);
        let answered = answer(&cx, &ask, &plan, &mut narrator).await;
        narrator.count("graph", answered.is_ok());
        if let Err(error) = answered {
            narrator.give_up().await;
            return Err(fault::typed(fault::GRAPH_RAG, error));
        }
        Ok(())
    }
}

type Teller = AnswerStream<GraphRagResponse>;

async fn answer(
    cx: &Cx,
    ask: &GraphRagQuery,
    plan: &GraphPlan,
    narrator: &mut Teller,
) -> Result<(), Error> {
    let names = Retrieval::graph(&trace_id(cx));
    let facts = SessionFacts {
        question: &plan.question,
        started_at: &now(),
        parent: Some(ask.parent_uri.as_str()).filter(|parent| !parent.is_empty()),
    };
    narrator.tell(asked(&names, &facts)).await?;

    let mut spent = Spent::default();
    let concepts = ground(cx, ask, plan, &names, narrator, &mut spent).await?;
    let searches = concepts::searches(&plan.question, &concepts);
    let (seeds, embeddings) = begin(cx, ask, plan, &searches).await?;

    let graph = Graph::of(cx, ask.user_context.clone());
    let (kept, examined) = walk(cx, &graph, plan, &searches, seeds.clone()).await?;
    let terms: Vec<_> = seeds.into_iter().map(|seed| seed.term).collect();
    narrator
        .tell(explored_graph(&names, examined, &terms))
        .await?;

    let sources = trace(&graph, plan, &kept).await?;
    let selected: Vec<SelectedEdge> = kept
        .iter()
        .map(|kept| SelectedEdge {
            edge: kept.edge.triple.clone(),
            concept: searches[kept.search].clone(),
            score: kept.score,
        })
        .collect();
    narrator
        .store_and_tell(focused_on_edges(&names, &selected))
        .await?;

    let known = Known::new(&kept, &sources);
    let task = Task {
        prompt: PROMPT,
        terms: BTreeMap::from([
            ("query".to_owned(), json!(plan.question).to_string()),
            ("knowledge".to_owned(), json!(known.facts).to_string()),
        ]),
        passages: &known.texts,
        nothing: NOTHING,
    };
    let written = synthesis::write(cx, narrator, task).await?;

    let document = names.answer_document();
    let answer = Text {
        id: document.clone(),
        title: answer_title("GraphRAG", &plan.question),
        text: &written.text,
    };
    let stored = narrator.traces.save(&answer).await;
    let cites: Vec<usize> = written
        .cited
        .iter()
        .copied()
        .filter(|at| *at < kept.len())
        .collect();
    let end = Synthesis {
        focused: true,
        stored,
        cites: &cites,
        usage: usage(&written.spent),
    };
    narrator.tell(synthesised(&names, &end)).await?;
    spent.add(&written.spent);
    let sources = known.sources(&written);
    let end = End {
        spent,
        sources,
        embeddings,
    };
    narrator.end(written.text, end).await
}

/// What the question is about: as given, or as the model says.
async fn ground(
    cx: &Cx,
    ask: &GraphRagQuery,
    plan: &GraphPlan,
    names: &Retrieval,
    narrator: &mut Teller,
    spent: &mut Spent,
) -> Result<Vec<String>, Error> {
    let given = concepts::given(&ask.grounding_seeds);
    let (found, took) = if !ask.graph_seeds.is_empty() {
        (vec![plan.question.clone()], Spent::default())
    } else if !given.is_empty() {
        (given, Spent::default())
    } else {
        ask::concepts(cx, &plan.question).await?
    };
    narrator
        .tell(grounded(names, &found, &usage(&took)))
        .await?;
    spent.add(&took);
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
    let embedded = embed(cx, searches.to_vec(), None).await?;
    let found = ask::entities(cx, &plan.collection, &embedded, limit).await?;
    Ok((seeds::merge(found, limit), embedded.told()))
}

async fn walk(
    cx: &Cx,
    graph: &Graph,
    plan: &GraphPlan,
    searches: &[String],
    seeds: Vec<Seed>,
) -> Result<(Vec<Kept>, usize), Error> {
    let mut walk = Traversal::new(plan, searches, seeds);
    let mut examined = 0;
    while let Some(request) = walk.next_request() {
        let (found, looked_at) = graph.around(&request, searches).await?;
        examined += looked_at;
        let candidates = walk.candidates(found);
        let texts: Vec<&str> = candidates.iter().map(|c| c.text.as_str()).collect();
        let limit = plan.limits.scored.max(plan.limits.edges);
        let (ranked, _) = ask::rerank(cx, searches, &texts, limit).await?;
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

/// Where the kept facts come from. An answer without sources is better than none.
async fn trace(graph: &Graph, plan: &GraphPlan, kept: &[Kept]) -> Result<SourcesResponse, Error> {
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
        Err(error) if fault::over(&error) => Err(error),
        Err(error) => {
            tracing::warn!(%error, "sources of facts could not be traced");
            Ok(SourcesResponse::default())
        }
    }
}

/// The numbered facts that the model is given: kept edges, then what is said of their documents.
struct Known<'a> {
    facts: Vec<serde_json::Value>,
    texts: Vec<String>,
    /// Documents behind each fact, as places.
    behind: Vec<Vec<usize>>,
    documents: &'a [SourceDocument],
}

impl<'a> Known<'a> {
    fn new(kept: &[Kept], sources: &'a SourcesResponse) -> Self {
        let mut all: Vec<([String; 3], Vec<usize>)> = Vec::new();
        let place = |at: &i64| usize::try_from(*at).ok();
        for (at, kept) in kept.iter().enumerate() {
            let parts = kept.edge.names.each_ref().map(|name| shorten(name, PART));
            let traced = sources.traced.get(at);
            let behind = traced.map_or_else(Vec::new, |traced| {
                traced.documents.iter().filter_map(place).collect()
            });
            all.push((parts, behind));
        }
        let mut left = if kept.is_empty() { 0 } else { ALL_PROPERTIES };
        for (at, document) in sources.documents.iter().enumerate() {
            let subject = named(document);
            for pair in document.properties.chunks_exact(2).take(left) {
                let text = |term: &tg_schemas::msg::LabelledTerm| match &term.term {
                    Some(tg_schemas::Term::Literal { value, .. }) => value.clone(),
                    _ => term.label.clone(),
                };
                let parts = [subject.clone(), text(&pair[0]), text(&pair[1])];
                all.push((parts.map(|part| shorten(&part, PART)), vec![at]));
                left -= 1;
            }
        }
        let texts: Vec<String> = all.iter().map(|(parts, _)| parts.join(" ")).collect();
        let count = fitting(&texts, FACTS);
        all.truncate(count);
        let mut known = Self {
            facts: Vec::with_capacity(count),
            texts: texts.into_iter().take(count).collect(),
            behind: Vec::with_capacity(count),
            documents: &sources.documents,
        };
        for ([s, p, o], behind) in all {
            known.facts.push(json!({"s": s, "p": p, "o": o}));
            known.behind.push(behind);
        }
        known
    }

    /// Documents behind the facts that an answer cites, or leans on if it cites none.
    fn sources(&self, written: &Written) -> Vec<Source> {
        let of = |at: &usize| self.behind.get(*at).cloned().unwrap_or_default();
        let places: BTreeSet<usize> = if written.cited.is_empty() {
            let facts = leans_on(&written.text, &self.texts);
            facts.iter().flat_map(of).collect()
        } else {
            written.cited.iter().flat_map(of).collect()
        };
        let documents = places.iter().filter_map(|at| self.documents.get(*at));
        let mut sources: Vec<Source> = documents
            .map(|document| Source {
                uri: document.uri.clone(),
                title: named(document),
            })
            .collect();
        sources.sort_by(|a, b| a.uri.cmp(&b.uri));
        sources
    }
}

fn named(document: &SourceDocument) -> String {
    if document.title.is_empty() {
        document.uri.clone()
    } else {
        document.title.clone()
    }
}
