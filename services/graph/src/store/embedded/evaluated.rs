//! A dataset as the evaluator of SPARQL reads it, other than as it is stored: as a user sees it, or as policies are judged by
//! it.

use std::sync::Arc;

use oxigraph::model::{GraphName, GraphNameRef, NamedNode, NamedOrBlankNode, Quad, Term, Triple};
use oxigraph::store::{StorageError, Store};
use spareval::{InternalQuad, QueryableDataset};
use tg_schemas::vocabulary::{POLICY_GRAPH, RETRIEVAL_GRAPH, user_context};

use super::bounds::Bound;
use crate::engine::pattern::Pattern;
use crate::engine::policy::Shows;
use crate::error::GraphError;

type Quads = Box<dyn Iterator<Item = Result<Quad, GraphError>>>;
type Graphs = Box<dyn Iterator<Item = Result<NamedOrBlankNode, StorageError>>>;

/// A dataset and how it is read: one type for both, as the evaluator is made anew for each.
pub(super) struct Evaluated {
    store: Store,
    as_of: As,
}

#[derive(Clone)]
enum As {
    /// What a user sees.
    Seen(Arc<dyn Shows>),
    /// What policies are judged by: all graphs as one, but for traces and the policies themselves, and what is known of the
    /// user. By name, graphs are as they are.
    Judged(Arc<[Triple]>, Arc<Bound>),
}

impl Evaluated {
    /// As a user sees it.
    pub(super) fn seen(store: &Store, sight: Arc<dyn Shows>) -> Self {
        Self {
            store: store.clone(),
            as_of: As::Seen(sight),
        }
    }

    /// As policies are judged by it, with what is known of the user.
    pub(super) fn judged(store: &Store, user: Arc<[Triple]>, bound: Arc<Bound>) -> Self {
        Self {
            store: store.clone(),
            as_of: As::Judged(user, bound),
        }
    }

    /// What matches, as it is stored and as it is known of the user.
    fn matching(&self, pattern: Pattern, place: In) -> Quads {
        match (place, &self.as_of) {
            (In::Default, As::Judged(user, bound)) => {
                let user: Vec<Quad> = user
                    .iter()
                    .map(|fact| fact.clone().in_graph(GraphName::DefaultGraph))
                    .filter(|fact| pattern.matches(fact))
                    .collect();
                let stored = bounded(stored(&self.store, &pattern, None), bound);
                let stored = stored.filter(|quad| match quad {
                    Ok(quad) => !is_apart(&quad.graph_name) && !is_of_user(quad),
                    Err(_) => true,
                });
                let stored = stored.map(|quad| quad.map(in_default));
                Box::new(user.into_iter().map(Ok).chain(stored))
            }
            (In::Default, As::Seen(_)) => {
                stored(&self.store, &pattern, Some(&GraphName::DefaultGraph))
            }
            // Whoever may write triples must not write who somebody is.
            (In::Named(graph), As::Judged(_, bound)) => {
                let all = bounded(stored(&self.store, &pattern, Some(&graph)), bound);
                Box::new(all.filter(|quad| !quad.as_ref().is_ok_and(is_of_user)))
            }
            (In::AnyNamed, As::Judged(_, bound)) => {
                let all = bounded(stored(&self.store, &pattern, None), bound);
                let all = only(all, |graph| *graph != GraphName::DefaultGraph);
                Box::new(all.filter(|quad| !quad.as_ref().is_ok_and(is_of_user)))
            }
            (In::Named(graph), As::Seen(_)) => stored(&self.store, &pattern, Some(&graph)),
            (In::AnyNamed, As::Seen(sight)) => {
                let sight = sight.clone();
                let all = stored(&self.store, &pattern, None);
                let all = all.map(move |quad| sight.goes_on().and(quad));
                only(Box::new(all), |graph| *graph != GraphName::DefaultGraph)
            }
        }
    }
}

impl As {
    fn shows(&self, quad: &Quad) -> Result<bool, GraphError> {
        match self {
            Self::Seen(sight) => sight.shows(quad),
            // What may be read of it was asked as it was read.
            Self::Judged(..) => Ok(true),
        }
    }

    fn shows_graph(&self, graph: &GraphName) -> Result<bool, GraphError> {
        match self {
            Self::Seen(sight) => sight.shows_graph(graph),
            Self::Judged(_, bound) => bound.check().map(|()| true),
        }
    }
}

/// Quads, each of them as long as the query that reads them may go on: before any of them is left out.
fn bounded(quads: Quads, bound: &Arc<Bound>) -> Quads {
    let bound = bound.clone();
    Box::new(quads.map(move |quad| bound.check().and(quad)))
}

/// Those of which a sieve lets something pass, and faults.
fn passed<T>(
    one: Result<T, GraphError>,
    shows: impl Fn(&T) -> Result<bool, GraphError>,
) -> Option<Result<T, GraphError>> {
    match one.and_then(|one| Ok((shows(&one)?, one))) {
        Ok((true, one)) => Some(Ok(one)),
        Ok((false, _)) => None,
        Err(error) => Some(Err(error)),
    }
}

/// Quads in some graphs.
fn only(quads: Quads, wanted: impl Fn(&GraphName) -> bool + 'static) -> Quads {
    Box::new(quads.filter(move |quad| match quad {
        Ok(quad) => wanted(&quad.graph_name),
        Err(_) => true,
    }))
}

/// Which graphs a pattern of a query is matched in.
#[derive(Debug, Clone, PartialEq, Eq)]
enum In {
    Default,
    Named(GraphName),
    AnyNamed,
}

/// A pattern of a query, or nothing where it can match nothing.
fn read(
    [subject, predicate, object]: [Option<&Term>; 3],
    graph: Option<Option<&Term>>,
) -> Option<(Pattern, In)> {
    let place = match graph {
        None => In::AnyNamed,
        Some(None) => In::Default,
        Some(Some(Term::NamedNode(graph))) => In::Named(graph.clone().into()),
        Some(Some(Term::BlankNode(graph))) => In::Named(graph.clone().into()),
        Some(Some(_)) => return None,
    };
    let pattern = Pattern {
        subject: match subject {
            None => None,
            Some(Term::NamedNode(node)) => Some(NamedOrBlankNode::NamedNode(node.clone())),
            Some(Term::BlankNode(node)) => Some(NamedOrBlankNode::BlankNode(node.clone())),
            Some(_) => return None,
        },
        predicate: match predicate {
            None => None,
            Some(Term::NamedNode(node)) => Some(node.clone()),
            Some(_) => return None,
        },
        object: object.cloned(),
        graph: None,
    };
    Some((pattern, place))
}

/// What a store has that matches.
fn stored(store: &Store, pattern: &Pattern, graph: Option<&GraphName>) -> Quads {
    let found = store.quads_for_pattern(
        pattern.subject.as_ref().map(|s| s.as_ref()),
        pattern.predicate.as_ref().map(|p| p.as_ref()),
        pattern.object.as_ref().map(|o| o.as_ref()),
        graph.map(GraphNameRef::from),
    );
    Box::new(found.map(|quad| Ok(quad?)))
}

fn internal(quad: Quad) -> InternalQuad<Term> {
    InternalQuad {
        subject: quad.subject.into(),
        predicate: quad.predicate.into(),
        object: quad.object,
        graph_name: named(quad.graph_name),
    }
}

/// The name of a named graph.
fn named(graph: GraphName) -> Option<Term> {
    match graph {
        GraphName::NamedNode(graph) => Some(graph.into()),
        GraphName::BlankNode(graph) => Some(graph.into()),
        GraphName::DefaultGraph => None,
    }
}

impl QueryableDataset<'static> for Evaluated {
    type InternalTerm = Term;
    type Error = GraphError;

    fn internal_quads_for_pattern(
        &self,
        subject: Option<&Term>,
        predicate: Option<&Term>,
        object: Option<&Term>,
        graph_name: Option<Option<&Term>>,
    ) -> impl Iterator<Item = Result<InternalQuad<Term>, GraphError>> + use<> {
        let asked = read([subject, predicate, object], graph_name);
        let found = asked.map(|(pattern, place)| self.matching(pattern, place));
        let as_of = self.as_of.clone();
        let found = found.into_iter().flatten();
        found.filter_map(move |quad| {
            let shown = passed(quad, |quad| as_of.shows(quad))?;
            Some(shown.map(internal))
        })
    }

    fn internal_named_graphs(&self) -> impl Iterator<Item = Result<Term, GraphError>> + use<> {
        let as_of = self.as_of.clone();
        let graphs = self.store.named_graphs();
        // The store locks its list against whoever commits a graph while somebody walks it, and a sight waits for whoever commits:
        // both would wait for ever. The list is read before its first graph is judged.
        let graphs: Graphs = match &as_of {
            As::Seen(_) => Box::new(graphs.collect::<Vec<_>>().into_iter()),
            As::Judged(..) => Box::new(graphs),
        };
        graphs.filter_map(move |graph| {
            let name = graph.map(GraphName::from).map_err(GraphError::from);
            let shown = passed(name, |name| as_of.shows_graph(name))?;
            shown.map(named).transpose()
        })
    }

    fn internalize_term(&self, term: Term) -> Result<Term, GraphError> {
        Ok(term)
    }

    fn externalize_term(&self, term: Term) -> Result<Term, GraphError> {
        Ok(term)
    }
}

/// Whether a quad says what is known of users by their tokens alone.
fn is_of_user(quad: &Quad) -> bool {
    quad.predicate.as_str().starts_with(user_context::NAMESPACE)
        || matches!(&quad.object, Term::NamedNode(class) if class.as_str() == user_context::CLASS)
}

/// Whether a graph is none of what is known.
fn is_apart(graph: &GraphName) -> bool {
    let apart = |graph: &NamedNode| matches!(graph.as_str(), POLICY_GRAPH | RETRIEVAL_GRAPH);
    matches!(graph, GraphName::NamedNode(graph) if apart(graph))
}

fn in_default(quad: Quad) -> Quad {
    Quad {
        graph_name: GraphName::DefaultGraph,
        ..quad
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Graphs that are judged only when another thread has committed new ones.
    struct Commits(Store);

    impl Shows for Commits {
        fn shows(&self, _: &Quad) -> Result<bool, GraphError> {
            Ok(true)
        }

        fn goes_on(&self) -> Result<(), GraphError> {
            Ok(())
        }

        fn shows_graph(&self, _: &GraphName) -> Result<bool, GraphError> {
            let (done, committed) = mpsc::sync_channel(1);
            let store = self.0.clone();
            thread::spawn(move || {
                commit(&store, "new");
                let _ = done.send(());
            });
            match committed.recv_timeout(Duration::from_secs(60)) {
                Ok(()) => Ok(true),
                Err(_) => Err(GraphError::Stalled(60)),
            }
        }
    }

    /// Commits so many new graphs that some are in each part of the list, which is locked part by part.
    fn commit(store: &Store, of: &str) {
        let mut change = store.start_transaction().unwrap();
        for number in 0..1_000 {
            let name = NamedNode::new_unchecked(format!("urn:{of}{number}"));
            let quad = Quad::new(name.clone(), name.clone(), name.clone(), name);
            change.insert(&quad);
        }
        change.commit().unwrap();
    }

    #[test]
    fn graphs_are_committed_while_a_query_of_somebody_held_to_policies_lists_them() {
        let store = Store::new().unwrap();
        commit(&store, "old");
        let seen = Evaluated::seen(&store, Arc::new(Commits(store.clone())));
        let first = seen.internal_named_graphs().next();
        assert!(first.is_some_and(|graph| graph.is_ok()), "a deadlock");
    }
}
