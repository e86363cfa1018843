//! The events of a question to GraphRAG or DocumentRAG: question, grounding, exploration, focus, synthesis,
//! each derived from the one before.
//!
//! A selection (of an edge or a chunk) is described in the event of the focus that it belongs to.

use tg_schemas::{Term, Triple};

use crate::build::{Description, Event};
use crate::citation::{Numbered, with_citations};
use crate::react::{SessionFacts, Usage};
use crate::stable::{Kind, stable_id};
use tg_schemas::vocabulary::{prov, tg};

/// Who answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Graph,
    Documents,
}

/// Names of everything in the trace of one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retrieval {
    from: From,
    id: String,
}

impl Retrieval {
    /// A question to GraphRAG; `id` is normally from [`retrieval_id`].
    pub fn graph(id: &str) -> Self {
        Self {
            from: From::Graph,
            id: id.to_owned(),
        }
    }

    /// A question to DocumentRAG; `id` is normally from [`retrieval_id`].
    pub fn documents(id: &str) -> Self {
        Self {
            from: From::Documents,
            id: id.to_owned(),
        }
    }

    /// The question; names the whole trace.
    pub fn question(&self) -> String {
        match self.from {
            From::Graph => format!("urn:trustgraph:question:{}", self.id),
            From::Documents => format!("urn:trustgraph:docrag:{}", self.id),
        }
    }

    fn step(&self, name: &str) -> String {
        match self.from {
            From::Graph => format!("urn:trustgraph:prov:{name}:{}", self.id),
            From::Documents => format!("urn:trustgraph:docrag:{}/{name}", self.id),
        }
    }

    /// What the question is about.
    pub fn grounding(&self) -> String {
        self.step("grounding")
    }

    /// What was looked at.
    pub fn exploration(&self) -> String {
        self.step("exploration")
    }

    /// What was chosen.
    pub fn focus(&self) -> String {
        self.step("focus")
    }

    /// The answer.
    pub fn synthesis(&self) -> String {
        self.step("synthesis")
    }

    /// One of the chosen, counted from 0.
    pub fn selection(&self, index: usize) -> String {
        let what = match self.from {
            From::Graph => "edge",
            From::Documents => "chunk",
        };
        format!("urn:trustgraph:prov:{what}:{}:{index}", self.id)
    }

    /// One of the answer's citations, by its number.
    pub fn citation(&self, number: usize) -> String {
        format!("urn:trustgraph:prov:citation:{}:{number}", self.id)
    }

    /// Id of the stored answer.
    pub fn answer_document(&self) -> String {
        match self.from {
            From::Graph => format!("urn:trustgraph:synthesis:{}", self.id),
            From::Documents => self.step("answer"),
        }
    }
}

/// The id of a trace, by what names an attempt to answer a question.
pub fn retrieval_id(workspace: &str, flow: &str, request: &str) -> String {
    stable_id(Kind::Retrieval, &[workspace, flow, request])
}

/// An edge that was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedEdge {
    /// The edge, with its typed terms.
    pub edge: Triple,
    /// Concept that it was chosen for.
    pub concept: String,
    /// How well it fits.
    pub score: f64,
}

/// A chunk that was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedChunk {
    /// The chunk.
    pub chunk: String,
    /// How well it fits.
    pub score: f64,
}

/// The end of a question.
#[derive(Debug, Clone, Copy)]
pub struct Synthesis<'a> {
    /// Whether something was chosen from what was looked at, described by a focus.
    pub focused: bool,
    /// Whether the answer is stored.
    pub stored: bool,
    /// What the answer cites, the first by number 1.
    pub cites: &'a [Numbered],
    /// The answer is that there is none.
    pub refused: bool,
    /// What writing the answer took.
    pub usage: Usage<'a>,
}

/// A question is asked.
pub fn asked(names: &Retrieval, facts: &SessionFacts<'_>) -> Event {
    let (class, label) = match names.from {
        From::Graph => (tg::GRAPH_RAG_QUESTION, "GraphRAG Question"),
        From::Documents => (tg::DOC_RAG_QUESTION, "DocumentRAG Question"),
    };
    Description::of(names.question())
        .entity(&[tg::QUESTION, class])
        .label(label)
        .text(prov::STARTED_AT_TIME, facts.started_at)
        .text(tg::QUERY, facts.question)
        .link_if(prov::WAS_DERIVED_FROM, facts.parent)
        .done()
}

/// It is known what the question is about.
pub fn grounded(names: &Retrieval, concepts: &[String], usage: &Usage<'_>) -> Event {
    let mut about = Description::of(names.grounding())
        .entity(&[tg::GROUNDING])
        .label("Grounding")
        .derived_from(&names.question());
    for concept in concepts {
        about = about.text(tg::CONCEPT, concept.as_str());
    }
    about.used(usage).done()
}

/// The graph around the seeds was looked at: so many edges.
pub fn explored_graph(names: &Retrieval, edges: usize, seeds: &[Term]) -> Event {
    let mut about = Description::of(names.exploration())
        .entity(&[tg::EXPLORATION])
        .label("Exploration")
        .derived_from(&names.grounding())
        .text(tg::EDGE_COUNT, edges.to_string());
    for seed in seeds {
        about = about.with(tg::ENTITY, seed.clone());
    }
    about.done()
}

/// These chunks were looked at.
pub fn explored_chunks(names: &Retrieval, chunks: &[String]) -> Event {
    let mut about = Description::of(names.exploration())
        .entity(&[tg::EXPLORATION])
        .label("Exploration")
        .derived_from(&names.grounding())
        .text(tg::CHUNK_COUNT, chunks.len().to_string());
    for chunk in chunks {
        about = about.link(tg::SELECTED_CHUNK, chunk);
    }
    about.done()
}

/// These edges were chosen.
pub fn focused_on_edges(names: &Retrieval, edges: &[SelectedEdge]) -> Event {
    let mut about = Description::of(names.focus())
        .entity(&[tg::FOCUS])
        .label("Focus")
        .derived_from(&names.exploration());
    let mut selections = Vec::with_capacity(edges.len() * 4);
    for (at, selected) in edges.iter().enumerate() {
        let id = names.selection(at);
        about = about.link(tg::SELECTED_EDGE, &id);
        let mut edge = selected.edge.clone();
        edge.g = None;
        let selection = Description::of(id)
            .classes(&[tg::EDGE_SELECTION])
            .with(tg::EDGE, Term::Quoted(Box::new(edge)))
            .text(tg::CONCEPT, selected.concept.as_str())
            .text(tg::SCORE, score(selected.score));
        selections.extend(selection.done().triples);
    }
    with(about, selections)
}

/// These chunks were chosen.
pub fn focused_on_chunks(names: &Retrieval, chunks: &[SelectedChunk]) -> Event {
    let mut about = Description::of(names.focus())
        .entity(&[tg::FOCUS])
        .label("Chunk Selection")
        .derived_from(&names.exploration());
    let mut selections = Vec::with_capacity(chunks.len() * 3);
    for (at, selected) in chunks.iter().enumerate() {
        let id = names.selection(at);
        about = about.link(tg::SELECTED_CHUNK, &id);
        let selection = Description::of(id)
            .classes(&[tg::CHUNK_SELECTION])
            .link(tg::DOCUMENT, &selected.chunk)
            .text(tg::SCORE, score(selected.score));
        selections.extend(selection.done().triples);
    }
    with(about, selections)
}

/// The question is answered. The answer to a question to documents follows from the exploration too, where
/// readers of traces look for it.
pub fn synthesised(names: &Retrieval, facts: &Synthesis<'_>) -> Event {
    let document = names.answer_document();
    let mut about = Description::of(names.synthesis())
        .entity(&[tg::SYNTHESIS, tg::ANSWER])
        .label("Synthesis");
    if facts.focused {
        about = about.derived_from(&names.focus());
    }
    if !facts.focused || names.from == From::Documents {
        about = about.derived_from(&names.exploration());
    }
    about = about.link_if(tg::DOCUMENT, facts.stored.then_some(document.as_str()));
    let name = |number| names.citation(number);
    with_citations(about, name, facts.cites, facts.refused, &facts.usage)
}

fn with(about: Description, selections: Vec<Triple>) -> Event {
    let mut event = about.done();
    event.triples.extend(selections);
    event
}

/// Four decimals are what a score can mean.
fn score(score: f64) -> String {
    let text = format!("{score:.4}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    short.to_owned()
}

#[cfg(test)]
mod tests;
