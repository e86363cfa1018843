//! The gateway from outside: HTTP and WebSocket clients against a mesh in this process, whose services
//! are fakes hosted here.

mod access;
mod agents;
mod audit;
mod bulk;
mod conformance;
mod cores;
mod cors;
mod dialects;
mod disk;
mod exports;
mod fakes;
mod flows;
mod forms;
mod imports;
mod langgraph;
mod leaks;
mod mcp;
mod observe;
mod offered;
mod openai;
mod operations;
mod pace;
mod played_sessions;
mod rag;
mod receiving;
mod rejoined;
mod responses;
mod rest;
mod runs;
mod sending;
mod settled;
mod socket;
mod tls;
mod workspaces;
mod world;
