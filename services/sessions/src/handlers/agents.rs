//! Agents as the operator's files describe them.

use std::sync::Arc;

use async_trait::async_trait;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::Cx;
use tg_schemas::operations::{
    AgentConfig, Empty, Failure, GetNamedAgent, ListNamedAgents, NamedAgent, NamedAgents,
};

use super::Agents;
use crate::engine::definition::Definition;
use crate::error::SessionsError;

impl Agents {
    /// An agent by name.
    ///
    /// # Errors
    /// No file describes it.
    pub(super) fn agent(&self, name: &str) -> Result<&Arc<Definition>, SessionsError> {
        self.catalogue.get(name).ok_or(SessionsError::NoAgent)
    }
}

#[async_trait]
impl Handle<ListNamedAgents> for Agents {
    async fn handle(
        &self,
        _: &Cx,
        _: Empty,
        _: &mut Chunks<'_, ListNamedAgents>,
    ) -> Result<NamedAgents, Refused<Failure>> {
        let agents = self.catalogue.all().map(|agent| agent.summary());
        Ok(NamedAgents {
            agents: agents.collect(),
        })
    }
}

#[async_trait]
impl Handle<GetNamedAgent> for Agents {
    async fn handle(
        &self,
        _: &Cx,
        asked: NamedAgent,
        _: &mut Chunks<'_, GetNamedAgent>,
    ) -> Result<AgentConfig, Refused<Failure>> {
        Ok(self.agent(&asked.name)?.config())
    }
}
