//! The gateway: REST and WebSocket endpoints onto the mesh.
//!
//! A request walks one way through every endpoint: parse → authenticate → authorise → resolve workspace and
//! flow → ask on the bus → stream the parts back ([`dispatch`]). Endpoints ([`endpoints`]) know HTTP and nothing
//! of the bus; translators ([`translate`]) know both vocabularies and do no I/O; the table in
//! [`registry`] says which operation needs which capability.
//!
//! The gateway keeps nothing, and no text it sends names a queue, a host, a path or another tenant.

mod ask;
mod auth;
mod budget;
mod connection;
#[cfg(test)]
mod contract_tests;
mod cores;
mod detached;
mod dispatch;
mod endpoints;
mod fair;
mod fault;
mod flows;
mod inflight;
mod listener;
mod options;
mod processors;
mod registry;
mod routes;
mod running;
mod scrub;
mod seldom;
mod server;
mod state;
mod strangers;
pub mod translate;
mod wire;

pub use options::{AuthMode, GatewayError, GatewayOptions, Limits, OnDisconnect};
pub use processors::processors;
pub use routes::{ROUTES, Route};
pub use server::{GatewayHandle, serve};
