//! The gateway: REST and WebSocket endpoints onto the mesh.
//!
//! A request walks one way through every endpoint: parse → authenticate → authorise → resolve workspace and
//! flow (`admission`) → ask on the bus → stream the parts back (`dispatch`). Its handlers (`handlers`) serve endpoints instead of
//! queues: they know HTTP and nothing of the bus. Translators ([`engine::translate`]) know both vocabularies and do no
//! I/O; the table in `registry` says which operation needs which capability.
//!
//! The gateway keeps nothing, except for an hour what detached requests sent (`kept`), which it also sends to other gateways that
//! ask for it (`kept_for_others`). No text it sends names a queue, a host, a path or another tenant.

mod admission;
mod ask;
mod audit;
mod auth;
mod budget;
mod call;
mod calls;
mod certificate;
mod codes;
mod connection;
#[cfg(test)]
mod contract_tests;
mod cores;
mod detached;
mod dispatch;
mod engine;
mod error;
mod exposition;
mod flow_model;
mod flows;
mod giving_way;
mod handlers;
mod handshake;
mod iam_call;
mod inflight;
mod joining;
mod judge;
mod judging;
mod kept;
mod kept_elsewhere;
mod kept_for_others;
mod kept_parts;
mod levels;
mod listener;
mod offers;
mod opened;
mod options;
mod pace;
mod paths;
mod patience;
mod processors;
mod receipts;
mod received;
mod registry;
mod rejoin;
mod routes;
mod running;
mod scraped;
mod seldom;
mod sending;
mod server;
mod sight;
mod slow_body;
mod spelling;
mod stands;
mod state;
mod strangers;
mod summaries;
mod tasks;
mod trail;
mod turns;
mod wire;

pub use engine::translate;
pub use error::GatewayError;
pub use exposition::Exposition;
#[doc(hidden)]
pub use offers::{Client, Offers};
pub use options::{AuthMode, GatewayOptions, Settings};
pub use processors::processors;
pub use routes::{ROUTES, Route};
pub use scraped::{Readiness, serve_metrics, serve_report};
pub use server::{GatewayHandle, has_page, serve};
