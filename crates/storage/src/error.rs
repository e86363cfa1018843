//! The one error of this crate. Its `Display` is for logs; the conversion to the contract's error is
//! for clients and holds no path, statement or file name.

use rusqlite::ffi;
use tg_schemas::{Error, ErrorCode};

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// No space left. Nothing of the write was kept.
    #[error("the disk is full")]
    Full,
    /// Another process owns the store.
    #[error("the store is in use by another process")]
    InUse,
    /// The file is damaged or is no database.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// A newer release wrote the file.
    #[error("the store was written by a newer release (version {found}, known up to {known})")]
    TooNew {
        /// Version in the file.
        found: i64,
        /// Newest version this release knows.
        known: i64,
    },
    /// The file system refused.
    #[error("the file system refused: {0}")]
    Io(String),
    /// What was to be kept contradicts what is kept.
    #[error("a constraint was broken: {0}")]
    Constraint(String),
    /// The store failed otherwise.
    #[error("the store failed: {0}")]
    Failed(String),
    /// What was to be read or changed is not there.
    #[error("not found")]
    Missing,
    /// The caller's own rule said no inside a write; everything of that write is undone.
    #[error("{0}")]
    Refused(Error),
    /// Nobody waited for the read any more, so it was ended.
    #[error("the read was interrupted")]
    Interrupted,
    /// The work given to the store panicked; everything of that write is undone.
    #[error("the work given to the store panicked")]
    Panicked,
    /// The store is closing.
    #[error("the store is closed")]
    Closed,
}

impl StorageError {
    /// The code that clients see.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(error) => error.code(),
            Self::InUse | Self::Closed => ErrorCode::Unavailable,
            Self::Missing => ErrorCode::NotFound,
            Self::Interrupted => ErrorCode::Cancelled,
            Self::Panicked => ErrorCode::Internal,
            _ => ErrorCode::Storage,
        }
    }

    /// From the file system.
    pub fn from_io(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Io(error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for StorageError {
    fn from(error: rusqlite::Error) -> Self {
        let code = match &error {
            rusqlite::Error::QueryReturnedNoRows => return Self::Missing,
            rusqlite::Error::SqliteFailure(code, _) => code.extended_code,
            // A column does not hold what was written to it.
            rusqlite::Error::FromSqlConversionFailure(..) => {
                return Self::Corrupt(error.to_string());
            }
            _ => return Self::Failed(error.to_string()),
        };
        if code == ffi::SQLITE_IOERR_SHMSIZE {
            return Self::Full;
        }
        match code & 0xff {
            ffi::SQLITE_FULL => Self::Full,
            ffi::SQLITE_INTERRUPT => Self::Interrupted,
            ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => Self::Corrupt(error.to_string()),
            ffi::SQLITE_CONSTRAINT => Self::Constraint(error.to_string()),
            ffi::SQLITE_IOERR | ffi::SQLITE_CANTOPEN | ffi::SQLITE_READONLY => {
                Self::Io(error.to_string())
            }
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        let code = error.code();
        // What is answered says no more than that: it would tell of files. The cause is for whoever runs the store.
        if let StorageError::Io(cause)
        | StorageError::Failed(cause)
        | StorageError::Constraint(cause)
        | StorageError::Corrupt(cause) = &error
        {
            tracing::warn!(%cause, "a store failed");
        }
        let text = match error {
            StorageError::Refused(inner) => return inner,
            StorageError::Full => "the store's disk is full; nothing was written",
            StorageError::InUse => "the store is in use by another process",
            StorageError::Corrupt(_) => "the store is damaged",
            StorageError::TooNew { .. } => "the store was written by a newer release",
            StorageError::Closed => "the store is closing",
            StorageError::Missing => "not found",
            StorageError::Interrupted => "cancelled",
            StorageError::Panicked => "an internal error",
            StorageError::Io(_) | StorageError::Failed(_) | StorageError::Constraint(_) => {
                "the store failed"
            }
        };
        Error::new(code, text)
    }
}
