//! Fakes of the graph: a store that knows patterns, and one of ours that is asked for whole frontiers.

use std::sync::Arc;

use tg_mesh::Cx;
use tg_schemas::msg::*;
use tg_schemas::{Term, Triple};
use tg_testkit::fakes::Played;

use crate::world::Fake;

pub fn triples(fake: Fake) -> Arc<Played<TriplesQueryRequest, TriplesQueryResponse>> {
    Played::new(move |_: &Cx, ask: TriplesQueryRequest| {
        fake.asked("triples")?;
        let fits = |part: &Option<Term>, wanted: &Option<Term>| wanted.is_none() || part == wanted;
        let triples = fake.0.script.lock().graph.clone();
        let found = triples.into_iter().filter(|triple| {
            fits(&triple.s, &ask.s)
                && fits(&triple.p, &ask.p)
                && fits(&triple.o, &ask.o)
                && ask.g.as_ref().is_none_or(|g| Some(g) == triple.g.as_ref())
        });
        let limit = usize::try_from(ask.limit).unwrap();
        Ok(TriplesQueryResponse {
            triples: found.take(limit).collect(),
            ..TriplesQueryResponse::default()
        })
    })
}

/// What a term is called in this graph.
fn name(graph: &[Triple], term: &Term) -> String {
    let label = Term::iri("http://www.w3.org/2000/01/rdf-schema#label");
    let named =
        |triple: &&Triple| triple.s.as_ref() == Some(term) && triple.p.as_ref() == Some(&label);
    match (term, graph.iter().find(named).and_then(|t| t.o.clone())) {
        (Term::Literal { .. }, _) => String::new(),
        (_, Some(Term::Literal { value, .. })) => value,
        (Term::Iri(iri), _) => iri.rsplit([':', '/', '#']).next().unwrap().to_owned(),
        _ => String::new(),
    }
}

pub fn neighbours(fake: Fake) -> Arc<Played<NeighbourhoodRequest, NeighbourhoodResponse>> {
    Played::new(move |_: &Cx, ask: NeighbourhoodRequest| {
        fake.asked("neighbours")?;
        let graph = fake.0.script.lock().graph.clone();
        let mut reply = NeighbourhoodResponse::default();
        for (at, node) in ask.nodes.iter().enumerate() {
            let mut found: Vec<&Triple> = graph
                .iter()
                .filter(|triple| {
                    let Some(Term::Iri(predicate)) = &triple.p else {
                        return false;
                    };
                    let g = triple.g.clone().unwrap_or_default();
                    let left_out = ask
                        .exclude_predicates
                        .iter()
                        .any(|p| predicate.starts_with(p));
                    [&triple.s, &triple.p, &triple.o].contains(&&Some(node.clone()))
                        && !ask.exclude_graphs.contains(&g)
                        && (!left_out || ask.keep_predicates.contains(predicate))
                })
                .collect();
            reply.examined += found.len() as i64;
            let fits = |triple: &&Triple| {
                let text = format!("{triple:?}").to_lowercase();
                let shared = ask.words.iter().filter(|word| text.contains(word.as_str()));
                std::cmp::Reverse(shared.count())
            };
            found.sort_by_key(fits);
            for triple in found.into_iter().take(usize::try_from(ask.limit).unwrap()) {
                let mut place = |term: &Option<Term>| {
                    let term = term.clone().unwrap();
                    let label = name(&graph, &term);
                    reply.terms.push(LabelledTerm {
                        term: Some(term),
                        label,
                    });
                    reply.terms.len() as i64 - 1
                };
                let (s, p, o) = (place(&triple.s), place(&triple.p), place(&triple.o));
                reply.edges.push(Neighbour {
                    s,
                    p,
                    o,
                    node: at as i64,
                    graph: triple.g.clone(),
                });
            }
        }
        Ok(reply)
    })
}

pub fn sources(fake: Fake) -> Arc<Played<SourcesRequest, SourcesResponse>> {
    Played::new(move |_: &Cx, ask: SourcesRequest| {
        fake.asked("sources")?;
        let graph = fake.0.script.lock().graph.clone();
        let iri = |term: &Option<Term>| match term {
            Some(Term::Iri(iri)) => iri.clone(),
            _ => String::new(),
        };
        let derived = Some(Term::iri("http://www.w3.org/ns/prov#wasDerivedFrom"));
        let mut reply = SourcesResponse::default();
        let held = |edge: &Triple| {
            let fact = Triple {
                g: None,
                ..edge.clone()
            };
            let fact = Some(Term::Quoted(Box::new(fact)));
            let found = graph.iter().find(|triple| triple.o == fact);
            found.map_or_else(String::new, |triple| iri(&triple.s))
        };
        let starts: Vec<String> = ask
            .edges
            .iter()
            .map(held)
            .chain(ask.nodes.clone())
            .collect();
        for start in starts {
            let mut node = start.clone();
            let mut traced = TracedSource::default();
            while let Some(up) = graph
                .iter()
                .find(|triple| triple.p == derived && iri(&triple.s) == node)
            {
                if node.starts_with("urn:chunk:") {
                    traced.chunks.push(node);
                }
                node = iri(&up.o);
            }
            if node != start {
                let known = reply
                    .documents
                    .iter()
                    .position(|document| document.uri == node);
                let place = known.unwrap_or_else(|| {
                    let titled = graph.iter().find(|triple| {
                        iri(&triple.s) == node && iri(&triple.p).ends_with("/title")
                    });
                    let title = match titled.and_then(|triple| triple.o.clone()) {
                        Some(Term::Literal { value, .. }) => value,
                        _ => String::new(),
                    };
                    reply.documents.push(SourceDocument {
                        uri: node.clone(),
                        title,
                        ..SourceDocument::default()
                    });
                    reply.documents.len() - 1
                });
                traced.documents.push(place as i64);
            }
            reply.traced.push(traced);
        }
        Ok(reply)
    })
}
