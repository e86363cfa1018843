//! Handlers: one file per endpoint, an HTTP route or a socket, and what they share. Each reads a request, hands it to
//! the dispatcher and writes what comes back. Handlers decide nothing.

pub(crate) mod auth;
pub(crate) mod bulk;
mod caller;
pub(crate) mod compat;
pub(crate) mod cores;
pub(crate) mod counts;
pub(crate) mod documents;
pub(crate) mod edge;
mod export;
pub(crate) mod flow_service;
mod frame_heads;
#[cfg(test)]
mod fuzz;
pub(crate) mod graph_store;
pub(crate) mod health;
mod heart;
pub(crate) mod i18n;
mod import;
mod intake;
pub(crate) mod langgraph;
mod look_ahead;
pub(crate) mod mcp;
mod mcp_answer;
mod mcp_client;
mod mcp_offers;
mod mcp_resources;
pub(crate) mod mcp_target;
pub(crate) mod metrics;
mod narrow;
mod ndjson;
pub(crate) mod operations;
pub(crate) mod page;
pub(crate) mod protected_resource;
mod read;
pub(crate) mod runs;
pub(crate) mod service;
pub(crate) mod socket;
pub(crate) mod socket_frame;
mod socket_task;
mod socket_writer;
pub(crate) mod sparql;
mod sse;
mod stored;
mod upgrade;
mod whole;
pub(crate) mod workspaces;
