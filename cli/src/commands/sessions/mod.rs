//! Agents over time: who they are, and sessions with them.

pub mod agents;
pub mod listed;
mod pages;
pub mod talk;

use clap::Args;

/// Whose sessions are meant.
#[derive(Debug, Clone, Args)]
pub struct Whose {
    /// User whose sessions are meant
    #[arg(long, default_value = "tg", value_name = "ID")]
    pub user_id: String,
}
