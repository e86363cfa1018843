//! Rules over plain values: what files say of agents, what requests say, what an agent reads of a session. Pure.

pub mod agent_file;
pub mod catalogue;
pub mod chat;
pub mod cost;
pub mod cursor;
pub mod definition;
pub mod llm_service;
pub mod memory;
pub mod request;
pub mod reranking_service;
pub mod retrieval;
pub mod service_kind;
pub mod summing;
pub mod templates;
pub mod tenant;
pub mod trail_line;
pub mod transcript;
pub mod workspace_agent;
