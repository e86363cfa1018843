//! The arguments of what is declared on the broker. Foreign processors declare the same queues and exchanges without
//! any, and the broker refuses a second declaration that differs; so only queues of one process have arguments. There are two
//! exceptions: quorum queues, which a setting asks for and no foreign processor can declare, and queues of questions where all
//! processors are ours.

use lapin::types::{AMQPValue, FieldTable};

use super::options::RecordQueues;

/// An inbox outlives its process by this, so that answers survive a reconnect.
const INBOX_EXPIRES_MS: i32 = 60_000;
/// A durable queue of questions outlives its server by this if the broker stops with it, or if the server ends before it
/// consumes. Longer than a server takes from declaring to consuming; a question may wait in vain for so long.
const QUESTIONS_EXPIRE_MS: i32 = 10_000;

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

/// A durable queue of questions that nobody consumes goes by itself.
pub(super) fn questions() -> FieldTable {
    one("x-expires", QUESTIONS_EXPIRE_MS)
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
