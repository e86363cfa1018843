//! How much GraphRAG looks at and finds: its choice of each hop beside what an exhaustive search around the same nodes
//! would choose, where every edge that may be followed is scored the way the built-in reranker scores.
//!
//! Each question is asked for one hop and for two, so that it is known which edges the second hop added.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tg_rag::engine::concepts::searches;
use tg_rag::engine::rank::{Vectors, rank};
use tg_schemas::vocabulary::tg;
use tg_testkit::socket::Socket;

use super::{ENTITY, FLOW, PREDICATE, good, name, service};

/// Edges that GraphRAG keeps of a hop, and scored ones that it chooses them from, where nothing is set.
const KEPT: usize = 25;
const CHOSEN_FROM: usize = 30;
/// Texts that are embedded in one request.
const EMBEDDED: usize = 1_000;
/// Scores that differ by less are equal.
const EQUAL: f64 = 1e-5;

/// An edge: numbers of its subject, predicate and object.
pub type Link = (usize, usize, usize);

/// The links of the generated graph.
pub struct Links {
    of: Vec<Vec<Link>>,
}

impl Links {
    pub fn new(links: impl Iterator<Item = Link>, entities: usize) -> Self {
        let mut of: Vec<Vec<Link>> = vec![Vec::new(); entities];
        for link in links {
            of[link.0].push(link);
            of[link.2].push(link);
        }
        for links in &mut of {
            links.sort_unstable();
            // What is drawn twice is one edge.
            links.dedup();
        }
        Self { of }
    }

    /// Edges of a node, in all directions: one from a node to itself is looked at in two.
    fn there(&self, node: usize) -> usize {
        let own = |link: &&Link| link.0 == link.2;
        self.of[node].len() + self.of[node].iter().filter(own).count()
    }
}

/// What a question's trace tells.
struct Told {
    seeds: Vec<usize>,
    looked_at: usize,
    chosen: HashSet<Link>,
}

/// One hop beside an exhaustive one.
struct Hop {
    there: usize,
    /// Share of the best that were chosen.
    recall: f64,
    /// Share of the chosen that are among those that an exhaustive search would choose from.
    fitting: f64,
}

pub async fn measure(
    socket: &Socket,
    links: &Links,
    sample: usize,
    question: impl Fn(usize) -> (&'static str, Value),
) -> Result<()> {
    let mut hops: [Vec<Hop>; 2] = Default::default();
    let mut looked_at: Vec<usize> = Vec::new();
    for at in 0..sample {
        let (kind, request) = question(at);
        let one = asked(socket, kind, &request, 1).await?;
        let both = asked(socket, kind, &request, 2).await?;
        ensure!(one.chosen.is_subset(&both.chosen), "the first hop differs");
        let added: HashSet<Link> = both.chosen.difference(&one.chosen).copied().collect();
        let first: HashSet<usize> = one.seeds.iter().copied().collect();
        let ends = one.chosen.iter().flat_map(|link| [link.0, link.2]);
        let second: HashSet<usize> = ends.filter(|node| !first.contains(node)).collect();
        let concepts: Vec<String> = serde_json::from_value(request["grounding-seeds"].clone())?;
        let query = request["query"].as_str().context("no question")?;
        let searches = searches(query, &concepts);
        let none = HashSet::new();
        let found = hop(socket, links, &searches, (&first, &none), &one.chosen).await?;
        hops[0].push(found);
        let found = hop(socket, links, &searches, (&second, &first), &added).await?;
        hops[1].push(found);
        looked_at.push(both.looked_at);
    }
    let there: Vec<usize> = (0..sample)
        .map(|at| hops[0][at].there + hops[1][at].there)
        .collect();
    let share = looked_at
        .iter()
        .zip(&there)
        .map(|(at, of)| *at as f64 / (*of).max(1) as f64);
    println!(
        "  breadth, {sample} questions: {} edges looked at of {} there, least share {:.3}",
        looked_at.iter().sum::<usize>(),
        there.iter().sum::<usize>(),
        share.fold(f64::INFINITY, f64::min),
    );
    for (at, hops) in hops.iter().enumerate() {
        let recall = spread(hops.iter().map(|hop| hop.recall));
        let fitting = spread(hops.iter().map(|hop| hop.fitting));
        println!(
            "  hop {}: recall of the best {KEPT} {recall}; chosen that are among the best {CHOSEN_FROM} {fitting}",
            at + 1,
        );
    }
    Ok(())
}

fn spread(shares: impl Iterator<Item = f64>) -> String {
    let mut shares: Vec<f64> = shares.collect();
    shares.sort_by(f64::total_cmp);
    let least = shares.first().copied().unwrap_or(1.0);
    let middle = shares.get(shares.len() / 2).copied().unwrap_or(1.0);
    format!("median {middle:.2}, worst {least:.2}")
}

/// Asks a question for so many hops.
async fn asked(socket: &Socket, kind: &str, request: &Value, hops: usize) -> Result<Told> {
    let mut request = request.clone();
    request["max-path-length"] = json!(hops);
    let mut told = Told {
        seeds: Vec::new(),
        looked_at: 0,
        chosen: HashSet::new(),
    };
    for frame in socket.ask(kind, FLOW, request).await? {
        let frame = good(frame)?;
        let triples = frame["response"]["explain_triples"].as_array();
        for triple in triples.into_iter().flatten() {
            let value = &triple["o"];
            match triple["p"]["i"].as_str().unwrap_or_default() {
                tg::EDGE_COUNT => told.looked_at = value["v"].as_str().unwrap_or("").parse()?,
                tg::ENTITY => told.seeds.push(number(value, ENTITY)?),
                tg::EDGE => {
                    let edge = &value["tr"];
                    let link = (
                        number(&edge["s"], ENTITY)?,
                        number(&edge["p"], PREDICATE)?,
                        number(&edge["o"], ENTITY)?,
                    );
                    told.chosen.insert(link);
                }
                _ => {}
            }
        }
    }
    ensure!(!told.seeds.is_empty(), "no seeds were told");
    Ok(told)
}

fn number(term: &Value, start: &str) -> Result<usize> {
    let number = term["i"].as_str().and_then(|iri| iri.strip_prefix(start));
    let Some(number) = number else {
        bail!("{term} is none of the graph's");
    };
    Ok(number.parse()?)
}

/// What is best around nodes, beside what was chosen. What the hop before could see is not seen again.
async fn hop(
    socket: &Socket,
    links: &Links,
    searches: &[String],
    (nodes, before): (&HashSet<usize>, &HashSet<usize>),
    chosen: &HashSet<Link>,
) -> Result<Hop> {
    let there = nodes.iter().map(|node| links.there(*node)).sum();
    let all = nodes.iter().flat_map(|node| &links.of[*node]).copied();
    let new = all.filter(|link| !before.contains(&link.0) && !before.contains(&link.2));
    let all: HashSet<Link> = new.collect();
    let mut all: Vec<Link> = all.into_iter().collect();
    all.sort_unstable();
    let texts: Vec<String> = all
        .iter()
        .map(|(s, p, o)| format!("{} {p} {}", name(*s), name(*o)))
        .collect();
    let vectors = embedded(socket, &texts).await?;
    let queries = embedded(socket, searches).await?;
    let vectors = Vectors {
        queries: &queries,
        texts: &vectors,
    };
    let ranked = rank(searches, &texts, Some(vectors), texts.len());
    let best = ranked.len().min(KEPT);
    // Of equal ones any is as good.
    let cut = |count: usize| {
        let last = ranked.get(count.min(ranked.len()).wrapping_sub(1));
        last.map_or(0.0, |ranked| ranked.score - EQUAL)
    };
    let scores: HashMap<Link, f64> = ranked.iter().map(|r| (all[r.text], r.score)).collect();
    let above = |cut: f64| {
        let scores = chosen.iter().filter_map(|link| scores.get(link));
        scores.filter(|score| **score >= cut).count()
    };
    Ok(Hop {
        there,
        recall: above(cut(KEPT)).min(best) as f64 / best.max(1) as f64,
        fitting: above(cut(CHOSEN_FROM)) as f64 / chosen.len().max(1) as f64,
    })
}

async fn embedded(socket: &Socket, texts: &[String]) -> Result<Vec<Vec<f32>>> {
    let mut vectors = Vec::with_capacity(texts.len());
    for part in texts.chunks(EMBEDDED) {
        let mut reply = service(socket, "embeddings", json!({"texts": part})).await?;
        let part: Vec<Vec<f32>> = serde_json::from_value(reply["vectors"].take())?;
        vectors.extend(part);
    }
    ensure!(vectors.len() == texts.len(), "not all texts have a vector");
    Ok(vectors)
}
