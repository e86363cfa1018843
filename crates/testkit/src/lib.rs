//! For tests only: a private RabbitMQ node, a scripted model server, the built binaries as processes, PDFs, a bus
//! that misbehaves on purpose, and a flow on either bus for one service.

pub mod bench;
pub mod bus;
pub mod certificates;
pub mod chance;
pub mod config;
pub mod fakes;
pub mod faults;
pub mod flow;
pub mod fuzz;
pub mod json_server;
pub mod machine;
pub mod mcp;
pub mod model;
pub mod model_router;
mod noted;
pub mod official;
pub mod otlp;
pub mod outside;
pub mod pdf;
pub mod place;
pub mod process;
pub mod rabbitmq;
pub mod services;
pub mod shared_node;
pub mod shared_system;
pub mod socket;
mod started;
pub mod topology;
