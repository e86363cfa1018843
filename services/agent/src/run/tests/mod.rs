//! Whole runs on the embedded bus, with everything the agent asks played by the test.

mod dialog;
mod endings;
mod graph;
mod recorded;
mod repeats;
mod retrieval;
mod world;
