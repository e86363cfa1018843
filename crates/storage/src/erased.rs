//! What callers give to a store, without the type of what it returns: to queue it, to run it and to wait for it is compiled once and not
//! for each of them.

use std::any::Any;

use rusqlite::{Connection, Transaction};

use crate::StorageError;

/// What came of a read or a write.
pub(crate) type Done = Result<Box<dyn Any + Send>, StorageError>;
/// Runs in a transaction.
pub(crate) type Writing = Box<dyn FnOnce(&Transaction<'_>) -> Done + Send>;
/// Reads one consistent state.
pub(crate) type Reading = Box<dyn FnOnce(&Connection) -> Done + Send>;

pub(crate) fn writing<T: Send + 'static>(
    f: impl FnOnce(&Transaction<'_>) -> Result<T, StorageError> + Send + 'static,
) -> Writing {
    Box::new(move |tx| done(f(tx)))
}

pub(crate) fn reading<T: Send + 'static>(
    f: impl FnOnce(&Connection) -> Result<T, StorageError> + Send + 'static,
) -> Reading {
    Box::new(move |conn| done(f(conn)))
}

fn done<T: Send + 'static>(result: Result<T, StorageError>) -> Done {
    match result {
        Ok(value) => Ok(Box::new(value)),
        Err(error) => Err(error),
    }
}

/// The value, whose type the caller knows: it gave the closure.
pub(crate) fn value<T: 'static>(done: Done) -> Result<T, StorageError> {
    match done?.downcast::<T>() {
        Ok(value) => Ok(*value),
        Err(_) => Err(StorageError::Failed("a value of another type".into())),
    }
}
