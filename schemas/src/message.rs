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
    /// Whether it waits in queues, as a record of the pipeline or a dead letter, so that Avro is read and written at once. Of what is
    /// only asked and answered that goes by way of JSON: code for each type and each form is what most of the program is.
    const RECORD: bool = false;

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
