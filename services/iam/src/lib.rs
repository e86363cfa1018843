//! Identity, API keys, workspaces and authorisation.
//!
//! * `engine`: users, keys, workspaces and roles in memory, and what each operation does to them. Pure.
//! * `store`: the same where it lasts: a trait, the adapter over SQLite, and the suite that adapters pass.
//! * `cached`: reads from memory; changes to the store, then memory, one at a time.
//! * `handlers`: the queues `request:tg:iam` and `request:tg:audit`; `remote` asks the config and flow services.
//! * `generations`: which generation of its name a workspace is in, and the end of deleted ones.
//! * `revocations`: notifies everybody, after any crash, of what was revoked.
//! * `trail`: what was refused, on its way into the store. What changed is written down with the change.
//!
//! * `login`, `attempts`, `password`: what of passwords takes long, beside the runtime, and how guessing is slowed.
//! * `oidc`: logins by tokens of an external issuer.
//! * `places`: what takes long, so many at once, so that it keeps nobody from being checked. `turns`, `shares`: what of it
//!   one network, name or manager may have.
//!
//! Which operation needs which capability is the gateway's table; which role has which capability is
//! ours. No key or password is kept, logged or shown again: only its hash is stored. What signs tokens never leaves the
//! store but into memory.

mod attempts;
mod bootstrap_code;
mod cached;
mod engine;
mod error;
mod external;
mod generations;
mod handlers;
mod login;
mod oidc;
mod options;
mod password;
mod places;
mod processors;
mod remote;
mod revocations;
mod secret;
mod shares;
mod store;
mod trail;
mod turns;

pub use bootstrap_code::{bootstrap_code, bootstrap_code_file};
pub use engine::{ROLES, Role, RoleScope};
pub use oidc::OidcOptions;
pub use options::{AuthMode, Options};
pub use processors::{LEAST_CONCURRENCY, PROCESSOR, processors};
pub use secret::ApiKey;
pub use store::ONE_WORKSPACE;
