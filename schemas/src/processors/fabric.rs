//! What the fabric itself asks and writes, by the part it plays there: the storeys that host services know none by
//! name, and a part that moves to another service moves here.

use super::{config_svc, flow_svc, librarian};
use crate::topic::{Class, Subscription, Topic};

/// Where the configuration is asked.
pub fn configuration() -> Topic {
    config_svc::CONFIG.of_system()
}

/// Where changes of the configuration are told.
pub fn configuration_notices() -> Topic {
    Topic::system(Class::Notify, "config")
}

/// The queue of records that nobody could handle, of its one reader.
pub fn dead_letters() -> Subscription {
    Subscription::service(flow_svc::DEAD_LETTERS.of_system(), flow_svc::PROCESSOR.id)
}

/// The queue of reports of handled records, of its one reader.
pub fn completion_reports() -> Subscription {
    Subscription::service(librarian::RUN_TALLY.of_system(), librarian::PROCESSOR.id)
}
