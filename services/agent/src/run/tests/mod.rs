//! Whole runs on the embedded bus, with everything the agent asks played by the test.

mod budgets;
mod compacted;
mod costs;
mod delegated;
mod dialog;
mod discovered;
mod dispatched;
mod endings;
mod graph;
mod hooked;
mod joined;
mod loops;
mod pictures;
mod planned;
mod polled;
mod recorded;
mod repeats;
mod replayed;
mod retrieval;
mod routed;
mod services;
mod supervised;
mod tasks;
mod thinking;
mod together;
mod world;
