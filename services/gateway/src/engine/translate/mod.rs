//! API JSON to bus messages and back: one file per service, pure functions only.
//!
//! A translator never asks anybody anything, never sees a credential and never writes an error text that
//! is not about a field of the request.

pub mod agent;
pub mod answered;
pub mod audit;
mod base64;
pub mod bulk;
pub mod chat;
pub mod collection;
pub mod completion;
pub mod config;
pub mod embeddings;
pub mod fields;
pub mod flow;
pub mod generic;
pub mod iam;
pub mod image;
pub mod knowledge;
pub mod librarian;
pub mod load;
pub mod looked;
pub mod operations;
pub mod part_body;
pub mod passthrough;
pub mod prompt;
pub mod rag;
pub mod reranker;
mod results;
pub mod rows;
mod secrets;
pub mod sparql;
pub mod structured;
pub mod threads;
pub mod tool;
pub mod traces;
pub mod triples;
pub mod usage;
pub mod vectors;
pub mod violations;

use serde_json::json;
use tg_schemas::{Error, Message, Reply};

pub use fields::{Body, Fields};
pub use looked::Looked;
pub use part_body::PartBody;

/// The field by which a caller who may see secrets asks not to be shown them.
pub const MASKED: &str = "masked";

/// What a translator may know beside the body.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// The operation, for services that have several.
    pub operation: String,
    /// Id of the authenticated caller.
    pub actor: String,
    /// What the caller came with, by a name that opens nothing.
    pub credential: String,
    /// Address of whoever is connected, for the audit.
    pub address: String,
    /// Id of the request.
    pub request_id: String,
    /// A loopback address, if it is a program on the gateway's own machine that asks.
    pub client_ip: String,
    /// The flow, for kinds of flow services.
    pub flow: String,
    /// The kind of flow service whose messages are spoken.
    pub kind: &'static str,
    /// The caller wants one whole answer: neither pieces nor what is said on the way.
    pub whole: bool,
    /// The caller wants what explains an answer: it streams, or says so.
    pub explained: bool,
    /// Whoever asks runs the system: an error may say where a provider is.
    pub operator: bool,
    /// Seconds that a run waits for its caller when that is gone; 0: for nobody.
    pub grace: i64,
    /// The caller may not see what is secret in the rows of the configuration.
    pub masked: bool,
    /// Tools that agents use for the caller without asking first, by what it came with.
    pub granted: Vec<String>,
    /// The gateway wrote the body: no key of it is a client's.
    pub translated: bool,
}

/// The two directions of one service.
pub trait Translate: 'static {
    /// What is asked on the bus.
    type Question: Message;
    /// What comes back.
    type Answer: Reply;

    /// Body to question.
    ///
    /// # Errors
    /// `bad-request`, with the field that this kind does not take so. Nothing is asked.
    fn question(body: &Fields<'_>, about: &About) -> Result<Self::Question, Error>;

    /// A part of the answer, which carries no error, as the client sees it.
    fn part(part: Self::Answer, about: &About) -> Body;

    /// The same, of which nobody needs a tree yet.
    fn part_body(part: Self::Answer, about: &About) -> PartBody {
        Self::part(part, about).into()
    }

    /// Whether a part, which carries no error, is not for this caller.
    fn is_aside(_part: &Self::Answer, _about: &About) -> bool {
        false
    }

    /// A part that carries an error, already fit for clients, as the client sees it.
    fn failure(error: &Error, _part: Self::Answer) -> Body {
        error_body(error)
    }
}

/// `{"error": {"type", "message"}}`.
pub fn error_body(error: &Error) -> Body {
    let mut body = Body::new();
    body.insert("error".to_owned(), error_value(error));
    body
}

/// `{"type", "message"}`.
pub fn error_value(error: &Error) -> serde_json::Value {
    json!({"type": error.kind, "message": error.message})
}

#[cfg(test)]
pub(crate) mod testing {
    //! Shorthands for translator tests.

    use super::*;

    /// Translates a JSON literal.
    pub(crate) fn question<T: Translate>(
        body: serde_json::Value,
        operation: &str,
    ) -> Result<T::Question, Error> {
        let about = About {
            operation: operation.to_owned(),
            actor: "caller".to_owned(),
            ..About::default()
        };
        let body = body.as_object().cloned().unwrap_or_default();
        T::question(&Fields::new(&body), &about)
    }

    /// Translates one part.
    pub(crate) fn part<T: Translate>(part: T::Answer, operation: &str) -> serde_json::Value {
        let about = About {
            operation: operation.to_owned(),
            ..About::default()
        };
        serde_json::Value::Object(T::part(part, &about))
    }
}
