//! The contract: everything that two parts of the mesh, or a client and the mesh, must agree on.
//!
//! Message bodies ([`msg`]), topic and id types that validate ([`topic`], [`ids`]), envelope headers
//! ([`headers`]), RDF terms in both wire forms ([`rdf`]), the closed list of errors ([`error`]), the
//! table of processors ([`processors`]), the table of sizes ([`limits`]) and the codec ([`codec`]).
//!
//! This crate performs no I/O and knows no async runtime.

pub mod codec;
pub mod error;
pub mod headers;
pub mod ids;
pub mod limits;
pub mod msg;
pub mod processors;
pub mod rdf;
pub mod reply;
pub mod table;
pub mod topic;

pub use error::{Error, ErrorCode};
pub use headers::{Frame, Headers};
pub use ids::{FlowId, WorkspaceId};
pub use rdf::{Term, Triple};
pub use reply::Reply;
pub use topic::{Class, Subscription, Topic};

/// A message body: a serde type with a stable name that selects its Avro schema.
pub trait Message:
    Clone + serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static
{
    /// The name of the record, as in `avro/<NAME>.avsc`.
    const NAME: &'static str;
    /// The Avro schema of the record as JSON text.
    const AVRO: &'static str;

    /// Reads a message whose fields travel in the headers, beside a body that is something else. `None` where
    /// the body is the message, as almost always.
    fn beside(_headers: &Headers, _body: &bytes::Bytes) -> Option<Result<Self, codec::CodecError>> {
        None
    }
}
