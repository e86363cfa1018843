//! Where the walk through the graph begins: the entities nearest to what is looked up.

use tg_schemas::Term;
use tg_schemas::msg::EntityMatch;

use super::fusion::{Order, fuse};

/// An entity, and how near it is: 1 for the nearest.
#[derive(Debug, Clone, PartialEq)]
pub struct Seed {
    /// The entity.
    pub term: Term,
    /// From 0 to 1.
    pub nearness: f64,
}

/// Merges what each look-up found, best first, so that every look-up has its share whatever their number.
pub fn merge(found: Vec<Vec<EntityMatch>>, limit: usize) -> Vec<Seed> {
    let orders: Vec<Order<Term>> = found
        .into_iter()
        .map(|mut matches| {
            matches.sort_by(|a, b| b.score.total_cmp(&a.score));
            Order {
                weight: 1.0,
                things: matches
                    .into_iter()
                    .filter_map(|m| entity(m.entity?))
                    .collect(),
            }
        })
        .collect();
    let mut fused = fuse(&orders);
    fused.truncate(limit);
    let most = fused.first().map_or(1.0, |(_, score)| *score);
    fused
        .into_iter()
        .map(|(term, score)| Seed {
            term,
            nearness: score / most,
        })
        .collect()
}

/// Seeds that were given.
pub fn given(iris: &[String], limit: usize) -> Vec<Seed> {
    let mut seeds: Vec<Seed> = Vec::new();
    for iri in iris.iter().map(|iri| iri.trim()) {
        let term = Term::iri(iri);
        if !iri.is_empty() && seeds.len() < limit && !seeds.iter().any(|seed| seed.term == term) {
            seeds.push(Seed {
                term,
                nearness: 1.0,
            });
        }
    }
    seeds
}

/// Stores of others lose what kind of term an entity was: a text with the look of an IRI is one.
fn entity(term: Term) -> Option<Term> {
    match term {
        Term::Literal { value, .. } if value.is_empty() => None,
        Term::Literal {
            value,
            datatype,
            language,
        } if datatype.is_empty() && language.is_empty() && !value.starts_with('<') => {
            Some(Term::guess(&value))
        }
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(all: &[(&str, f64)]) -> Vec<EntityMatch> {
        let one = |(iri, score): &(&str, f64)| EntityMatch {
            entity: Some(Term::literal(*iri)),
            score: *score,
            ..EntityMatch::default()
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn every_look_up_has_its_share() {
        let first: Vec<(String, f64)> = (0..60).map(|n| (format!("urn:a:{n}"), 0.9)).collect();
        let first: Vec<(&str, f64)> = first.iter().map(|(s, n)| (s.as_str(), *n)).collect();
        let seeds = merge(
            vec![found(&first), found(&[("urn:b:2", 0.2), ("urn:b:1", 0.3)])],
            6,
        );
        let names: Vec<_> = seeds.iter().map(|seed| seed.term.clone()).collect();
        let named = |iri: &str| names.iter().position(|term| *term == Term::iri(iri));
        assert_eq!(names.len(), 6);
        assert!(named("urn:b:1") < named("urn:b:2") && named("urn:b:2").is_some());
        assert_eq!(seeds[0].nearness, 1.0);
        assert_eq!(
            given(&["urn:a".into(), " urn:a ".into(), String::new()], 5).len(),
            1
        );
    }
}
