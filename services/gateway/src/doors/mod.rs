//! The doors: HTTP routes and sockets. Each reads a request, hands it to the dispatcher and writes what
//! comes back. Doors decide nothing.

pub(crate) mod auth;
pub(crate) mod bulk;
pub(crate) mod cores;
pub(crate) mod documents;
pub(crate) mod edge;
mod export;
pub(crate) mod flow_service;
pub(crate) mod health;
pub(crate) mod i18n;
mod import;
mod intake;
pub(crate) mod metrics;
mod ndjson;
mod promql;
mod read;
pub(crate) mod service;
pub(crate) mod socket;
pub(crate) mod socket_frame;
mod sse;
mod whole;
