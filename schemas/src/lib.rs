//! The contract: everything that two parts of the mesh, or a client and the mesh, must agree on.
//!
//! Message bodies ([`msg`]), topic and id types that validate ([`topic`], [`ids`]), envelope headers
//! ([`headers`]), RDF terms in both wire forms ([`rdf`]), the closed list of errors ([`error`]), the
//! table of processors ([`processors`]), what decides what they make of a chunk ([`determinants`]), the table of
//! sizes ([`limits`]), pages of listings ([`paging`]), operations as types ([`operations`]) and the codec ([`codec`]).
//!
//! This crate performs no I/O and knows no async runtime.

pub mod codec;
pub mod determinants;
pub mod error;
pub mod faults;
pub mod flow_record;
pub mod headers;
pub mod ids;
pub mod limits;
pub mod masks;
mod message;
pub mod msg;
pub mod operations;
pub mod paging;
pub mod price;
pub mod processors;
pub mod rdf;
pub mod receipt;
pub mod records;
pub mod reply;
pub mod roles;
pub mod sections;
pub mod table;
pub mod topic;
pub mod vocabulary;
pub mod workspace_key;

pub use error::{BAD_CONTENT, Error, ErrorCode, Retry};
pub use headers::{CountedBy, Frame, Headers};
pub use ids::{FlowId, WorkspaceId};
pub use message::Message;
pub use rdf::{Term, Triple, directed, is_drawn_label};
pub use reply::Reply;
pub use topic::{Class, Subscription, Topic};
pub use workspace_key::{WorkspaceKey, WorkspaceTombstone};
