//! The `tg` multi-call binary: `tg <command>` and, by the name it is called under, `tg-<command>`.
//!
//! It is a client of the gateway and of nothing else: it never opens a bus, a store or a service.
//! Data goes to stdout, talk to stderr, and the exit code says what went wrong
//! ([`client::Error::exit_code`]). One command is one file under [`commands`], always in the same
//! order: arguments, the call, the rendering.

pub mod about;
pub mod advice;
pub mod args;
pub mod client;
pub mod commands;
pub mod completing;
pub mod content;
pub mod fields;
pub mod files;
pub mod find;
pub mod interrupt;
pub mod layout;
pub mod lines;
pub mod names;
pub mod output;
pub mod profiles;
pub mod registry;
pub mod run;
pub mod session;
pub mod target;
pub mod terminal;

pub use run::main;
