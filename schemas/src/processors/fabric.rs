//! What the fabric itself writes, by the part it plays there: the layers that host services know none by
//! name, and a part that moves to another service moves here.

use super::{flow_svc, librarian};
use crate::topic::Subscription;

/// The queue of records that nobody could handle, of its one reader.
pub fn dead_letters() -> Subscription {
    Subscription::service(flow_svc::DEAD_LETTERS.of_system(), flow_svc::PROCESSOR.id)
}

/// The queue of reports of handled records, of its one reader.
pub fn completion_reports() -> Subscription {
    Subscription::service(librarian::RUN_TALLY.of_system(), librarian::PROCESSOR.id)
}
