//! Identity, API keys, workspaces and authorisation.
//!
//! * `engine`: users, keys, workspaces and roles in memory, and what each operation does to them. Pure.
//! * `store`: the same on disk, one SQLite file.
//! * `service`: reads from memory; changes to disk, then memory, one at a time.
//! * `anonymous`: what the regime without users answers.
//! * `handler`: the door `request:tg:iam`; `remote` asks the config and flow services.
//!
//! Which operation needs which capability is the gateway's table; which role has which capability is
//! ours. Passwords, logins, tokens, groups and grants are not here yet and say so. No key is kept, logged
//! or shown again: only its hash is stored.

mod anonymous;
mod bootstrap_code;
mod engine;
mod handler;
mod processor;
mod remote;
mod secret;
mod service;
mod store;

pub use bootstrap_code::{bootstrap_code, bootstrap_code_file};
pub use engine::{ROLES, Role, RoleScope};
pub use processor::{PROCESSOR, Regime, processors};
pub use secret::ApiKey;
