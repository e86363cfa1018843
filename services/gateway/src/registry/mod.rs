//! The table of what can be asked through the gateway, and which capability it takes.
//!
//! What is not in the table does not exist for clients.

mod bulk;
mod flow_services;
mod gate;
mod services;
mod unknown;

pub(crate) use bulk::{EXPORTS, IMPORTS, bulk};
#[cfg(test)]
pub(crate) use flow_services::all_kinds;
pub(crate) use flow_services::{Kind, THRU, flow_kind, is_thru, takes_raw, thru_gate};
pub(crate) use gate::Gate;
pub(crate) use services::{
    ANSWERS, EXPAND, Home, REMAKE, REPLAY, REQUESTS, Service, asks_models, gate_of, is_for_all,
    service,
};
#[cfg(test)]
pub(crate) use services::{SESSIONS, all_operations, all_services};
pub(crate) use unknown::Unknown;
