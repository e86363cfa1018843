//! Policies of a collection: SHACL shapes in its graph `urn:graph:policy`, each with a query for what it is about and one for
//! what it says of that. Pure: reads quads, knows no store.
//!
//! The form is that of TrustGraph's policies (SHACL Advanced Features, targets and rules in SPARQL). A shape that cannot be
//! read hides everything: a policy that is broken must not be one that does not count.

mod context;
#[cfg(test)]
mod fuzz;
mod shows;
mod verdict;

pub(crate) use context::facts;
pub(crate) use shows::Shows;
pub(crate) use verdict::{Verdict, read as verdict};

use std::collections::HashMap;
use std::sync::Arc;

use oxigraph::model::vocab::{rdf, rdfs};
use oxigraph::model::{NamedOrBlankNode, Quad, Term};
use spargebra::{Query, SparqlParser};
use tg_schemas::vocabulary::{POLICY_GRAPH, sh};

use crate::error::GraphError;

/// Shapes of a collection at most.
const SHAPES: usize = 256;
/// Bytes of one query at most, how deep its brackets go, and how many there are with its operators: parser and evaluator
/// recurse over both, on threads with ordinary stacks.
const QUERY: usize = 4 << 10;
const DEPTH: usize = 8;
const OPERATORS: usize = 96;
/// Quads of the graph of policies at most.
const QUADS: usize = 10_000;
/// Where a shape stands that does not say so.
const USUAL_ORDER: i64 = 99;

/// One policy.
#[derive(Debug)]
pub(crate) struct Policy {
    /// Its label, or its IRI: for people.
    pub(crate) name: Arc<str>,
    /// Finds out whether `?this` is something that it is about.
    pub(crate) target: Query,
    /// Makes what it says of `?this`.
    pub(crate) rule: Query,
    order: i64,
}

type Facts = HashMap<NamedOrBlankNode, Vec<(String, Term)>>;

/// The policies in a graph of policies, in the order in which they are asked.
///
/// # Errors
/// [`GraphError::Policy`] for a shape that cannot be read; whatever kept the quads from being read.
pub(crate) fn read(
    quads: impl Iterator<Item = Result<Quad, GraphError>>,
) -> Result<Vec<Policy>, GraphError> {
    let mut said = Facts::new();
    for (count, quad) in quads.enumerate() {
        let quad = quad?;
        if count >= QUADS {
            let why = format!("there are more than {QUADS} triples of policies");
            return Err(broken(POLICY_GRAPH, why));
        }
        let fact = (quad.predicate.into_string(), quad.object);
        said.entry(quad.subject).or_default().push(fact);
    }
    let is_shape = |facts: &[(String, Term)]| {
        facts.iter().any(|(predicate, object)| {
            predicate == rdf::TYPE.as_str()
                && matches!(object, Term::NamedNode(class) if class.as_str() == sh::NODE_SHAPE)
        })
    };
    let mut policies = Vec::new();
    for (shape, facts) in said.iter().filter(|(_, facts)| is_shape(facts)) {
        policies.push(policy(shape, facts, &said)?);
    }
    if let Some((odd, _)) = said.iter().find(|(node, facts)| {
        let has = |predicate| values(facts, predicate).next().is_some();
        (has(sh::RULE) || has(sh::TARGET)) && !is_shape(facts) && node.is_named_node()
    }) {
        return Err(broken(&odd.to_string(), "rdf:type must be sh:NodeShape"));
    }
    if policies.is_empty() && !said.is_empty() {
        let why = "there are triples, and no sh:NodeShape";
        return Err(broken(POLICY_GRAPH, why));
    }
    if policies.len() > SHAPES {
        let why = format!("there are more than {SHAPES} policies");
        return Err(broken(POLICY_GRAPH, why));
    }
    policies.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
    Ok(policies)
}

fn broken(name: &str, why: impl Into<String>) -> GraphError {
    GraphError::Policy {
        name: name.to_owned(),
        why: why.into(),
    }
}

fn policy(
    shape: &NamedOrBlankNode,
    facts: &[(String, Term)],
    said: &Facts,
) -> Result<Policy, GraphError> {
    let label = values(facts, rdfs::LABEL.as_str()).find_map(text);
    let name = label.unwrap_or_else(|| match shape {
        NamedOrBlankNode::NamedNode(iri) => iri.as_str().to_owned(),
        NamedOrBlankNode::BlankNode(_) => "a policy without a name".to_owned(),
    });
    let order = match values(facts, sh::ORDER).find_map(text) {
        None => USUAL_ORDER,
        Some(order) => order
            .parse()
            .map_err(|_| broken(&name, format!("sh:order: {order:?} must be a whole number")))?,
    };
    let target = query(&name, ("sh:target", "sh:select"), facts, said)?;
    let rule = query(&name, ("sh:rule", "sh:construct"), facts, said)?;
    let selects_this = match &target {
        Query::Select { pattern, .. } => {
            let mut found = false;
            pattern.on_in_scope_variable(|variable| found |= variable.as_str() == "this");
            found
        }
        _ => return Err(broken(&name, "sh:select: must be a SELECT query")),
    };
    if !selects_this {
        return Err(broken(&name, "sh:select: does not select ?this"));
    }
    if !matches!(rule, Query::Construct { .. }) {
        return Err(broken(&name, "sh:construct: must be a CONSTRUCT query"));
    }
    Ok(Policy {
        name: name.into(),
        target,
        rule,
        order,
    })
}

/// The query that a shape has by way of another node.
fn query(
    name: &str,
    (way, what): (&str, &str),
    facts: &[(String, Term)],
    said: &Facts,
) -> Result<Query, GraphError> {
    let (by, of) = match way {
        "sh:target" => (sh::TARGET, sh::SELECT),
        _ => (sh::RULE, sh::CONSTRUCT),
    };
    let nodes = values(facts, by).filter_map(|node| Some((node, said.get(&node_of(node)?)?)));
    let found = nodes.filter_map(|(_, facts)| Some((values(facts, of).find_map(text)?, facts)));
    let mut found: Vec<(String, &Vec<(String, Term)>)> = found.collect();
    let (text, facts) = match found.len() {
        0 => return Err(broken(name, format!("{way} with {what} is required"))),
        1 => found.remove(0),
        _ => {
            return Err(broken(
                name,
                format!("{way}: there are several with {what}"),
            ));
        }
    };
    if text.len() > QUERY {
        return Err(broken(
            name,
            format!("{what}: is longer than {QUERY} bytes"),
        ));
    }
    flat(&text).map_err(|why| broken(name, format!("{what}: {why}")))?;
    let mut parser = SparqlParser::new();
    for (short, long) in prefixes(facts, said) {
        let with = parser.with_prefix(short, long);
        parser = with.map_err(|error| broken(name, format!("sh:prefixes: {error}")))?;
    }
    let parsed = parser.parse_query(&text);
    parsed.map_err(|error| broken(name, format!("{what}: {error}")))
}

/// Refuses what recursion over it would need much stack for. IRIs and texts count as if they were not quoted.
fn flat(query: &str) -> Result<(), String> {
    let (mut depth, mut operators) = (0_usize, 0_usize);
    for letter in query.chars() {
        match letter {
            '(' | '{' | '[' => {
                depth += 1;
                operators += 1;
            }
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            '|' | '&' | '+' | '*' | '^' | '!' | '=' => operators += 1,
            _ => {}
        }
        if depth > DEPTH {
            return Err(format!("is nested more than {DEPTH} deep"));
        }
    }
    // Of subtractions and paths, but not of IRIs.
    let mut parts = query.split('<');
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once('>').map_or(part, |(_, rest)| rest));
    let of_paths = std::iter::once(first).chain(rest);
    let of_paths: usize = of_paths.map(|part| part.matches(['/', '-']).count()).sum();
    match operators + of_paths > OPERATORS {
        true => Err(format!("has more than {OPERATORS} brackets and operators")),
        false => Ok(()),
    }
}

/// Prefixes that are declared for a query.
fn prefixes(facts: &[(String, Term)], said: &Facts) -> Vec<(String, String)> {
    let about = |node: &Term| node_of(node).and_then(|node| said.get(&node));
    let mut found = Vec::new();
    for declared in values(facts, sh::PREFIXES).filter_map(about) {
        for one in values(declared, sh::DECLARE).filter_map(about) {
            let short = values(one, sh::PREFIX).find_map(text);
            let long = values(one, sh::NAMESPACE_OF).find_map(text);
            found.extend(short.zip(long));
        }
    }
    found
}

fn values<'a>(facts: &'a [(String, Term)], predicate: &'a str) -> impl Iterator<Item = &'a Term> {
    let of = facts.iter().filter(move |(known, _)| known == predicate);
    of.map(|(_, object)| object)
}

/// The text of a literal, or an IRI.
fn text(term: &Term) -> Option<String> {
    match term {
        Term::Literal(literal) => Some(literal.value().to_owned()),
        Term::NamedNode(iri) => Some(iri.as_str().to_owned()),
        _ => None,
    }
}

fn node_of(term: &Term) -> Option<NamedOrBlankNode> {
    match term {
        Term::NamedNode(node) => Some(node.clone().into()),
        Term::BlankNode(node) => Some(node.clone().into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
