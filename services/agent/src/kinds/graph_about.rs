//! Finds things by name and returns what the graph says about them, in both directions.

use std::collections::{BTreeMap, HashSet};

use futures::future::try_join_all;
use tg_schemas::vocabulary::known_things;
use tg_schemas::{Error, Term, Triple};

use super::origins::{self, Fact};
use super::sparql::{
    as_iri, iri, literal, naming, no_traces, run, show, show_predicate, with_name,
};
use super::tool_call::{Arguments, Call, Output, limit, text};
use crate::error::AgentError;

/// Names looked at.
const CANDIDATES: usize = 200;
/// Most things that a result describes.
const THINGS: usize = 3;
/// Facts of all things together in a result, unless the call asks for another number.
const FACTS: usize = 50;
const MOST_FACTS: usize = 500;
/// Further names mentioned.
const OTHERS: usize = 10;

/// A thing and the name by which it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    iri: String,
    name: String,
}

pub(super) async fn call(call: &Call<'_>, arguments: &Arguments) -> Result<Output, Error> {
    let name = text(arguments, "name");
    if name.is_empty() {
        return Err(AgentError::Name.into());
    }
    let limit = limit(arguments, FACTS, MOST_FACTS);
    let found = match as_iri(name) {
        Some(iri) => vec![Found {
            iri,
            name: name.to_owned(),
        }],
        None => find(call, name).await?,
    };
    if found.is_empty() {
        return Ok(format!("The graph has nothing named '{name}'.").into());
    }
    let (told, others) = found.split_at(found.len().min(THINGS));
    let each = (limit / told.len()).max(1);
    let mut told = try_join_all(told.iter().map(|thing| facts(call, thing, each))).await?;
    let facts: Vec<Fact> = told.iter().flat_map(|told| told.facts.clone()).collect();
    let origins = origins::origins(call, facts).await?;
    number(&mut told, &origins.loaded);
    let texts: Vec<_> = told.iter().map(|told| told.lines.join("\n")).collect();
    let mut lines = texts.join("\n\n");
    if !others.is_empty() {
        let names: Vec<_> = others
            .iter()
            .take(OTHERS)
            .map(|thing| thing.name.as_str())
            .collect();
        lines.push_str(&format!("\n\nOther names that match: {}", names.join("; ")));
    }
    lines.push_str(&origins.sentences);
    Ok(Output {
        citations: origins.citations,
        ..lines.into()
    })
}

/// Things with a name that contains the text, best first.
async fn find(call: &Call<'_>, name: &str) -> Result<Vec<Found>, Error> {
    let query = format!(
        "SELECT DISTINCT ?thing ?name WHERE {{ VALUES ?naming {{ {} }} ?thing ?naming ?name . \
         FILTER(CONTAINS(LCASE(STR(?name)), {})) FILTER(isIRI(?thing)) {} {} }} LIMIT {CANDIDATES}",
        naming(),
        literal(&name.to_lowercase()),
        no_traces("thing"),
        known_things("thing"),
    );
    let results = run(call, query, CANDIDATES).await?;
    let named = results.rows.into_iter().filter_map(|row| {
        let mut row = row.into_iter();
        match (row.next()??, row.next()??) {
            (Term::Iri(iri), Term::Literal { value, .. }) => Some(Found { iri, name: value }),
            _ => None,
        }
    });
    Ok(ranked(named.collect(), name))
}

/// Exact names before beginnings before the rest; shorter ones first; every thing once.
fn ranked(mut found: Vec<Found>, wanted: &str) -> Vec<Found> {
    let wanted = wanted.to_lowercase();
    found.sort_by_cached_key(|thing| {
        let name = thing.name.to_lowercase();
        let rank = if name == wanted {
            0
        } else if name.starts_with(&wanted) {
            1
        } else {
            2
        };
        (rank, name.len(), name, thing.iri.clone())
    });
    let mut seen = HashSet::new();
    found.retain(|thing| seen.insert(thing.iri.clone()));
    found
}

/// What is told of a thing: the lines, the first of which names it, and the facts behind the others.
struct EntityFacts {
    lines: Vec<String>,
    facts: Vec<Fact>,
}

/// Puts the numbers of facts behind their lines, which follow the line with the name.
fn number(told: &mut [EntityFacts], numbers: &BTreeMap<usize, usize>) {
    let mut fact = 0;
    for one in told {
        let lines = one.lines.iter_mut().skip(1).take(one.facts.len());
        for line in lines {
            if let Some(number) = numbers.get(&fact) {
                line.push_str(&format!(" [{number}]"));
            }
            fact += 1;
        }
    }
}

/// `subject | predicate | object` lines: first what the thing says, then what is said of it.
async fn facts(call: &Call<'_>, thing: &Found, limit: usize) -> Result<EntityFacts, Error> {
    let term = iri(&thing.iri)?;
    let names = format!("{} {}", with_name("p"), with_name("o"));
    let out =
        format!("SELECT ?p ?o ?p_name ?o_name WHERE {{ {term} ?p ?o . {names} }} LIMIT {limit}");
    let back = format!(
        "SELECT ?p ?o ?p_name ?o_name WHERE {{ ?o ?p {term} . {} {names} }} LIMIT {limit}",
        no_traces("o")
    );
    let (out, back) = futures::try_join!(run(call, out, limit), run(call, back, limit))?;
    let mut lines = vec![format!("{} <{}>", thing.name, thing.iri)];
    let mut facts = Vec::new();
    let own = out.rows.iter().map(|row| (row, true));
    for (row, outward) in own.chain(back.rows.iter().map(|row| (row, false))) {
        let [p, o, p_name, o_name] = row.as_slice() else {
            continue;
        };
        let predicate = show_predicate(p.as_ref(), p_name.as_ref());
        let other = show(o.as_ref(), o_name.as_ref());
        let (line, ends) = if outward {
            let line = format!("{} | {predicate} | {other}", thing.name);
            (line, [Some(Term::iri(&thing.iri)), o.clone()])
        } else {
            let line = format!("{other} | {predicate} | {}", thing.name);
            (line, [o.clone(), Some(Term::iri(&thing.iri))])
        };
        if lines.len() > limit {
            break;
        }
        if !lines.contains(&line) {
            let words = line.replace(" | ", " ");
            lines.push(line);
            let [subject, object] = ends;
            facts.push(Fact {
                triple: Triple {
                    s: subject,
                    p: p.clone(),
                    o: object,
                    g: None,
                },
                words,
                // The name of the thing stands in many sentences.
                said: format!("{predicate} {other}"),
            });
        }
    }
    if lines.len() == 1 {
        lines.push("(the graph says nothing more about it)".to_owned());
    }
    Ok(EntityFacts { lines, facts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_behind_the_facts_that_were_loaded() {
        let thing = |name: &str, lines: &[&str]| EntityFacts {
            lines: [name]
                .iter()
                .chain(lines)
                .map(|line| (*line).to_owned())
                .collect(),
            facts: lines
                .iter()
                .map(|line| Fact {
                    triple: Triple::default(),
                    words: (*line).to_owned(),
                    said: String::new(),
                })
                .collect(),
        };
        let mut told = [
            thing("Ham", &["a | b | c"]),
            thing("Hamlet", &["d | e | f", "g | h | i"]),
        ];
        number(&mut told, &BTreeMap::from([(0, 3), (2, 4)]));
        let lines: Vec<_> = told.iter().flat_map(|one| &one.lines).collect();
        assert_eq!(
            lines,
            [
                "Ham",
                "a | b | c [3]",
                "Hamlet",
                "d | e | f",
                "g | h | i [4]"
            ]
        );
    }

    #[test]
    fn exact_names_come_first_and_things_once() {
        let found = |iri: &str, name: &str| Found {
            iri: iri.into(),
            name: name.into(),
        };
        let ranked = ranked(
            vec![
                found("urn:c", "The Old Bridge of Ham"),
                found("urn:b", "Old Bridge Inn"),
                found("urn:a", "old bridge"),
                found("urn:a", "The Old Bridge"),
            ],
            "Old Bridge",
        );
        let order: Vec<_> = ranked.iter().map(|thing| thing.iri.as_str()).collect();
        assert_eq!(order, ["urn:a", "urn:b", "urn:c"]);
    }
}
