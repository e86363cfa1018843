//! Places for what takes long: hashing of passwords, commits, what is asked of others, pages. What every gateway asks at each
//! request is answered from memory and takes none, so it never waits for one and is never refused for want of one. Who is not known
//! yet has places of their own, and of one network a part of them: strangers take none of those who are known.

use std::sync::Arc;

use tg_schemas::{Error, ErrorCode};

use crate::engine;
use crate::shares::{Share, Shares};

/// Operations of those who are known that take long at once. More are told to come again.
pub(crate) const LONG: usize = 512;
/// The same of those who are not known yet, and of one network.
pub(crate) const STRANGERS: usize = 128;
const OF_NETWORK: usize = STRANGERS / 2;

/// By which somebody comes in.
const COMING_IN: [&str; 3] = ["login", "bootstrap", "bootstrap-status"];

/// A place, as long as it is held.
pub(crate) type Place = Arc<Share>;

/// The places of this process.
#[derive(Debug)]
pub(crate) struct Places {
    known: Shares,
    strangers: Shares,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            known: Shares::new(LONG, LONG),
            strangers: Shares::new(STRANGERS, OF_NETWORK),
        }
    }
}

impl Places {
    /// A place for an operation, asked for from an address if that is known; `None` where it needs none.
    ///
    /// # Errors
    /// `busy` when all are taken.
    pub(crate) fn of(&self, operation: &str, address: &str) -> Result<Option<Place>, Error> {
        if engine::is_check(operation) {
            return Ok(None);
        }
        let place = match COMING_IN.contains(&operation) {
            true => self.strangers.enter(address).ok_or_else(too_many_logins),
            // Who they are counts, and that the gateway does.
            false => self.known.enter("").ok_or_else(busy),
        };
        place.map(|place| Some(Arc::new(place)))
    }
}

fn too_many_logins() -> Error {
    let text = "too many logins in progress, try again in 2 seconds";
    Error::new(ErrorCode::Busy, text)
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
            .map(|_| places.of("create-user", "").unwrap().unwrap())
            .collect();
        for check in ["resolve-api-key", "resolve-token", "authorise-many"] {
            assert!(places.of(check, "").unwrap().is_none(), "{check}");
        }
        for long in ["create-user", "list-users", "unknown"] {
            let refused = places.of(long, "").unwrap_err();
            assert_eq!(refused.code(), ErrorCode::Busy);
        }
        assert!(places.of("login", "").unwrap().is_some());
        drop(held);
        assert!(places.of("create-user", "").unwrap().is_some());
    }

    #[test]
    fn strangers_take_no_place_of_others_and_no_network_all_of_theirs() {
        let places = Places::default();
        let login = |from: &str| places.of("login", from);
        let mut held = Vec::new();
        while let Ok(place) = login("10.0.0.1") {
            held.push(place);
        }
        assert_eq!(held.len(), OF_NETWORK);
        let refused = login("10.0.0.1").unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Busy);
        assert!(refused.message.contains("in 2 seconds"), "{refused}");
        for other in 0..(STRANGERS - OF_NETWORK) {
            held.push(login(&format!("10.0.1.{other}")).unwrap());
        }
        login("10.0.2.1").unwrap_err();
        let known = places.of("create-user", "10.0.0.1").unwrap();
        assert!(known.is_some());
    }
}
