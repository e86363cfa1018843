//! Turns what an agent did into PROV-O triples.
//!
//! One function per event of a ReAct run: [`session`], [`analysis`], [`thought`], [`observation`],
//! [`conclusion`]. Each returns an [`Event`]: the IRI that was described and its triples, all in
//! `urn:graph:retrieval`. IRIs follow one scheme ([`Session`]), so that a repeated description of the
//! same thing is the same set of triples.
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
mod iri;
mod react;
pub mod vocabulary;

pub use build::Event;
pub use iri::Session;
pub use react::{
    Analysis, Conclusion, Observation, Reason, SessionFacts, Usage, analysis, conclusion,
    observation, session, thought,
};
