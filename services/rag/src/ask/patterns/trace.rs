//! Where facts come from, by patterns.

use std::collections::{BTreeMap, BTreeSet};

use tg_schemas::msg::{SourceDocument, SourcesRequest, SourcesResponse, TracedSource};
use tg_schemas::vocabulary::{SOURCE_GRAPH, dc, prov, rdfs, tg};
use tg_schemas::{Error, Term, Triple};

use super::{AT_ONCE, Ask, Patterns};
use crate::ask::few_or_fault;

/// Levels above a fact, and parents of one of them.
const LEVELS: usize = 6;
const PARENTS: i64 = 5;

impl Patterns {
    /// See [`crate::ask::Graph::sources`].
    pub async fn sources(&self, request: &SourcesRequest) -> Result<SourcesResponse, Error> {
        let asks = request.edges.iter();
        let asks = asks.map(|edge| self.subgraphs(&request.collection, edge));
        let starts = few_or_fault(asks.collect(), AT_ONCE).await?;
        let nodes = request.nodes.iter().map(|node| vec![node.clone()]);
        let starts: Vec<Vec<String>> = starts.into_iter().chain(nodes).collect();
        let mut parents: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut level: BTreeSet<String> = starts.concat().into_iter().collect();
        for _ in 0..LEVELS {
            level.retain(|node| !parents.contains_key(node));
            let asks = level.into_iter().map(|node| async move {
                let above = self.parents(&request.collection, &node).await?;
                Ok::<_, Error>((node, above))
            });
            let found = few_or_fault(asks.collect(), AT_ONCE).await?;
            level = found.iter().flat_map(|(_, above)| above.clone()).collect();
            parents.extend(found);
            if level.is_empty() {
                break;
            }
        }
        let pages = parents.keys().filter(|node| node.starts_with("urn:page:"));
        let asks = pages.map(|page| async move {
            let number = self.page_number(&request.collection, page).await?;
            Ok::<_, Error>((page.clone(), number))
        });
        let pages = few_or_fault(asks.collect(), AT_ONCE).await?;
        let pages: BTreeMap<String, i64> = pages.into_iter().collect();
        let mut documents: Vec<String> = Vec::new();
        let mut traced = Vec::with_capacity(starts.len());
        for start in starts {
            traced.push(follow(&start, &parents, &pages, &mut documents));
        }
        let asks = documents.into_iter();
        let asks = asks.map(|uri| self.document(&request.collection, uri));
        let documents = few_or_fault(asks.collect(), AT_ONCE).await?;
        Ok(SourcesResponse {
            error: None,
            traced,
            documents,
        })
    }

    async fn subgraphs(&self, collection: &str, edge: &Triple) -> Result<Vec<String>, Error> {
        let mut plain = edge.clone();
        plain.g = None;
        let ask = Ask {
            collection,
            p: Some(Term::iri(tg::CONTAINS)),
            o: Some(Term::Quoted(Box::new(plain))),
            g: Some(SOURCE_GRAPH.to_owned()),
            limit: 1,
            ..Ask::default()
        };
        Ok(iris(self.find(ask).await?.into_iter().map(|t| t.s)))
    }

    async fn parents(&self, collection: &str, node: &str) -> Result<Vec<String>, Error> {
        let ask = Ask {
            collection,
            s: Some(Term::iri(node)),
            p: Some(Term::iri(prov::WAS_DERIVED_FROM)),
            g: Some(SOURCE_GRAPH.to_owned()),
            limit: PARENTS,
            ..Ask::default()
        };
        Ok(iris(self.find(ask).await?.into_iter().map(|t| t.o)))
    }

    /// The number of a page; 0 where nobody says it.
    async fn page_number(&self, collection: &str, page: &str) -> Result<i64, Error> {
        let ask = Ask {
            collection,
            s: Some(Term::iri(page)),
            p: Some(Term::iri(tg::PAGE_NUMBER)),
            g: Some(SOURCE_GRAPH.to_owned()),
            limit: 1,
            ..Ask::default()
        };
        let said = self.find(ask).await?.into_iter().next();
        Ok(match said.and_then(|triple| triple.o) {
            Some(Term::Literal { value, .. }) => value.parse().unwrap_or(0),
            _ => 0,
        })
    }

    async fn document(&self, collection: &str, uri: String) -> Result<SourceDocument, Error> {
        let ask = Ask {
            collection,
            s: Some(Term::iri(uri.as_str())),
            limit: 50,
            ..Ask::default()
        };
        let said = self.find(ask).await?;
        let text = |predicate: &str| {
            said.iter().find_map(|triple| match (&triple.p, &triple.o) {
                (Some(Term::Iri(p)), Some(Term::Literal { value, .. })) if p == predicate => {
                    Some(value.clone())
                }
                _ => None,
            })
        };
        Ok(SourceDocument {
            title: text(dc::TITLE)
                .or_else(|| text(rdfs::LABEL))
                .unwrap_or_default(),
            uri,
            properties: Vec::new(),
        })
    }
}

/// Documents above where the search for a source begins.
fn follow(
    start: &[String],
    parents: &BTreeMap<String, Vec<String>>,
    pages: &BTreeMap<String, i64>,
    documents: &mut Vec<String>,
) -> TracedSource {
    let mut page = 0;
    let mut found = BTreeSet::new();
    let mut chunks = BTreeSet::new();
    let mut seen: BTreeSet<&String> = start.iter().collect();
    let mut level: Vec<&String> = start.iter().collect();
    while !level.is_empty() {
        let mut next = Vec::new();
        for node in level {
            if node.starts_with("urn:chunk:") {
                chunks.insert(node.clone());
            }
            if page == 0 {
                page = pages.get(node).copied().unwrap_or(0);
            }
            match parents.get(node).filter(|above| !above.is_empty()) {
                Some(above) => next.extend(above.iter().filter(|parent| seen.insert(parent))),
                None if start.contains(node) => {}
                None => {
                    let place = documents.iter().position(|known| known == node);
                    let place = place.unwrap_or_else(|| {
                        documents.push(node.clone());
                        documents.len() - 1
                    });
                    found.insert(place as i64);
                }
            }
        }
        level = next;
    }
    TracedSource {
        chunks: chunks.into_iter().collect(),
        documents: found.into_iter().collect(),
        page,
    }
}

fn iris(terms: impl Iterator<Item = Option<Term>>) -> Vec<String> {
    terms
        .filter_map(|term| match term {
            Some(Term::Iri(iri)) if !iri.is_empty() => Some(iri),
            _ => None,
        })
        .collect()
}
