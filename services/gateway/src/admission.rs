//! Whether a caller is let in: authorised first, then workspace and flow are looked for, and the work is counted.

use std::sync::Arc;

use tg_schemas::processors::librarian::LIBRARIAN;
use tg_schemas::{Class, FlowId, Topic, WorkspaceId};

use crate::auth::{self, Identity, Resource};
use crate::call::{Call, Meta, Target};
use crate::error::RequestError;
use crate::flows::Flow;
use crate::iam_call;
use crate::inflight::Permit;
use crate::registry::{self, Gate, Home, Service, Unknown};
use crate::state::App;
use crate::trail;

/// How often a workspace that changes under our eyes is looked at.
const LOOKS: usize = 3;

/// Requests of those who are not known yet, in progress at once from one network.
const STRANGER_REQUESTS: usize = 64;

/// A call that was let in, and where it goes.
pub(crate) struct Admitted {
    pub(crate) topic: Topic,
    /// What the caller needs for it, to be looked at again.
    pub(crate) needs: (Gate, Resource),
    /// Of the flow, where the topic is one of the flow.
    pub(crate) epoch: Option<u64>,
    pub(crate) workspace: Option<WorkspaceId>,
    /// Of the workspace, as the caller was let in.
    pub(crate) generation: Option<i64>,
    pub(crate) flow: Option<Arc<Flow>>,
    pub(crate) permit: Permit,
}

impl App {
    /// Authorises a call and finds where it goes.
    pub(crate) async fn admit(
        &self,
        identity: &Identity,
        call: &Call,
    ) -> Result<Admitted, RequestError> {
        match &call.target {
            Target::Service {
                service:
                    Service {
                        home: Home::System(base),
                        ..
                    },
                operation,
                gate,
            } => {
                let resource =
                    iam_call::resource(call.target.name(), operation, &call.body, identity)?;
                self.auth.authorise(identity, *gate, &resource).await?;
                Ok(Admitted {
                    topic: Topic::system(Class::Request, base),
                    needs: (*gate, resource),
                    epoch: None,
                    workspace: None,
                    generation: None,
                    flow: None,
                    permit: match identity.id.is_empty() {
                        true => self.enter_stranger(&call.meta)?,
                        false => self.enter(&identity.workspace)?,
                    },
                })
            }
            Target::Service {
                service:
                    Service {
                        home: Home::Workspace(base),
                        ..
                    },
                gate,
                operation,
            } => {
                if registry::is_for_all(call.target.name(), operation) {
                    // Who may in one workspace may not for the others.
                    let system = Resource::default();
                    self.auth.authorise(identity, *gate, &system).await?;
                }
                let (workspace, generation) = self
                    .workspace(identity, call.workspace.as_deref(), *gate)
                    .await?;
                if registry::asks_models(call.target.name(), operation) {
                    auth::models::check_agent(identity)?;
                }
                Ok(Admitted {
                    topic: Topic::workspace(Class::Request, base, &workspace),
                    needs: (*gate, Resource::workspace(workspace.as_str())),
                    permit: self.enter(workspace.as_str())?,
                    epoch: None,
                    workspace: Some(workspace),
                    generation: Some(generation),
                    flow: None,
                })
            }
            // What the gateway answers itself was answered.
            Target::Service { .. } => Err(RequestError::Unknown(Unknown::Service)),
            Target::Kind {
                kind,
                interface,
                flow,
            } => {
                let gate = call.target.gate();
                let id = flow;
                let (flow, generation) = self
                    .flow(identity, call.workspace.as_deref(), id, gate)
                    .await?;
                let resource = Resource::flow(flow.workspace.as_str(), id);
                auth::models::check(identity, call.target.name(), &call.body)?;
                let topic = if kind.own {
                    Topic::flow(
                        Class::Request,
                        interface,
                        &flow.workspace,
                        &FlowId::new(id)?,
                    )
                } else if kind.input {
                    flow.input(interface)?;
                    LIBRARIAN.of_workspace(&flow.workspace)
                } else {
                    flow.request(interface)?
                };
                Ok(Admitted {
                    topic,
                    needs: (gate, resource),
                    permit: self.enter(flow.workspace.as_str())?,
                    epoch: flow.epoch.filter(|_| !kind.input),
                    workspace: Some(flow.workspace.clone()),
                    generation: Some(generation),
                    flow: Some(flow),
                })
            }
        }
    }

    pub(crate) fn enter(&self, workspace: &str) -> Result<Permit, RequestError> {
        self.in_flight
            .enter(workspace)
            .ok_or_else(|| RequestError::busy("in this workspace"))
    }

    /// Who is not known takes the room of no workspace, and of their network there is some for others.
    fn enter_stranger(&self, meta: &Meta) -> Result<Permit, RequestError> {
        // No workspace is named so.
        let key = format!("\0{}", trail::shown(meta.address));
        self.in_flight
            .enter_within(key, STRANGER_REQUESTS)
            .ok_or_else(|| RequestError::busy("from this address"))
    }

    /// The one rule of every endpoint: the explicit workspace, else the caller's own; allowed, then known.
    /// In this order nobody learns which workspaces of others exist. With the generation that the caller was let in
    /// to: what is sent on their behalf later is for that one only.
    pub(crate) async fn workspace(
        &self,
        identity: &Identity,
        explicit: Option<&str>,
        gate: Gate,
    ) -> Result<(WorkspaceId, i64), RequestError> {
        let workspace = named(identity, explicit)?;
        let resource = Resource::workspace(workspace.as_str());
        let generation = self.allowed(identity, gate, &resource, &workspace).await?;
        Ok((workspace, generation))
    }

    /// The same for a flow.
    pub(crate) async fn flow(
        &self,
        identity: &Identity,
        explicit: Option<&str>,
        flow: &str,
        gate: Gate,
    ) -> Result<(Arc<Flow>, i64), RequestError> {
        let workspace = named(identity, explicit)?;
        let id = FlowId::new(flow)?;
        let resource = Resource::flow(workspace.as_str(), id.as_str());
        let generation = self.allowed(identity, gate, &resource, &workspace).await?;
        Ok((self.flows.get(&workspace, &id)?, generation))
    }

    /// The generation of a workspace in which the caller may do something.
    pub(crate) async fn allowed(
        &self,
        identity: &Identity,
        gate: Gate,
        resource: &Resource,
        workspace: &WorkspaceId,
    ) -> Result<i64, RequestError> {
        let generation = || self.mesh.config().generation(workspace.as_str());
        for _ in 0..LOOKS {
            let before = generation();
            self.auth.authorise(identity, gate, resource).await?;
            if !self.mesh.config().is_open(workspace.as_str()) {
                return Err(RequestError::WorkspaceNotFound);
            }
            // One that was deleted and made again meanwhile is another one.
            if generation() == before {
                return Ok(before);
            }
        }
        Err(RequestError::WorkspaceNotFound)
    }

    /// Whether the caller may write the configuration they read, and so see the credentials in it.
    ///
    /// # Errors
    /// Where nobody can say: whoever may would take for the credentials what stands in their place.
    pub(crate) async fn may_configure(
        &self,
        identity: &Identity,
        admitted: &Admitted,
    ) -> Result<bool, RequestError> {
        let (_, resource) = &admitted.needs;
        let gate = Gate::Needs("config:write");
        match self.auth.authorise(identity, gate, resource).await {
            Ok(()) => Ok(true),
            Err(RequestError::AccessDenied) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn named(identity: &Identity, explicit: Option<&str>) -> Result<WorkspaceId, RequestError> {
    let name = explicit
        .filter(|name| !name.is_empty())
        .unwrap_or(&identity.workspace);
    Ok(WorkspaceId::new(name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity::plain("u", "home")
    }

    #[test]
    fn a_workspace_is_the_explicit_one_else_the_callers() {
        let name = |explicit| named(&identity(), explicit).map(|id| id.to_string());
        assert_eq!(name(None), Ok("home".into()));
        assert_eq!(name(Some("")), Ok("home".into()));
        assert_eq!(name(Some("acme")), Ok("acme".into()));
        for hostile in ["a:b", "__template__", "../x", "a--b", "ü"] {
            let Err(RequestError::Service(error)) = named(&identity(), Some(hostile)) else {
                panic!("{hostile} passed");
            };
            assert!(error.message.starts_with("workspace: "));
        }
    }
}
