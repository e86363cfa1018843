//! Whole runs on the embedded bus, with everything the agent asks played by the test.

mod dialog;
mod endings;
mod repeats;
mod world;
