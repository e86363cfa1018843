//! The arguments of what is declared on the broker. Foreign processors declare the same queues and exchanges without
//! any, and the broker refuses a second declaration that differs; so only queues of one process have arguments.

use lapin::types::{AMQPValue, FieldTable};

/// An inbox outlives its process by this, so that answers survive a reconnect.
const INBOX_EXPIRES_MS: i32 = 60_000;

/// What is shared has none.
pub(super) fn none() -> FieldTable {
    FieldTable::default()
}

/// An inbox goes some time after its process.
pub(super) fn inbox() -> FieldTable {
    one("x-expires", INBOX_EXPIRES_MS)
}

/// The queue that says whether a process is there keeps nothing.
pub(super) fn liveness() -> FieldTable {
    one("x-max-length", 0)
}

fn one(name: &str, value: i32) -> FieldTable {
    let mut arguments = none();
    arguments.insert(name.into(), AMQPValue::LongInt(value));
    arguments
}
