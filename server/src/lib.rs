//! Composes services into a process: all of them on an embedded bus (`up`), or some over a broker (`serve`).
//!
//! The only crate that knows every service. It holds no logic of its own beyond settings, wiring, the
//! first-start greeting and an orderly stop.

pub mod compose;
pub mod greeting;
pub mod machine;
pub mod process;
pub mod seed;
pub mod settings;
pub mod telemetry;

/// Subcommand under which this program takes one document apart, in a process of its own.
pub const DECODE: &str = "decode-document";
