//! What can go wrong with a record, and what becomes of it: what may pass by itself is tried again, all else waits for
//! people to look at.

use std::fmt;
use std::panic::resume_unwind;

use tg_document::kind::Refusal;
use tg_document::text::NoText;
use tg_mesh::ConsumeError;
use tg_schemas::{BAD_CONTENT, Error, ErrorCode};
use tokio::task::JoinError;

use crate::decode::{DecodeError, Format};
use crate::engine::chunks::CuttingError;

/// Most bad pages that an error names.
const NAMED: usize = 20;

/// A record that was not processed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IngestError {
    /// The flow's parameters say how to cut text, and not well.
    #[error(transparent)]
    Cutting(#[from] CuttingError),
    /// The record has neither content, in this field, nor a document's name.
    #[error("{0}: is required where no document is named")]
    Unnamed(&'static str),
    /// A document will never be read.
    #[error("document '{id}' {why}")]
    Unreadable {
        /// Which.
        id: String,
        /// Why.
        why: Unreadable,
    },
    /// No process that takes documents apart can be started.
    #[error("documents cannot be read at the moment")]
    NoReader,
    /// A process that takes documents apart came without its pipes.
    #[error("a document reader has no standard input or output")]
    NoPipes,
    /// The service is stopping.
    #[error("stopping")]
    Stopping,
    /// Another service that had to be asked about a document.
    #[error("document '{id}': {}", .error.message)]
    Asked {
        /// Which.
        id: String,
        /// What it said.
        error: Error,
    },
}

/// Why a document will never be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// There is nothing in it.
    Empty,
    /// There is no text in it.
    NoText,
    /// It came in a record, as something that is not base64.
    NotBase64,
    /// It is of no kind that is read.
    Kind(Refusal),
    /// It is not the text that it seems to be.
    Text(NoText),
    /// It could not be taken apart.
    Decode(DecodeError),
    /// It took too long after this page.
    After(u32),
    /// It killed the process that takes such documents apart, most likely for memory.
    Killed {
        /// Which decoder that was.
        decoder: Format,
        /// The last page that it read; 0: none.
        after: u32,
    },
    /// These pages could not be read, or not all that is on them; the others were.
    Pages {
        /// Not at all.
        bad: Vec<u32>,
        /// In part.
        partly: Vec<u32>,
    },
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::NoText => f.write_str("has no text"),
            Self::NotBase64 => f.write_str("is not base64"),
            Self::Kind(why) => why.fmt(f),
            Self::Text(why) => why.fmt(f),
            Self::Decode(why) => why.fmt(f),
            Self::After(page) => write!(f, "could be read only up to page {page}"),
            Self::Killed { decoder, after } => {
                let (why, decoder) = (DecodeError::Died, decoder.name());
                write!(f, "{why}: the {decoder} decoder was killed")?;
                match after {
                    0 => Ok(()),
                    page => write!(f, " after page {page}; all before was processed"),
                }
            }
            Self::Pages { bad, partly } => {
                let mut told = Vec::new();
                if !bad.is_empty() {
                    told.push(format!("has pages that cannot be read: {}", named(bad)));
                }
                if !partly.is_empty() {
                    told.push(format!(
                        "has text that cannot be read on these pages: {}",
                        named(partly)
                    ));
                }
                write!(f, "{}; all else was processed", told.join("; "))
            }
        }
    }
}

/// Numbers of pages, up to a bound.
fn named(pages: &[u32]) -> String {
    let named: Vec<String> = pages.iter().take(NAMED).map(u32::to_string).collect();
    let named = named.join(", ");
    match pages.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

impl From<Refusal> for Unreadable {
    fn from(why: Refusal) -> Self {
        Self::Kind(why)
    }
}

impl From<NoText> for Unreadable {
    fn from(why: NoText) -> Self {
        Self::Text(why)
    }
}

impl From<DecodeError> for Unreadable {
    fn from(why: DecodeError) -> Self {
        Self::Decode(why)
    }
}

impl IngestError {
    /// A document will never be read.
    pub(crate) fn unreadable(document: &str, why: impl Into<Unreadable>) -> Self {
        Self::Unreadable {
            id: document.to_owned(),
            why: why.into(),
        }
    }

    /// What another service said of a document.
    pub(crate) fn asked(document: &str, error: Error) -> Self {
        Self::Asked {
            id: document.to_owned(),
            error,
        }
    }
}

impl From<IngestError> for ConsumeError {
    fn from(error: IngestError) -> Self {
        let text = error.to_string();
        match error {
            IngestError::Asked { error, .. } => match Self::from(error) {
                Self::Dead(error) => Self::Dead(Error {
                    message: text,
                    ..error
                }),
                retry => retry,
            },
            error => Self::from(Error::from(error)),
        }
    }
}

impl From<IngestError> for Error {
    fn from(error: IngestError) -> Self {
        let text = error.to_string();
        let code = match error {
            IngestError::Asked { error, .. } => return error,
            IngestError::Unreadable { .. } => return Self::typed(BAD_CONTENT, text),
            IngestError::Cutting(_) | IngestError::Unnamed(_) => ErrorCode::BadRequest,
            IngestError::NoReader | IngestError::Stopping => ErrorCode::Unavailable,
            IngestError::NoPipes => ErrorCode::Internal,
        };
        Self::new(code, text)
    }
}

/// Why work on another thread has no result: the runtime stops. A panic there is one of the handler, or its record would be tried
/// again and again.
pub(crate) fn unfinished(error: JoinError) -> IngestError {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => IngestError::Stopping,
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[tokio::test]
    async fn a_panic_on_another_thread_is_one_of_the_handler() {
        let panics: fn() = || panic!("at a text");
        let work = tokio::task::spawn_blocking(panics);
        let error = work.await.unwrap_err();
        assert!(catch_unwind(AssertUnwindSafe(|| unfinished(error))).is_err());
        let work = tokio::spawn(std::future::pending::<()>());
        work.abort();
        let error = work.await.unwrap_err();
        assert_eq!(unfinished(error), IngestError::Stopping);
    }

    #[test]
    fn bad_pages_are_named_up_to_a_bound() {
        let told = |bad, partly| Unreadable::Pages { bad, partly }.to_string();
        assert_eq!(
            told(vec![3, 7], vec![]),
            "has pages that cannot be read: 3, 7; all else was processed"
        );
        let many: Vec<u32> = (1..=50).collect();
        assert!(told(many, vec![]).contains("19, 20 and 30 more;"));
        assert_eq!(
            told(vec![], vec![34]),
            "has text that cannot be read on these pages: 34; all else was processed"
        );
    }

    #[test]
    fn what_passes_by_itself_is_tried_again_and_all_else_names_its_document() {
        let busy = Error::new(ErrorCode::Busy, "later");
        let retried = ConsumeError::from(IngestError::asked("d", busy.clone()));
        assert!(matches!(retried, ConsumeError::Retry { error, .. } if error == busy));
        let gone = Error::new(ErrorCode::NotFound, "is not there");
        let dead = ConsumeError::from(IngestError::asked("d", gone));
        assert!(
            matches!(&dead, ConsumeError::Dead(error) if error.message == "document 'd': is not there"
                && error.code() == ErrorCode::NotFound)
        );
        let dead = ConsumeError::from(IngestError::unreadable("d", Unreadable::Empty));
        assert!(
            matches!(&dead, ConsumeError::Dead(error) if error.message == "document 'd' is empty"
                && error.code() == ErrorCode::BadRequest && error.kind == BAD_CONTENT)
        );
    }
}
