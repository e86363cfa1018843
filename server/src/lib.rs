//! Composes services into a process: all of them on an embedded bus (`up`), or some over a broker (`serve`).
//!
//! The only crate that knows every service. It holds no logic of its own beyond settings, wiring, the
//! first-start greeting and an orderly stop.

pub mod backup;
mod broker;
pub mod compose;
pub mod deployed;
mod disk;
pub mod greeting;
mod guarded;
pub mod health;
pub mod logs;
pub mod machine;
pub mod metrics;
pub mod permissions;
pub mod process;
pub mod seed;
pub mod settings;
mod signals;
mod telemetry;

/// Subcommand under which this program takes one document apart, in a process of its own.
pub const DECODE: &str = "decode-document";
