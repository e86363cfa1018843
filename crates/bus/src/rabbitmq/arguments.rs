//! The arguments of what is declared on the broker. Foreign processors declare the same queues and exchanges without
//! any, and the broker refuses a second declaration that differs; so only queues of one process have arguments. Quorum
//! queues are the exception, which a setting asks for: no foreign processor can declare them.

use lapin::types::{AMQPValue, FieldTable};

use super::options::RecordQueues;

/// An inbox outlives its process by this, so that answers survive a reconnect.
const INBOX_EXPIRES_MS: i32 = 60_000;

/// What is shared has none.
pub(super) fn none() -> FieldTable {
    FieldTable::default()
}

/// Queues of records. How often a record may be handed out is not bounded: from 4.0 on a broker would throw it away after
/// twenty times.
pub(super) fn records(queues: RecordQueues) -> FieldTable {
    match queues {
        RecordQueues::Classic => none(),
        RecordQueues::Quorum => {
            let mut arguments = one("x-delivery-limit", i32::MAX);
            let kind = AMQPValue::LongString("quorum".into());
            arguments.insert("x-queue-type".into(), kind);
            arguments
        }
    }
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
