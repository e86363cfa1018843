//! Taking back exactly what came from chunks that are no more: what is said of them, the subgraphs read from
//! them, the facts that no other subgraph holds and nobody loaded by hand, and labels of what is left without any fact. Works on one
//! state of a dataset; whoever commits the result lets nothing come between.

use std::collections::{HashMap, HashSet};

use oxigraph::model::vocab::{rdf, rdfs};
use oxigraph::model::{
    GraphName, NamedNode, NamedNodeRef, NamedOrBlankNode, Quad, Term, Triple as RdfTriple,
};
use tokio::sync::oneshot;

use crate::engine::pattern::Pattern;
use crate::error::GraphError;
use crate::store::embedded::by_hand;
use crate::store::embedded::change::{Change, Outdated, Wanted};
use crate::store::embedded::dataset::Dataset;
use crate::store::embedded::handle::EmbeddedGraph;
use tg_collections::{CollectionKey, WriteKind};
use tg_provenance::extraction_id;
use tg_schemas::msg::Superseded;
use tg_schemas::vocabulary::{self, DUBLIN_CORE, SOURCE_GRAPH, owl, prov, schema, skos, tg};

/// Chunks taken back in one change: others may write between two of them.
const AT_ONCE: usize = 16;
/// Exact quads taken out in one change.
const QUADS_AT_ONCE: usize = 10_000;
/// Loads of a dataset that was let go of meanwhile.
const TRIES: usize = 5;

const SOURCE: NamedNodeRef<'_> = NamedNodeRef::new_unchecked(SOURCE_GRAPH);
const CONTAINS: NamedNodeRef<'_> = NamedNodeRef::new_unchecked(tg::CONTAINS);
const SUBGRAPH: NamedNodeRef<'_> = NamedNodeRef::new_unchecked(tg::SUBGRAPH);
const DERIVED: NamedNodeRef<'_> = NamedNodeRef::new_unchecked(prov::WAS_DERIVED_FROM);
const ASSOCIATED: NamedNodeRef<'_> = NamedNodeRef::new_unchecked(prov::WAS_ASSOCIATED_WITH);
const GENERATED: NamedNodeRef<'_> = NamedNodeRef::new_unchecked(prov::WAS_GENERATED_BY);

/// Namespaces whose terms keep their labels: they are vocabulary, not knowledge.
const VOCABULARY: [&str; 8] = [
    tg::NAMESPACE,
    prov::NAMESPACE,
    DUBLIN_CORE,
    schema::NAMESPACE,
    skos::NAMESPACE,
    vocabulary::rdf::NAMESPACE,
    vocabulary::rdfs::NAMESPACE,
    owl::NAMESPACE,
];

impl EmbeddedGraph {
    /// Takes back what came from `parts` (ids of chunks and pages), and `quads` whatever they came from.
    /// Returns how many quads went. Facts that other chunks support stay. Doing it again changes nothing.
    ///
    /// # Errors
    /// When the journal failed; some of it may be gone already.
    pub async fn retract(
        &self,
        key: &CollectionKey,
        parts: &[String],
        quads: Vec<Quad>,
        kind: WriteKind,
    ) -> Result<usize, GraphError> {
        let parts: Vec<NamedNode> = parts
            .iter()
            .filter_map(|id| NamedNode::new(id).ok())
            .collect();
        let of_parts = parts.chunks(AT_ONCE).map(|parts| Wanted {
            parts: parts.to_vec(),
            ..Wanted::default()
        });
        let of_quads = quads.chunks(QUADS_AT_ONCE).map(|quads| Wanted {
            quads: quads.to_vec(),
            ..Wanted::default()
        });
        self.take_all_back(key, of_parts.chain(of_quads), kind)
            .await
    }

    /// Takes back what processors made of chunks before, where it was made anew. Returns how many quads went.
    ///
    /// # Errors
    /// When the journal failed; some of it may be gone already.
    pub async fn supersede(
        &self,
        key: &CollectionKey,
        superseded: &[Superseded],
        kind: WriteKind,
    ) -> Result<usize, GraphError> {
        let outdated: Vec<Outdated> = superseded.iter().flat_map(outdated).collect();
        let wanted = outdated.chunks(AT_ONCE).map(|some| Wanted {
            outdated: some.to_vec(),
            ..Wanted::default()
        });
        self.take_all_back(key, wanted, kind).await
    }

    async fn take_all_back(
        &self,
        key: &CollectionKey,
        all: impl Iterator<Item = Wanted> + Send,
        kind: WriteKind,
    ) -> Result<usize, GraphError> {
        let mut count = 0;
        for wanted in all {
            match self.take_back(key, wanted, kind).await? {
                Some(gone) => count += gone,
                None => return Ok(count),
            }
        }
        Ok(count)
    }

    /// `None` if there is no such dataset.
    async fn take_back(
        &self,
        key: &CollectionKey,
        wanted: Wanted,
        kind: WriteKind,
    ) -> Result<Option<usize>, GraphError> {
        for _ in 0..TRIES {
            if self.dataset(key).await?.is_none() {
                return Ok(None);
            }
            let (done, result) = oneshot::channel();
            let change = Change::Retract {
                key: key.clone(),
                wanted: wanted.clone(),
                kind,
                done,
            };
            if let Some(count) = self.send(change, result).await? {
                return Ok(Some(count));
            }
        }
        Err(GraphError::Closed)
    }
}

/// What one processor made of chunks that goes. What is kept under no processor's name is known
/// here by its processor all the same.
fn outdated(of: &Superseded) -> impl Iterator<Item = Outdated> + Send + '_ {
    let agent = NamedNode::new(tg_provenance::agent_iri(&of.processor));
    let agent = agent.ok().filter(|_| !of.processor.is_empty());
    let chunks = of.chunks.iter().filter_map(|id| NamedNode::new(id).ok());
    chunks.filter_map(move |chunk| {
        let subgraphs = |fingerprints: &[String]| {
            let ids = fingerprints.iter();
            let ids = ids.map(|one| extraction_id(chunk.as_str(), &of.processor, one));
            ids.filter_map(|id| NamedNode::new(id).ok()).collect()
        };
        Some(Outdated {
            agent: agent.clone()?,
            kept: subgraphs(&of.kept),
            gone: subgraphs(&of.gone),
            chunk,
        })
    })
}

/// What taking back does to a dataset.
pub(crate) struct TakenBack {
    /// The quads that go.
    pub(crate) gone: Vec<Quad>,
    /// Facts that stay, as another subgraph holds them, and were loaded by hand only with what goes.
    pub(crate) unmarked: Vec<Quad>,
}

/// What goes, of one state of a dataset.
pub(crate) fn plan(data: &Dataset, wanted: &Wanted) -> Result<TakenBack, GraphError> {
    let mut plan = Plan {
        data,
        by_hand: data.by_hand(),
        gone: HashSet::new(),
        unmarked: Vec::new(),
    };
    for quad in &wanted.quads {
        let pattern = exactly(quad);
        for found in data.scan(&pattern) {
            plan.gone.insert(found?);
        }
    }
    let parts: HashSet<NamedOrBlankNode> = wanted
        .parts
        .iter()
        .cloned()
        .map(NamedOrBlankNode::from)
        .collect();
    let mut nodes = parts.clone();
    for part in &wanted.parts {
        nodes.extend(plan.subgraphs(part, &parts)?);
    }
    for one in &wanted.outdated {
        let of_chunk = HashSet::from([one.chunk.clone().into()]);
        for node in plan.subgraphs(&one.chunk, &of_chunk)? {
            let among = |all: &[NamedNode]| all.iter().any(|one| node == one.clone().into());
            let goes = !among(&one.kept) && (one.gone.is_empty() || among(&one.gone));
            if goes && plan.is_by(&node, &one.agent)? {
                nodes.insert(node);
            }
        }
    }
    let mut makers = HashSet::new();
    let mut facts = HashMap::new();
    for node in &nodes {
        plan.forget(node, &mut makers, &mut facts)?;
    }
    for maker in makers {
        plan.forget_maker(maker)?;
    }
    let mut touched = HashMap::new();
    for (fact, of_export) in facts {
        plan.forget_fact(fact, of_export, &mut touched)?;
    }
    plan.unmark_labels()?;
    for (node, of_export) in touched {
        plan.forget_labels(node, of_export)?;
    }
    Ok(TakenBack {
        gone: plan.gone.into_iter().collect(),
        unmarked: plan.unmarked,
    })
}

/// Facts of a thing that are looked at for one that was loaded.
const LOOKED_AT: usize = 10_000;

struct Plan<'a> {
    data: &'a Dataset,
    by_hand: by_hand::Frozen,
    gone: HashSet<Quad>,
    unmarked: Vec<Quad>,
}

fn source() -> Option<GraphName> {
    Some(SOURCE.into_owned().into())
}

fn exactly(quad: &Quad) -> Pattern {
    Pattern {
        subject: Some(quad.subject.clone()),
        predicate: Some(quad.predicate.clone()),
        object: Some(quad.object.clone()),
        graph: Some(quad.graph_name.clone()),
    }
}

impl Plan<'_> {
    fn found(&self, pattern: Pattern) -> Result<Vec<Quad>, GraphError> {
        self.data.scan(&pattern).collect()
    }

    /// Whether anything matches that does not go.
    fn stays(&self, pattern: Pattern) -> Result<bool, GraphError> {
        for quad in self.data.scan(&pattern) {
            if !self.gone.contains(&quad?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Subgraphs that were read from a part and from nothing that stays. A link of others goes.
    fn subgraphs(
        &mut self,
        part: &NamedNode,
        parts: &HashSet<NamedOrBlankNode>,
    ) -> Result<Vec<NamedOrBlankNode>, GraphError> {
        let links = self.found(Pattern {
            predicate: Some(DERIVED.into_owned()),
            object: Some(part.clone().into()),
            graph: source(),
            ..Pattern::default()
        })?;
        let mut whole = Vec::new();
        for link in links {
            let of = |predicate: NamedNodeRef<'_>, object| Pattern {
                subject: Some(link.subject.clone()),
                predicate: Some(predicate.into_owned()),
                object,
                graph: source(),
            };
            let class = Some(SUBGRAPH.into_owned().into());
            if self.found(of(rdf::TYPE, class))?.is_empty() {
                continue;
            }
            let stays = |from: &Quad| match &from.object {
                Term::NamedNode(node) => !parts.contains(&NamedOrBlankNode::from(node.clone())),
                _ => true,
            };
            if self.found(of(DERIVED, None))?.iter().any(stays) {
                self.gone.insert(link);
            } else {
                whole.push(link.subject);
            }
        }
        Ok(whole)
    }

    /// Whether an agent made a subgraph.
    fn is_by(&self, node: &NamedOrBlankNode, agent: &NamedNode) -> Result<bool, GraphError> {
        let makers = self.found(Pattern {
            subject: Some(node.clone()),
            predicate: Some(GENERATED.into_owned()),
            graph: source(),
            ..Pattern::default()
        })?;
        for maker in makers {
            let Term::NamedNode(maker) = maker.object else {
                continue;
            };
            let by = self.found(Pattern {
                subject: Some(maker.into()),
                predicate: Some(ASSOCIATED.into_owned()),
                object: Some(agent.clone().into()),
                graph: source(),
            })?;
            if !by.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What is said of a part or subgraph. Notes what made it and the facts it holds: whether these were loaded as its own.
    fn forget(
        &mut self,
        node: &NamedOrBlankNode,
        makers: &mut HashSet<NamedNode>,
        facts: &mut HashMap<RdfTriple, bool>,
    ) -> Result<(), GraphError> {
        let said = self.found(Pattern {
            subject: Some(node.clone()),
            graph: source(),
            ..Pattern::default()
        })?;
        for quad in said {
            match &quad.object {
                Term::NamedNode(maker) if quad.predicate == GENERATED => {
                    makers.insert(maker.clone());
                }
                Term::Triple(fact) if quad.predicate == CONTAINS => {
                    // Who loads a fact with where it comes from loads what was found, as from an export.
                    let of_export = self.by_hand.has(&quad);
                    let known = facts.entry((**fact).clone()).or_default();
                    *known |= of_export;
                }
                _ => {}
            }
            self.gone.insert(quad);
        }
        Ok(())
    }

    /// What is said of an activity that made nothing else.
    fn forget_maker(&mut self, maker: NamedNode) -> Result<(), GraphError> {
        let made_more = self.stays(Pattern {
            predicate: Some(GENERATED.into_owned()),
            object: Some(maker.clone().into()),
            graph: source(),
            ..Pattern::default()
        })?;
        if !made_more {
            self.forget(&maker.into(), &mut HashSet::new(), &mut HashMap::new())?;
        }
        Ok(())
    }

    /// Whether a subgraph that stays holds a fact.
    fn is_supported(&self, fact: RdfTriple) -> Result<bool, GraphError> {
        self.stays(Pattern {
            predicate: Some(CONTAINS.into_owned()),
            object: Some(Term::Triple(Box::new(fact))),
            graph: source(),
            ..Pattern::default()
        })
    }

    /// Whether a subgraph that stays and was loaded by hand holds a fact.
    fn is_supported_by_hand(&self, fact: RdfTriple) -> Result<bool, GraphError> {
        let holds = self.data.scan(&Pattern {
            predicate: Some(CONTAINS.into_owned()),
            object: Some(Term::Triple(Box::new(fact))),
            graph: source(),
            ..Pattern::default()
        });
        for quad in holds {
            let quad = quad?;
            if !self.gone.contains(&quad) && self.by_hand.has(&quad) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A fact that no subgraph holds any more and nobody loaded beside them. Notes whom it was about. One that only what
    /// was found holds still does not count as loaded any more.
    fn forget_fact(
        &mut self,
        fact: RdfTriple,
        of_export: bool,
        touched: &mut HashMap<NamedNode, bool>,
    ) -> Result<(), GraphError> {
        let quad = fact.clone().in_graph(GraphName::DefaultGraph);
        if self.is_supported(fact.clone())? {
            if of_export && self.by_hand.has(&quad) && !self.is_supported_by_hand(fact)? {
                self.unmarked.push(quad);
            }
            return Ok(());
        }
        if !of_export && self.by_hand.has(&quad) {
            return Ok(());
        }
        let mut touch = |node: &NamedNode| *touched.entry(node.clone()).or_default() |= of_export;
        if let NamedOrBlankNode::NamedNode(node) = &fact.subject {
            touch(node);
        }
        if let Term::NamedNode(node) = &fact.object {
            touch(node);
        }
        touch(&fact.predicate);
        for found in self.found(exactly(&quad))? {
            self.gone.insert(found);
        }
        Ok(())
    }

    /// Labels that came with an export do not count as loaded any more where nothing else about their thing does.
    fn unmark_labels(&mut self) -> Result<(), GraphError> {
        let mut nodes: HashSet<NamedNode> = HashSet::new();
        for quad in &self.unmarked {
            let ends = [Term::from(quad.subject.clone()), quad.object.clone()];
            nodes.extend(ends.into_iter().filter_map(|end| match end {
                Term::NamedNode(node) => Some(node),
                _ => None,
            }));
            nodes.insert(quad.predicate.clone());
        }
        for node in nodes {
            let labels = self.found(Pattern {
                subject: Some(node.clone().into()),
                predicate: Some(rdfs::LABEL.into_owned()),
                graph: Some(GraphName::DefaultGraph),
                ..Pattern::default()
            })?;
            let labels: Vec<Quad> = labels
                .into_iter()
                .filter(|label| self.counts_as_loaded(label))
                .collect();
            if !labels.is_empty() && !self.has_loaded(node, &labels)? {
                self.unmarked.extend(labels);
            }
        }
        Ok(())
    }

    fn counts_as_loaded(&self, quad: &Quad) -> bool {
        self.by_hand.has(quad) && !self.gone.contains(quad) && !self.unmarked.contains(quad)
    }

    /// Whether anything about a thing but its labels counts as loaded; of what has very many facts it is taken to.
    fn has_loaded(&self, node: NamedNode, labels: &[Quad]) -> Result<bool, GraphError> {
        let mut looked_at = 0;
        for pattern in about(node) {
            for quad in self.data.scan(&pattern) {
                let quad = quad?;
                looked_at += 1;
                if looked_at > LOOKED_AT || self.counts_as_loaded(&quad) && !labels.contains(&quad)
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The labels of something about which nothing else is left. What came with an export came with its labels.
    fn forget_labels(&mut self, node: NamedNode, of_export: bool) -> Result<(), GraphError> {
        if VOCABULARY
            .iter()
            .any(|space| node.as_str().starts_with(space))
        {
            return Ok(());
        }
        let facts = Some(GraphName::DefaultGraph);
        let said = self.found(Pattern {
            subject: Some(node.clone().into()),
            graph: facts.clone(),
            ..Pattern::default()
        })?;
        let mut labels = Vec::new();
        for quad in said {
            if self.gone.contains(&quad) {
                continue;
            }
            let label = quad.predicate == rdfs::LABEL;
            let loaded = !of_export && self.by_hand.has(&quad);
            if !label || loaded || self.is_supported(RdfTriple::from(quad.clone()))? {
                return Ok(());
            }
            labels.push(quad);
        }
        let as_object = Pattern {
            object: Some(node.clone().into()),
            graph: facts.clone(),
            ..Pattern::default()
        };
        let as_predicate = Pattern {
            predicate: Some(node),
            graph: facts,
            ..Pattern::default()
        };
        if !self.stays(as_object)? && !self.stays(as_predicate)? {
            self.gone.extend(labels);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

/// Facts with a thing at any of their places.
fn about(node: NamedNode) -> [Pattern; 3] {
    let of = || Pattern {
        graph: Some(GraphName::DefaultGraph),
        ..Pattern::default()
    };
    [
        Pattern {
            subject: Some(node.clone().into()),
            ..of()
        },
        Pattern {
            predicate: Some(node.clone()),
            ..of()
        },
        Pattern {
            object: Some(node.into()),
            ..of()
        },
    ]
}
