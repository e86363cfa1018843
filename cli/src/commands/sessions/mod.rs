//! Agents over time: who they are, and sessions with them.

pub mod agents;
pub mod call;
pub mod chain;
pub mod documents;
pub mod listed;
pub mod made;
pub mod memory;
mod pages;
pub mod talk;
pub mod tenant;

use clap::Args;
use tg_schemas::operations::OneSession;

use self::agents::Agent;

/// Whose sessions are meant.
#[derive(Debug, Clone, Args)]
pub struct Whose {
    /// User whose sessions are meant
    #[arg(long, default_value = "tg", value_name = "ID")]
    pub user_id: String,
}

/// Which session is meant.
#[derive(Debug, Args)]
pub struct Which {
    #[command(flatten)]
    agent: Agent,
    #[command(flatten)]
    whose: Whose,
    /// Id of the session
    #[arg(long, value_name = "ID")]
    session_id: String,
}

impl From<&Which> for OneSession {
    fn from(which: &Which) -> Self {
        Self {
            name: which.agent.id().to_owned(),
            session_id: which.session_id.clone(),
            user_id: which.whose.user_id.clone(),
        }
    }
}
