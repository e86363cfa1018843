//! Why a body cannot be read.

use crate::error::{Error, ErrorCode};

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The body is not what its content type says, or lacks the expected shape.
    #[error("malformed {name}: {detail}")]
    Malformed {
        /// Record name.
        name: &'static str,
        /// Position and cause.
        detail: String,
    },
    /// The body holds several messages, none of them of this type.
    #[error("no {name} among the messages of the body")]
    NoSection {
        /// Record name.
        name: &'static str,
    },
    /// Avro written with a schema that is not known here (yet): worth a retry.
    #[error("unknown schema {fingerprint} for {name}")]
    UnknownSchema {
        /// Record name.
        name: &'static str,
        /// Fingerprint of the writer's schema, 16 hex digits.
        fingerprint: String,
    },
}

impl From<CodecError> for Error {
    fn from(fault: CodecError) -> Self {
        Error::new(ErrorCode::BadRequest, fault.to_string())
    }
}
