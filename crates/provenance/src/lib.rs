//! Turns what happened into PROV-O triples.
//!
//! **Runs of an agent.** One function per event of a ReAct run: [`session`], [`analysis`], [`thought`], [`observation`],
//! [`conclusion`]. Each returns an [`Event`]: the IRI that was described and its triples, all in
//! `urn:graph:retrieval`. IRIs follow one scheme ([`Session`]), so that a repeated description of the
//! same thing is the same set of triples.
//!
//! **Guards.** [`guarded`] is what a guard did about a step, [`confirmation`] what a user was asked before a tool was used, [`compaction`] a
//! summary of earlier steps.
//! **Patterns.** [`plan`] and [`step_result`] of a run that plans ahead, [`decomposition`] and [`finding`] of one with
//! subagents, [`synthesis`] as the end of both.
//!
//! **Questions to retrieval.** [`asked`], [`grounded`], [`explored_graph`] or [`explored_chunks`],
//! [`focused_on_edges`] or [`focused_on_chunks`], [`synthesised`]; names come from [`Retrieval`].
//!
//! **Documents.** [`document`] describes one in the default graph; [`part`] a page, section or chunk and
//! [`subgraph`] what an extractor found in a chunk, in `urn:graph:source`. Ids come from [`stable_id`]: the
//! same input has the same id, so doing something again describes the same things.
//! [`vocabulary_labels`] names the terms.
//!
//! **Chains.** [`Chain`] gives the entities of a trace their hashes, [`Stored`] recomputes them from what is stored, [`Head`]
//! is what is signed of a day.
//!
//! This crate performs no I/O, reads no clock and makes no random ids: all of that comes in.
//!
//! ```
//! use tg_provenance::{Session, SessionFacts, session};
//!
//! let id = Session::new("7d0c");
//! let event = session(&id, &SessionFacts {
//!     question: "Which bridge is the oldest?",
//!     started_at: "2026-08-01T09:00:00.120000Z",
//!     parent: None,
//! });
//! assert_eq!(event.id, "urn:trustgraph:agent:7d0c");
//! assert!(event.triples.iter().all(|t| t.g.as_deref() == Some("urn:graph:retrieval")));
//! ```

mod build;
mod canonical;
mod chain;
mod citation;
mod compaction;
mod confirmation;
mod guard;
mod head;
mod iri;
mod labels;
mod pattern;
mod react;
mod retrieval;
mod source;
mod stable;
mod verify;

pub use build::Event;
pub use chain::{Chain, hash_of};
pub use citation::Numbered;
pub use compaction::{Compaction, compaction, remade};
pub use confirmation::{Asked, confirmation};
pub use guard::{Guarded, guarded};
pub use head::{Ended, Head, HeadError, Root};
pub use iri::Session;
pub use labels::vocabulary_labels;
pub use pattern::{
    Finding, Plan, StepResult, decomposition, finding, plan, step_result, synthesis,
};
pub use react::{
    Analysis, Conclusion, Observation, Reason, SessionFacts, Thread, Usage, analysis, conclusion,
    observation, pattern_decision, session, session_on_thread, thought,
};
pub use retrieval::{
    Retrieval, SelectedChunk, SelectedEdge, Synthesis, asked, explored_chunks, explored_graph,
    focused_on_chunks, focused_on_edges, grounded, retrieval_id, synthesised,
};
pub use source::{
    DocumentFacts, Extraction, Making, PartFacts, PartKind, agent_iri, document, extracted, part,
    part_alone, subgraph,
};
pub use stable::{
    Kind, activity_id, chunk_id, extraction_id, page_id, section_id, stable_id, subgraph_id,
    text_hash,
};
pub use verify::{Broken, LinkError, Stored, Texts, Whole, end_of};
