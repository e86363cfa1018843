//! The one way from an authenticated caller to a running question: authorise, resolve workspace and
//! flow, find the topic, count the work, ask. Every endpoint goes through here.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::Value;
use tg_mesh::{Ask, Deadline};
use tg_schemas::processors::librarian::LIBRARIAN;
use tg_schemas::{Class, FlowId, Topic, WorkspaceId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ask;
use crate::auth::{self, Identity, Lapse, Resource};
use crate::engine::scrub::scrub;
use crate::engine::translate::generic::Raw;
use crate::engine::translate::{About, Body};
use crate::error::RequestError;
use crate::flow_model;
use crate::flows::Flow;
use crate::iam_call;
use crate::inflight::Permit;
use crate::judge;
use crate::opened::{self, Known};
use crate::options::OnDisconnect;
use crate::registry::{self, Gate, Home, Kind, Service, THRU, Unknown};
pub(crate) use crate::running::Running;
use crate::running::count;
use crate::state::App;
use crate::trail;

/// How often a workspace that changes under our eyes is looked at.
const LOOKS: usize = 3;

/// What is asked for.
pub(crate) enum Target {
    /// An operation of a service outside flows.
    Service {
        service: &'static Service,
        operation: String,
        gate: Gate,
    },
    /// A service of a flow.
    Kind {
        kind: &'static Kind,
        /// Interface in the flow record.
        interface: String,
        flow: String,
    },
}

impl Target {
    /// Whether it may go on without its caller. A query may not: nobody would have its answer.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::Service { .. } => true,
            Self::Kind { kind, .. } => kind.lasting,
        }
    }

    /// An operation by names.
    pub(crate) fn service(name: &str, body: &Body) -> Result<Self, RequestError> {
        let operation = match body.get("operation") {
            Some(Value::String(operation)) if !operation.is_empty() => operation.clone(),
            _ => return Err(RequestError::MissingOperation),
        };
        let service = registry::service(name).ok_or(RequestError::Unknown(Unknown::Service))?;
        let gate = service.gate(&operation);
        let gate = gate.ok_or(RequestError::Unknown(Unknown::Operation(service.name)))?;
        Ok(Self::Service {
            service,
            operation,
            gate,
        })
    }

    /// A flow service by names; `thru/<interface>` is any interface.
    pub(crate) fn kind(name: &str, flow: &str) -> Result<Self, RequestError> {
        let (kind, interface) = match name.strip_prefix("thru/") {
            Some(interface) if !interface.is_empty() => (&THRU, interface),
            _ => (
                registry::flow_kind(name).ok_or(RequestError::Unknown(Unknown::Kind))?,
                name,
            ),
        };
        Ok(Self::Kind {
            kind,
            interface: interface.to_owned(),
            flow: flow.to_owned(),
        })
    }

    /// Name of the service, from a closed set.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Service { service, .. } => service.name,
            Self::Kind { kind, .. } => kind.name,
        }
    }

    /// The operation, if the service has several.
    pub(crate) fn operation(&self) -> &str {
        match self {
            Self::Service { operation, .. } => operation,
            Self::Kind { .. } => "",
        }
    }
}

/// How a question is known in traces.
#[derive(Debug, Clone)]
pub(crate) struct Meta {
    /// Id of the HTTP request.
    pub(crate) request_id: Arc<str>,
    /// W3C trace context.
    pub(crate) traceparent: Arc<str>,
    /// Which endpoint.
    pub(crate) endpoint: &'static str,
    /// A program on this machine asks, from this address.
    pub(crate) local: Option<IpAddr>,
    /// Whoever is connected: a proxy, where there is one.
    pub(crate) address: Option<IpAddr>,
}

/// A request as a endpoint read it.
pub(crate) struct Call {
    pub(crate) target: Target,
    pub(crate) body: Body,
    /// The explicit workspace.
    pub(crate) workspace: Option<String>,
    /// Less time than the gateway gives.
    pub(crate) timeout: Option<Duration>,
    /// The work goes on when the caller goes away, if it leaves something behind.
    pub(crate) detach: bool,
    /// The endpoint gives one reply, not the parts.
    pub(crate) whole: bool,
    pub(crate) meta: Meta,
}

impl Call {
    /// Whether the caller wants one reply: because of the endpoint, or as it asks a flow for neither pieces nor
    /// explanations. Official clients that do not stream take the first frame for the answer.
    fn is_whole(&self) -> bool {
        let of_flow = matches!(self.target, Target::Kind { .. });
        self.whole || (of_flow && !self.asks("streaming") && !self.asks("explainable"))
    }

    fn asks(&self, key: &str) -> bool {
        self.body.get(key) == Some(&Value::Bool(true))
    }
}

impl App {
    /// Starts a question for a caller.
    pub(crate) async fn start(
        &self,
        identity: &Identity,
        call: Call,
        cancel: CancellationToken,
    ) -> Result<Running, RequestError> {
        let (endpoint, name) = (call.meta.endpoint, call.target.name());
        let asked = self.asked(identity, &call);
        let started = self.start_inner(identity, call, cancel).await;
        self.decided(asked, started.as_ref().err());
        started.inspect_err(|fault| count(endpoint, name, fault.label()))
    }

    async fn start_inner(
        &self,
        identity: &Identity,
        mut call: Call,
        cancel: CancellationToken,
    ) -> Result<Running, RequestError> {
        let (name, endpoint) = (call.target.name(), call.meta.endpoint);
        if let Target::Service { service, .. } = &call.target
            && service.home == Home::Gateway
        {
            return self.own(identity, &call).await;
        }
        let way = self.admit(identity, &call).await?;
        let user_context = match call.target {
            Target::Kind { .. } => {
                iam_call::impose_context(identity, self.auth.open(), name, &mut call.body)
            }
            Target::Service { .. } => None,
        };
        if let Some(flow) = &way.flow
            && flow_model::is_left_out(name, &call.body)
        {
            let options = self.ask_options(identity, &call, &way, cancel.clone());
            flow_model::add(&self.mesh, flow, &mut call.body, options).await?;
        }
        let about = About {
            operation: call.target.operation().to_owned(),
            actor: identity.id.to_string(),
            credential: identity.credential.to_string(),
            address: trail::shown(call.meta.address),
            request_id: call.meta.request_id.to_string(),
            client_ip: iam_call::address(
                call.target.operation(),
                call.meta.address,
                call.meta.local,
            ),
            kind: name,
            flow: match &call.target {
                Target::Kind { flow, .. } => flow.clone(),
                Target::Service { .. } => String::new(),
            },
            whole: call.is_whole(),
            explained: call.asks("streaming") || call.asks("explainable"),
            operator: self.auth.open(),
            masked: name == "config" && !self.may_configure(identity, &way).await,
        };
        let mut ask = self.ask_options(identity, &call, &way, cancel.clone());
        ask.user_context = user_context;
        let detached = match ask.detach {
            true => {
                let listed = self
                    .detached
                    .enter(identity, shown(&call, &way), cancel.clone())?;
                if matches!(name, "agent" | "thru") {
                    self.detached.has_room(&self.mesh, identity).await?;
                }
                ask.id = Some(listed.id().to_owned());
                Some((self.mesh.clone(), listed))
            }
            false => None,
        };
        let asks = match &call.target {
            Target::Service { service, .. } => service.asks,
            Target::Kind {
                kind, interface, ..
            } => match registry::is_thru(kind) && registry::takes_raw(interface) {
                true => ask::ask::<Raw>,
                false => kind.asks,
            },
        };
        let parts = asks(&self.mesh, &way.topic, &call.body, &about, ask)
            .map_err(|error| RequestError::Service(scrub(error)))?;
        let of = way.workspace.as_ref().map_or("", |id| id.as_str());
        let parts = match Known::by(name, call.target.operation(), &call.body, of) {
            Some(known) => opened::awaited(parts, self.mesh.config().clone(), known),
            None => parts,
        };
        let (gate, resource) = way.admitted;
        Ok(Running {
            parts: parts.peekable(),
            lapse: match call.target.operation() {
                // It ends the session that it is made in, and is to be heard of all the same.
                "change-password" => Lapse::never(),
                _ => self.auth.lapse(identity, gate, resource),
            },
            cancel,
            detached,
            stopped: way
                .flow
                .map_or_else(CancellationToken::new, |flow| flow.stopped.clone()),
            over: false,
            name,
            endpoint,
            started: Instant::now(),
            permit: Some(way.permit),
            held: None,
        })
    }

    /// Answers what is asked of the gateway itself.
    async fn own(&self, identity: &Identity, call: &Call) -> Result<Running, RequestError> {
        let operation = call.target.operation();
        let (parts, permit) = match call.target.name() {
            registry::ANSWERS => {
                let permit = self.enter(&identity.workspace)?;
                (judge::answer(operation, &call.body)?, Some(permit))
            }
            _ => {
                let answered = self
                    .detached
                    .answer(&self.mesh, identity, operation, &call.body);
                (answered.await?, None)
            }
        };
        Ok(Running {
            parts: parts.peekable(),
            lapse: Lapse::never(),
            cancel: CancellationToken::new(),
            detached: None,
            stopped: CancellationToken::new(),
            over: false,
            name: call.target.name(),
            endpoint: call.meta.endpoint,
            started: Instant::now(),
            permit,
            held: None,
        })
    }

    /// Authorises a call and finds where it goes.
    async fn admit(&self, identity: &Identity, call: &Call) -> Result<Way, RequestError> {
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
                Ok(Way {
                    topic: Topic::system(Class::Request, base),
                    admitted: (*gate, resource),
                    epoch: None,
                    workspace: None,
                    generation: None,
                    flow: None,
                    permit: self.enter(&identity.workspace)?,
                })
            }
            Target::Service {
                service:
                    Service {
                        home: Home::Workspace(base),
                        ..
                    },
                gate,
                ..
            } => {
                let (workspace, generation) = self
                    .workspace(identity, call.workspace.as_deref(), *gate)
                    .await?;
                Ok(Way {
                    topic: Topic::workspace(Class::Request, base, &workspace),
                    admitted: (*gate, Resource::workspace(workspace.as_str())),
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
                let gate = match registry::is_thru(kind) {
                    true => registry::thru_gate(interface),
                    false => kind.gate,
                };
                let id = flow;
                let (flow, generation) = self
                    .flow(identity, call.workspace.as_deref(), id, gate)
                    .await?;
                let resource = Resource::flow(flow.workspace.as_str(), id);
                let topic = if kind.input {
                    flow.input(interface)?;
                    LIBRARIAN.of_workspace(&flow.workspace)
                } else {
                    flow.request(interface)?
                };
                Ok(Way {
                    topic,
                    admitted: (gate, resource),
                    permit: self.enter(flow.workspace.as_str())?,
                    epoch: flow.epoch.filter(|_| !kind.input),
                    workspace: Some(flow.workspace.clone()),
                    generation: Some(generation),
                    flow: Some(flow),
                })
            }
        }
    }

    fn enter(&self, workspace: &str) -> Result<Permit, RequestError> {
        self.in_flight
            .enter(workspace)
            .ok_or_else(|| RequestError::busy("in this workspace"))
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
    async fn allowed(
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
            if !auth::is_open(self.mesh.config(), workspace.as_str()) {
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
    async fn may_configure(&self, identity: &Identity, way: &Way) -> bool {
        let (_, resource) = &way.admitted;
        let gate = Gate::Needs("config:write");
        self.auth.authorise(identity, gate, resource).await.is_ok()
    }

    /// Whether a question goes on when its caller goes away.
    pub(crate) fn goes_on(&self, target: &Target, asked: bool) -> bool {
        target.is_lasting() && (asked || self.options.on_disconnect == OnDisconnect::Finish)
    }

    fn ask_options(
        &self,
        identity: &Identity,
        call: &Call,
        way: &Way,
        cancel: CancellationToken,
    ) -> Ask {
        let streaming = call.body.get("streaming") == Some(&Value::Bool(true));
        let own = (!streaming).then_some(self.options.timeout);
        let span = match (call.timeout, own) {
            (Some(asked), Some(own)) => Some(asked.min(own)),
            (asked, own) => asked.or(own),
        };
        Ask {
            deadline: span.map(Deadline::after),
            cancel,
            streaming,
            detach: self.goes_on(&call.target, call.detach),
            epoch: way.epoch,
            workspace: way.workspace.clone(),
            generation: way.generation,
            user_id: Some(identity.id.to_string()),
            traceparent: Some(call.meta.traceparent.to_string()),
            request_id: Some(call.meta.request_id.to_string()),
            ..Ask::default()
        }
    }
}

/// Where an admitted call goes.
struct Way {
    topic: Topic,
    /// What the caller needs for it, to be looked at again.
    admitted: (Gate, Resource),
    /// Of the flow, where the topic is one of the flow.
    epoch: Option<u64>,
    workspace: Option<WorkspaceId>,
    /// Of the workspace, as the caller was let in.
    generation: Option<i64>,
    flow: Option<Arc<Flow>>,
    permit: Permit,
}

/// What a list of requests says of a call.
fn shown(call: &Call, way: &Way) -> Body {
    let mut about = Body::new();
    let mut put = |key: &str, text: &str| {
        if !text.is_empty() {
            about.insert(key.to_owned(), text.into());
        }
    };
    put("service", call.target.name());
    put("operation", call.target.operation());
    if let Target::Kind { flow, .. } = &call.target {
        put("flow", flow);
    }
    put(
        "workspace",
        way.workspace.as_ref().map_or("", |id| id.as_str()),
    );
    put("request-id", &call.meta.request_id);
    about
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
    use serde_json::json;

    fn identity() -> Identity {
        Identity::plain("u", "home")
    }

    #[test]
    fn targets_are_found_by_name_or_refused() {
        let body = |value: Value| value.as_object().cloned().unwrap();
        let fault = |name, value| Target::service(name, &body(value)).err();
        assert_eq!(
            fault("config", json!({"operation": ""})),
            Some(RequestError::MissingOperation)
        );
        assert_eq!(
            fault("config", json!({"operation": "getkeys-all-ws"})),
            Some(RequestError::Unknown(Unknown::Operation("config")))
        );
        assert_eq!(
            fault("nothing", json!({"operation": "get"})),
            Some(RequestError::Unknown(Unknown::Service))
        );
        assert_eq!(
            Target::kind("keyword-inde", "f").err(),
            Some(RequestError::Unknown(Unknown::Kind))
        );
        assert_eq!(
            Target::kind("thru/", "f").err(),
            Some(RequestError::Unknown(Unknown::Kind))
        );
        assert_eq!(Target::kind("thru/agent", "f").unwrap().name(), "thru");
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
