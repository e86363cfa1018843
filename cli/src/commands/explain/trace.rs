//! A trace in hand: entities, what was derived from what, and the order to print it in. Pure.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::entity::{Entity, Kind};

/// Deeper than any sensible trace is.
const MAX_DEPTH: usize = 500;

/// One entity at its place in the telling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step<'a> {
    /// The entity.
    pub(super) entity: &'a Entity,
    /// How many sessions it is below the first.
    pub(super) depth: usize,
}

/// All of a trace.
#[derive(Debug)]
pub(super) struct Trace {
    root: String,
    entities: BTreeMap<String, Entity>,
    children: BTreeMap<String, Vec<String>>,
}

impl Trace {
    /// A trace with siblings put in order.
    pub(super) fn new(
        root: &str,
        entities: BTreeMap<String, Entity>,
        mut children: BTreeMap<String, Vec<String>>,
    ) -> Self {
        for below in children.values_mut() {
            below.retain(|iri| entities.contains_key(iri));
            below.sort_by(|left, right| order(&entities[left], &entities[right]));
        }
        Self {
            root: root.to_owned(),
            entities,
            children,
        }
    }

    /// The question at its start.
    pub(super) fn question(&self) -> Option<&Entity> {
        self.entities.get(&self.root)
    }

    /// An entity by its IRI.
    pub(super) fn entity(&self, iri: &str) -> Option<&Entity> {
        self.entities.get(iri)
    }

    /// Every entity.
    pub(super) fn entities(&self) -> impl Iterator<Item = &Entity> {
        self.entities.values()
    }

    /// Everything after the question, each entity once, depth first.
    pub(super) fn steps(&self) -> Vec<Step<'_>> {
        let mut steps = Vec::new();
        let mut seen = BTreeSet::from([self.root.as_str()]);
        // What is to be told next is on top; a stack instead of recursion bounds the depth.
        let mut stack: Vec<(&str, usize, usize)> = self.below(&self.root, 0, 0);
        while let Some((iri, depth, level)) = stack.pop() {
            let Some(entity) = self.entities.get(iri).filter(|_| seen.insert(iri)) else {
                continue;
            };
            let depth = match entity.kind {
                Kind::Question => depth + 1,
                // What a session below led to belongs to the session above again.
                Kind::Observation | Kind::StepResult | Kind::Finding if depth > 0 => {
                    self.own_depth(iri, depth)
                }
                _ => depth,
            };
            // What was thought led to what was done, though it is derived from it.
            for thought in self.thoughts(iri) {
                if seen.insert(&thought.iri) {
                    steps.push(Step {
                        entity: thought,
                        depth,
                    });
                }
            }
            steps.push(Step { entity, depth });
            if level < MAX_DEPTH {
                stack.extend(self.below(iri, depth, level + 1));
            }
        }
        steps
    }

    fn thoughts(&self, iri: &str) -> impl Iterator<Item = &Entity> {
        let below = self.children.get(iri).map_or(&[][..], Vec::as_slice);
        below
            .iter()
            .filter_map(|iri| self.entities.get(iri))
            .filter(|entity| entity.kind == Kind::Thought)
    }

    /// An agent's entity is as deep as its session: its IRI begins with the session's.
    fn own_depth(&self, iri: &str, depth: usize) -> usize {
        if iri.starts_with(&self.root) {
            0
        } else {
            depth
        }
    }

    fn below(&self, iri: &str, depth: usize, level: usize) -> Vec<(&str, usize, usize)> {
        let below = self.children.get(iri).map_or(&[][..], Vec::as_slice);
        below
            .iter()
            .rev()
            .map(|iri| (iri.as_str(), depth, level))
            .collect()
    }

    /// The first entity of a kind in the telling.
    pub(super) fn first(&self, kind: Kind) -> Option<&Entity> {
        self.steps()
            .into_iter()
            .map(|step| step.entity)
            .find(|entity| entity.kind == kind)
    }
}

/// Sub-sessions before what came of them, the end last.
fn order(left: &Entity, right: &Entity) -> Ordering {
    rank(left.kind)
        .cmp(&rank(right.kind))
        .then_with(|| numbers(&left.iri).cmp(&numbers(&right.iri)))
        .then_with(|| rung(&left.iri).cmp(&rung(&right.iri)))
        .then_with(|| left.iri.cmp(&right.iri))
}

fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::PatternDecision => 0,
        Kind::Thought | Kind::Guard | Kind::Compaction | Kind::Confirmation => 1,
        Kind::Plan | Kind::Decomposition => 2,
        Kind::Question => 3,
        Kind::Finding => 4,
        Kind::Synthesis => 6,
        Kind::Conclusion => 7,
        _ => 5,
    }
}

/// How high on the ladder of guards an entity stands, by the last part of its IRI; 0: it is none of a guard.
fn rung(iri: &str) -> usize {
    let name = iri.rsplit_once("/guard/").map_or("", |(_, name)| name);
    let rungs = ["warn", "tell", "block", "stop"].iter();
    rungs
        .zip(1..)
        .find(|(rung, _)| **rung == name)
        .map_or(0, |(_, height)| height)
}

/// The numbers in the last part of an IRI, so that `i10` comes after `i9`.
fn numbers(iri: &str) -> Vec<u64> {
    let tail = match iri.match_indices("/").next() {
        Some((start, _)) => &iri[start..],
        None => "",
    };
    tail.split(|character: char| !character.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::entity::TG;
    use super::*;
    use tg_schemas::{Term, Triple};

    const ROOT: &str = "urn:trustgraph:agent:1";

    fn entity(iri: &str, class: &str) -> (String, Entity) {
        let kind = Term::iri(tg_schemas::vocabulary::rdf::TYPE);
        let triple = Triple::new(Term::iri(iri), kind, Term::iri(format!("{TG}{class}")));
        (iri.to_owned(), Entity::read(iri, &[triple]).expect("read"))
    }

    fn trace(entities: &[(&str, &str)], links: &[(&str, &str)]) -> Trace {
        let mut children: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (below, above) in links {
            children
                .entry((*above).to_owned())
                .or_default()
                .push((*below).to_owned());
        }
        let entities = entities.iter().map(|(iri, class)| entity(iri, class));
        Trace::new(ROOT, entities.collect(), children)
    }

    fn told(trace: &Trace) -> Vec<(&str, usize)> {
        let steps = trace.steps().into_iter();
        steps
            .map(|step| (step.entity.iri.rsplit(':').next().unwrap_or(""), step.depth))
            .collect()
    }

    #[test]
    fn a_react_run_with_a_question_below_is_told_in_order() {
        let (i1, o1) = (
            "urn:trustgraph:agent:1/i1",
            "urn:trustgraph:agent:1/i1/observation",
        );
        let end = "urn:trustgraph:agent:1/final";
        let trace = trace(
            &[
                (ROOT, "Question"),
                (i1, "Analysis"),
                (o1, "Observation"),
                (end, "Conclusion"),
                ("urn:x:pd", "PatternDecision"),
                ("urn:q:1", "Question"),
                ("urn:q:s", "Synthesis"),
                ("urn:x:t", "Thought"),
            ],
            &[
                (i1, ROOT),
                ("urn:x:pd", ROOT),
                (i1, "urn:x:pd"),
                ("urn:q:1", i1),
                ("urn:x:t", i1),
                ("urn:q:s", "urn:q:1"),
                (o1, "urn:q:s"),
                (end, o1),
            ],
        );
        assert_eq!(
            told(&trace),
            [
                ("pd", 0),
                ("t", 0),
                ("1/i1", 0),
                ("1", 1),
                ("s", 1),
                ("1/i1/observation", 0),
                ("1/final", 0)
            ]
        );
    }

    /// As a subagent of a split is: its run, what it found, and then what the tool returned.
    #[test]
    fn an_agent_that_was_given_work_is_told_below_the_choice() {
        let own = |part: &str| format!("{ROOT}/{part}");
        let [choice, first, later, seen] =
            ["i1", "finding/0", "finding/11", "i1/observation"].map(own);
        let (sub, end) = ("urn:trustgraph:agent:2", "urn:trustgraph:agent:2/final");
        let trace = trace(
            &[
                (ROOT, "Question"),
                (&choice, "Analysis"),
                (sub, "Question"),
                (end, "Conclusion"),
                (&first, "Finding"),
                (&later, "Finding"),
                (&seen, "Observation"),
            ],
            &[
                (&choice, ROOT),
                (&seen, &choice),
                (&first, &choice),
                (&later, &choice),
                (sub, &choice),
                (end, sub),
                (&first, end),
            ],
        );
        assert_eq!(
            told(&trace),
            [
                ("1/i1", 0),
                ("2", 1),
                ("2/final", 1),
                ("1/finding/0", 0),
                ("1/finding/11", 0),
                ("1/i1/observation", 0),
            ]
        );
    }

    #[test]
    fn subagents_are_told_below_the_split_and_the_answer_last() {
        let own = |name: &str| format!("{ROOT}/{name}");
        let [split, first, second, end] =
            ["decompose", "finding/0", "finding/1", "synthesis"].map(own);
        let (a, b) = ("urn:trustgraph:agent:a", "urn:trustgraph:agent:b");
        let (a_end, b_end) = (
            "urn:trustgraph:agent:a/final",
            "urn:trustgraph:agent:b/final",
        );
        let trace = trace(
            &[
                (ROOT, "Question"),
                (&split, "Decomposition"),
                (a, "Question"),
                (a_end, "Conclusion"),
                (b, "Question"),
                (b_end, "Conclusion"),
                (&first, "Finding"),
                (&second, "Finding"),
                (&end, "Synthesis"),
            ],
            &[
                (&split, ROOT),
                (a, &split),
                (b, &split),
                (a_end, a),
                (b_end, b),
                (&first, b_end),
                (&first, &split),
                (&second, a_end),
                (&second, &split),
                (&end, &split),
            ],
        );
        assert_eq!(
            told(&trace),
            [
                ("1/decompose", 0),
                ("a", 1),
                ("a/final", 1),
                ("1/finding/1", 0),
                ("b", 1),
                ("b/final", 1),
                ("1/finding/0", 0),
                ("1/synthesis", 0)
            ]
        );
    }

    #[test]
    fn what_a_guard_did_is_told_rung_by_rung() {
        let own = |part: &str| format!("{ROOT}/i1{part}");
        let [choice, stop, block, tell, warn] = [
            "",
            "/guard/stop",
            "/guard/block",
            "/guard/tell",
            "/guard/warn",
        ]
        .map(own);
        let rungs = [&stop, &block, &tell, &warn];
        let mut entities = vec![(ROOT, "Question"), (choice.as_str(), "Analysis")];
        entities.extend(rungs.map(|iri| (iri.as_str(), "Guard")));
        let mut links = vec![(choice.as_str(), ROOT)];
        links.extend(rungs.map(|iri| (iri.as_str(), choice.as_str())));
        let trace = trace(&entities, &links);
        let told: Vec<_> = told(&trace).into_iter().map(|(iri, _)| iri).collect();
        let expected = [
            "",
            "/guard/warn",
            "/guard/tell",
            "/guard/block",
            "/guard/stop",
        ];
        assert_eq!(told, expected.map(|part| format!("1/i1{part}")));
    }

    #[test]
    fn numbered_siblings_are_sorted_as_numbers_and_loops_end() {
        let names = [
            "urn:trustgraph:agent:1/step/10",
            "urn:trustgraph:agent:1/step/9",
        ];
        let trace = trace(
            &[
                (ROOT, "Question"),
                (names[0], "StepResult"),
                (names[1], "StepResult"),
            ],
            &[(names[0], ROOT), (names[1], ROOT), (ROOT, names[0])],
        );
        assert_eq!(told(&trace), [("1/step/9", 0), ("1/step/10", 0)]);
    }
}
