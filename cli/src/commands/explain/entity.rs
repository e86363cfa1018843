//! An entity of a trace, read from its triples. Pure.

use std::collections::BTreeMap;

use tg_schemas::{Term, Triple};

/// Namespace of the trace vocabulary.
pub(crate) const TG: &str = tg_schemas::vocabulary::tg::NAMESPACE;
/// Namespace of PROV.
pub(crate) const PROV: &str = tg_schemas::vocabulary::prov::NAMESPACE;
const RDF_TYPE: &str = tg_schemas::vocabulary::rdf::TYPE;

/// What an entity is. The order decides when an entity has several types, and how siblings are
/// sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The start of a session, of any sort.
    Question,
    /// Which way of working was chosen.
    PatternDecision,
    /// A plan.
    Plan,
    /// A split into research threads.
    Decomposition,
    /// What the model thought.
    Thought,
    /// A tool that was chosen.
    Analysis,
    /// Concepts found in the question.
    Grounding,
    /// What was retrieved.
    Exploration,
    /// What was selected of it.
    Focus,
    /// One selected edge.
    EdgeSelection,
    /// One selected chunk.
    ChunkSelection,
    /// A number in an answer, with what it names.
    Citation,
    /// What a guard did about a step.
    Guard,
    /// A summary that stands for earlier steps.
    Compaction,
    /// What a user was asked before a tool was used.
    Confirmation,
    /// What a tool gave.
    Observation,
    /// The result of a planned step.
    StepResult,
    /// The result of a research thread.
    Finding,
    /// An answer put together.
    Synthesis,
    /// The end of an agent's session.
    Conclusion,
    /// Anything else.
    Other,
}

/// Types and the kind each one makes.
const KINDS: &[(&str, Kind)] = &[
    ("Question", Kind::Question),
    ("PatternDecision", Kind::PatternDecision),
    ("Plan", Kind::Plan),
    ("Decomposition", Kind::Decomposition),
    ("Thought", Kind::Thought),
    ("Analysis", Kind::Analysis),
    ("Grounding", Kind::Grounding),
    ("Exploration", Kind::Exploration),
    ("Focus", Kind::Focus),
    ("EdgeSelection", Kind::EdgeSelection),
    ("ChunkSelection", Kind::ChunkSelection),
    ("Citation", Kind::Citation),
    ("Guard", Kind::Guard),
    ("Compaction", Kind::Compaction),
    ("Confirmation", Kind::Confirmation),
    ("Observation", Kind::Observation),
    ("StepResult", Kind::StepResult),
    ("Finding", Kind::Finding),
    ("Synthesis", Kind::Synthesis),
    ("Conclusion", Kind::Conclusion),
];

/// The sort of a session, told from the IRI of its question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Session {
    /// An agent's.
    Agent,
    /// A question over the graph.
    GraphRag,
    /// A question over documents.
    DocRag,
}

impl Session {
    /// The sort; a graph question where the IRI tells nothing.
    pub(crate) fn of(iri: &str) -> Self {
        if iri.contains("agent") {
            Self::Agent
        } else if iri.contains("docrag") && !iri.contains("question") {
            Self::DocRag
        } else {
            Self::GraphRag
        }
    }

    /// The name for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Agent => "Agent",
            Self::GraphRag => "GraphRAG",
            Self::DocRag => "DocRAG",
        }
    }

    /// The name in JSON.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::GraphRag => "graphrag",
            Self::DocRag => "docrag",
        }
    }
}

/// One entity: its kind and what is said of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entity {
    /// Its IRI.
    pub(crate) iri: String,
    /// What it is.
    pub(crate) kind: Kind,
    said: BTreeMap<String, Vec<Term>>,
}

impl Entity {
    /// Reads an entity from triples, those about other things included. `None` if nothing is said
    /// about it.
    pub(crate) fn read(iri: &str, triples: &[Triple]) -> Option<Self> {
        let subject = Term::iri(iri);
        let mut said: BTreeMap<String, Vec<Term>> = BTreeMap::new();
        for triple in triples
            .iter()
            .filter(|triple| triple.s.as_ref() == Some(&subject))
        {
            if let (Some(Term::Iri(predicate)), Some(object)) = (&triple.p, &triple.o) {
                let objects = said.entry(predicate.clone()).or_default();
                if !objects.contains(object) {
                    objects.push(object.clone());
                }
            }
        }
        if said.is_empty() {
            return None;
        }
        let is_a = |name: &str| {
            let class = Term::iri(format!("{TG}{name}"));
            said.get(RDF_TYPE)
                .is_some_and(|types| types.contains(&class))
        };
        let kind = KINDS
            .iter()
            .find(|(name, _)| is_a(name))
            .map_or(Kind::Other, |(_, kind)| *kind);
        Some(Self {
            iri: iri.to_owned(),
            kind,
            said,
        })
    }

    /// Every object of a predicate of the trace vocabulary.
    pub(crate) fn objects(&self, name: &str) -> &[Term] {
        self.said
            .get(&format!("{TG}{name}"))
            .map_or(&[], Vec::as_slice)
    }

    /// The objects as plain text.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        self.objects(name).iter().map(plain).collect()
    }

    /// The first object as plain text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.objects(name).first().map(plain)
    }

    /// What it was derived from.
    pub(crate) fn derived_from(&self) -> Vec<String> {
        let above = self.said.get(&format!("{PROV}wasDerivedFrom"));
        above.into_iter().flatten().map(plain).collect()
    }

    /// What else is said of it, for people.
    pub(crate) fn comment(&self) -> Option<String> {
        let comments = self.said.get(tg_schemas::vocabulary::rdfs::COMMENT)?;
        comments.first().map(plain)
    }

    /// When it began.
    pub(crate) fn started(&self) -> Option<String> {
        let times = self.said.get(&format!("{PROV}startedAtTime"))?;
        times.first().map(plain)
    }

    /// The lines that tell a listener about it as it happens. `None` for what is not worth it;
    /// `all` says that everything is.
    pub(crate) fn event(&self, all: bool) -> Option<String> {
        let label = match self.kind {
            Kind::Question => "session".to_owned(),
            Kind::Analysis => match self.text("action") {
                Some(action) => format!("analysis: {action}"),
                None => "analysis".to_owned(),
            },
            Kind::Observation => "observation".to_owned(),
            Kind::Decomposition => "decompose".to_owned(),
            Kind::Finding => "finding".to_owned(),
            Kind::Plan => "plan".to_owned(),
            Kind::StepResult => "step-result".to_owned(),
            Kind::Synthesis => "synthesis".to_owned(),
            Kind::Conclusion => "conclusion".to_owned(),
            Kind::Grounding => "grounding".to_owned(),
            Kind::Exploration => "exploration".to_owned(),
            Kind::Focus => "focus".to_owned(),
            Kind::Guard => match self.text("guardRung") {
                Some(rung) => format!("guard: {rung}"),
                None => "guard".to_owned(),
            },
            Kind::Compaction => match self.text("compactionTier") {
                Some(tier) => format!("compaction: {tier}"),
                None => "compaction".to_owned(),
            },
            Kind::Confirmation => match self.text("confirmationAnswer") {
                Some(answer) => format!("confirmation: {answer}"),
                None => "confirmation".to_owned(),
            },
            Kind::PatternDecision if all => "pattern".to_owned(),
            Kind::Thought if all => "thought".to_owned(),
            _ if all => "unknown".to_owned(),
            _ => return None,
        };
        let mut lines = vec![format!("  [{label}] {}", self.iri)];
        let numbered = |name: &str, title: &str| -> Vec<String> {
            let texts = self.texts(name).into_iter().enumerate();
            texts
                .map(|(number, text)| format!("    {title} {number}: {text}"))
                .collect()
        };
        match self.kind {
            Kind::Decomposition => lines.extend(numbered("subagentGoal", "Thread")),
            Kind::Plan => lines.extend(numbered("planStep", "Step")),
            _ => {
                let details = [
                    ("Query", self.text("query")),
                    ("Time", self.started()),
                    ("Goal", self.text("subagentGoal")),
                    ("Step", self.text("planStep")),
                    ("Pattern", self.text("pattern")),
                    ("Document", self.text("document")),
                ];
                let known = details
                    .into_iter()
                    .filter_map(|(title, text)| Some(format!("    {title}: {}", text?)));
                lines.extend(known);
            }
        }
        Some(lines.join("\n"))
    }
}

fn plain(term: &Term) -> String {
    match term {
        Term::Iri(text) | Term::Blank(text) | Term::Literal { value: text, .. } => text.clone(),
        Term::Quoted(_) => crate::commands::graph::display(Some(term)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(s: &str, p: &str, o: Term) -> Triple {
        Triple::new(Term::iri(s), Term::iri(p), o)
    }

    fn analysis() -> Vec<Triple> {
        vec![
            says("urn:a", RDF_TYPE, Term::iri(format!("{TG}ToolUse"))),
            says("urn:a", RDF_TYPE, Term::iri(format!("{TG}Analysis"))),
            says("urn:a", &format!("{TG}action"), Term::literal("calculator")),
            // A thought in the same event must not change what the analysis is.
            says("urn:a/thought", RDF_TYPE, Term::iri(format!("{TG}Thought"))),
            says(
                "urn:a/thought",
                RDF_TYPE,
                Term::iri(format!("{TG}Reflection")),
            ),
        ]
    }

    #[test]
    fn an_entity_is_what_its_own_triples_say() {
        let entity = Entity::read("urn:a", &analysis()).expect("an entity");
        assert_eq!(entity.kind, Kind::Analysis);
        assert_eq!(entity.text("action").as_deref(), Some("calculator"));
        assert_eq!(Entity::read("urn:b", &analysis()), None);
    }

    #[test]
    fn an_event_names_the_tool_and_thoughts_stay_quiet() {
        let entity = Entity::read("urn:a", &analysis()).expect("an entity");
        assert_eq!(
            entity.event(false).as_deref(),
            Some("  [analysis: calculator] urn:a")
        );
        let thought = Entity::read("urn:a/thought", &analysis()).expect("an entity");
        assert_eq!(thought.event(false), None);
        assert!(thought.event(true).is_some());
    }

    #[test]
    fn the_sort_of_a_session_is_in_its_iri() {
        assert_eq!(Session::of("urn:trustgraph:agent:1"), Session::Agent);
        assert_eq!(Session::of("urn:trustgraph:question:1"), Session::GraphRag);
        assert_eq!(Session::of("urn:trustgraph:docrag:1"), Session::DocRag);
    }
}
