//! Agents and sessions over the bus, with an agent that the test plays. The numbers are those of the contract's acceptance table.

mod access;
mod agents;
mod announced;
mod around;
mod bounds;
mod chat_defaults;
mod compaction;
mod conversations;
mod documents;
mod in_place;
mod llm_services;
mod memory;
mod repeated;
mod reranking_services;
mod retrieval;
mod sessions;
mod streams;
mod tenant;
mod trail;
mod turns;
mod warnings;
mod workspace_agents;
mod world;
