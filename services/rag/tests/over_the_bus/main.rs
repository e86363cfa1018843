//! The processors as others meet them, with everybody else played by fakes that count what they are asked.

mod documents;
mod graph;
mod graphs;
mod rows;
mod services;
mod world;
