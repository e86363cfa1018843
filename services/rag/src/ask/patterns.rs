//! The graph by patterns alone, for stores that know nothing else: many questions, a few at a time.

mod trace;

use std::collections::{BTreeSet, HashMap};

use tg_mesh::Cx;
use tg_schemas::msg::{NeighbourhoodRequest, TriplesQueryRequest, UserContext};
use tg_schemas::processors::shared::TRIPLES_QUERY;
use tg_schemas::vocabulary::{rdf, rdfs};
use tg_schemas::{Error, Term, Triple};

use super::few_or_fault;
use crate::engine::lexical::Texts;
use crate::engine::traversal::{Edge, best_fit};

/// Questions at a time.
const AT_ONCE: usize = 16;
/// Edges of one hop whose ends are named by their labels: those whose words fit best.
const NAMED: usize = 400;

/// See the module.
pub struct Patterns {
    cx: Cx,
    user_context: Option<UserContext>,
}

/// One pattern; what is open matches everything.
#[derive(Default)]
struct Ask<'a> {
    collection: &'a str,
    s: Option<Term>,
    p: Option<Term>,
    o: Option<Term>,
    g: Option<String>,
    limit: i64,
}

impl Patterns {
    /// Asks in the name of this user.
    pub fn new(cx: &Cx, user_context: Option<UserContext>) -> Self {
        Self {
            cx: cx.clone(),
            user_context,
        }
    }

    async fn find(&self, ask: Ask<'_>) -> Result<Vec<Triple>, Error> {
        let request = TriplesQueryRequest {
            collection: ask.collection.to_owned(),
            s: ask.s,
            p: ask.p,
            o: ask.o,
            g: ask.g,
            limit: ask.limit,
            user_context: self.user_context.clone(),
            ..TriplesQueryRequest::default()
        };
        let mut answer = self.cx.ask(TRIPLES_QUERY, &request)?;
        let mut found = Vec::new();
        while let Some(part) = answer.next().await {
            let part = part?;
            if let Some(error) = part.error {
                return Err(error);
            }
            found.extend(part.triples);
        }
        Ok(found)
    }

    /// See [`super::Graph::around`].
    pub async fn around(
        &self,
        request: &NeighbourhoodRequest,
        searches: &[String],
    ) -> Result<(Vec<Edge>, usize), Error> {
        let graphs: Vec<Option<String>> = if request.graphs.is_empty() {
            vec![None]
        } else {
            let all = |graph: &String| (graph != "*").then(|| graph.clone());
            request.graphs.iter().map(all).collect()
        };
        let nodes = self.of_type(request).await?;
        let mut asks = Vec::new();
        for (at, node) in nodes {
            for part in 0..3 {
                let is_iri = matches!(node, Term::Iri(_));
                if part == 2 || (is_iri && part < 2) {
                    asks.extend(graphs.iter().map(|g| (at, part, node.clone(), g.clone())));
                }
            }
        }
        let asks = asks.into_iter().map(|(at, part, node, g)| async move {
            let mut ask = Ask {
                collection: &request.collection,
                g,
                limit: request.limit,
                ..Ask::default()
            };
            match part {
                0 => ask.s = Some(node),
                1 => ask.p = Some(node),
                _ => ask.o = Some(node),
            }
            Ok::<_, Error>((at, self.find(ask).await?))
        });
        let found = few_or_fault(asks.collect(), AT_ONCE).await?;
        let mut seen = BTreeSet::new();
        let mut edges = Vec::new();
        for (node, triples) in found {
            for triple in triples {
                let key = (triple.s.clone(), triple.p.clone(), triple.o.clone());
                if accepts(request, &triple) && seen.insert(key) {
                    let names = [&triple.s, &triple.p, &triple.o].map(local_name);
                    edges.push(Edge {
                        triple,
                        names,
                        node,
                    });
                }
            }
        }
        let examined = edges.len();
        let edges = self.named(request, searches, edges).await?;
        Ok((edges, examined))
    }

    /// The nodes that are of a type asked for, with their places.
    async fn of_type(&self, request: &NeighbourhoodRequest) -> Result<Vec<(usize, Term)>, Error> {
        let nodes: Vec<(usize, Term)> = request.nodes.iter().cloned().enumerate().collect();
        if request.types.is_empty() {
            return Ok(nodes);
        }
        let asks = nodes.into_iter().map(|(at, node)| async move {
            if !matches!(node, Term::Iri(_)) {
                return Ok(None);
            }
            let ask = Ask {
                collection: &request.collection,
                s: Some(node.clone()),
                p: Some(Term::iri(rdf::TYPE)),
                limit: 100,
                ..Ask::default()
            };
            let types = self.find(ask).await?;
            let fits = types.iter().any(|triple| match &triple.o {
                Some(Term::Iri(iri)) => request.types.contains(iri),
                _ => false,
            });
            Ok::<_, Error>(fits.then_some((at, node)))
        });
        let checked = few_or_fault(asks.collect(), AT_ONCE).await?;
        Ok(checked.into_iter().flatten().collect())
    }

    /// Names the ends of the edges that fit best; the rest keep the last parts of their IRIs.
    async fn named(
        &self,
        request: &NeighbourhoodRequest,
        searches: &[String],
        edges: Vec<Edge>,
    ) -> Result<Vec<Edge>, Error> {
        let texts: Vec<String> = edges.iter().map(|edge| edge.names.join(" ")).collect();
        let fits = best_fit(&Texts::new(&texts), searches, texts.len());
        let mut order: Vec<usize> = (0..edges.len()).collect();
        order.sort_by(|a, b| fits[*b].total_cmp(&fits[*a]).then(a.cmp(b)));
        order.truncate(NAMED);
        let mut wanted: BTreeSet<String> = BTreeSet::new();
        for at in order {
            let triple = &edges[at].triple;
            for term in [&triple.s, &triple.p, &triple.o].into_iter().flatten() {
                if let Term::Iri(iri) = term {
                    wanted.insert(iri.clone());
                }
            }
        }
        let asks = wanted.into_iter().map(|iri| async move {
            let label = self.label(&request.collection, &iri).await?;
            Ok::<_, Error>(label.map(|label| (iri, label)))
        });
        let labels = few_or_fault(asks.collect(), AT_ONCE).await?;
        let labels: HashMap<String, String> = labels.into_iter().flatten().collect();
        let rename = |mut edge: Edge| {
            let parts = [&edge.triple.s, &edge.triple.p, &edge.triple.o];
            for (name, term) in edge.names.iter_mut().zip(parts) {
                if let Some(Term::Iri(iri)) = term
                    && let Some(label) = labels.get(iri)
                {
                    name.clone_from(label);
                }
            }
            edge
        };
        Ok(edges.into_iter().map(rename).collect())
    }

    async fn label(&self, collection: &str, iri: &str) -> Result<Option<String>, Error> {
        let ask = Ask {
            collection,
            s: Some(Term::iri(iri)),
            p: Some(Term::iri(rdfs::LABEL)),
            limit: 1,
            ..Ask::default()
        };
        let found = self.find(ask).await?;
        Ok(found.into_iter().find_map(|triple| match triple.o {
            Some(Term::Literal { value, .. }) if !value.is_empty() => Some(value),
            _ => None,
        }))
    }
}

/// What the request leaves out, which a store of patterns does not know about.
fn accepts(request: &NeighbourhoodRequest, triple: &Triple) -> bool {
    let Some(Term::Iri(predicate)) = &triple.p else {
        return false;
    };
    let graph = triple.g.as_deref().unwrap_or_default();
    if request.graphs.is_empty() && request.exclude_graphs.iter().any(|left| left == graph) {
        return false;
    }
    let followed = if request.predicates.is_empty() {
        let left_out = |start: &String| predicate.starts_with(start.as_str());
        !request.exclude_predicates.iter().any(left_out)
            || request.keep_predicates.contains(predicate)
    } else {
        request.predicates.contains(predicate)
    };
    let spoken = match &triple.o {
        Some(Term::Literal { language, .. })
            if !language.is_empty() && !request.languages.is_empty() =>
        {
            let tag = language.to_lowercase();
            request.languages.iter().any(|range| {
                let range = range.to_lowercase();
                tag == range || tag.starts_with(&format!("{range}-"))
            })
        }
        _ => true,
    };
    followed && spoken
}

fn local_name(term: &Option<Term>) -> String {
    match term {
        Some(Term::Iri(iri)) => {
            let cut = iri.trim_end_matches(['/', '#', ':']);
            let from = cut.rfind(['/', '#', ':']).map_or(0, |at| at + 1);
            cut[from..].to_owned()
        }
        Some(Term::Literal { value, .. }) => value.clone(),
        _ => String::new(),
    }
}
