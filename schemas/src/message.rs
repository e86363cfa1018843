//! What every message body is: a serde type that knows its Avro schema.

use crate::codec::CodecError;
use crate::headers::Headers;

/// A message body: a serde type with a stable name that selects its Avro schema.
pub trait Message:
    Clone + serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static
{
    /// The name of the record, as in `avro/<NAME>.avsc`.
    const NAME: &'static str;
    /// The Avro schema of the record as JSON text.
    const AVRO: &'static str;

    /// The collection that a record of the pipeline is for; `None` for every other message.
    fn for_collection(&self) -> Option<&str> {
        None
    }

    /// Reads a message whose fields travel in the headers, beside a body that is something else. `None` where
    /// the body is the message, as almost always.
    fn beside(_headers: &Headers, _body: &bytes::Bytes) -> Option<Result<Self, CodecError>> {
        None
    }
}
