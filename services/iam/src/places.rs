//! Places for what takes long: hashing of passwords, commits, what is asked of others, pages. What every gateway asks at each
//! request is answered from memory and takes none, so it never waits for one and is never refused for want of one.

use std::sync::Arc;

use tg_schemas::{Error, ErrorCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::engine;

/// Operations that take long at once. More are told to come again.
pub(crate) const LONG: usize = 512;

/// A place, as long as it is held.
pub(crate) type Place = Arc<OwnedSemaphorePermit>;

/// The places of this process.
#[derive(Debug)]
pub(crate) struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LONG)))
    }
}

impl Places {
    /// A place for an operation; `None` where it needs none.
    ///
    /// # Errors
    /// `busy` when all are taken.
    pub(crate) fn of(&self, operation: &str) -> Result<Option<Place>, Error> {
        if engine::is_check(operation) {
            return Ok(None);
        }
        let place = self.0.clone().try_acquire_owned();
        place.map(|place| Some(Arc::new(place))).map_err(|_| busy())
    }
}

fn busy() -> Error {
    let text = "too many changes and listings in progress, try again later";
    Error::new(ErrorCode::Busy, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_need_no_place_and_others_take_one_each() {
        let places = Places::default();
        let held: Vec<_> = (0..LONG)
            .map(|_| places.of("login").unwrap().unwrap())
            .collect();
        for check in ["resolve-api-key", "resolve-token", "authorise-many"] {
            assert!(places.of(check).unwrap().is_none(), "{check}");
        }
        for long in ["create-user", "list-users", "login", "unknown"] {
            assert_eq!(places.of(long).unwrap_err().code(), ErrorCode::Busy);
        }
        drop(held);
        assert!(places.of("create-user").unwrap().is_some());
    }
}
