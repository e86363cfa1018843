//! Who may do what: the first key, workspaces, API keys.

pub mod api_keys;
pub mod bootstrap;
pub mod login;
pub mod whoami;
pub mod workspaces;
