//! The one way from an authenticated caller to a running question: it is admitted, completed and asked. Every endpoint
//! goes through here.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use serde_json::Value;
use tg_mesh::{Ask, Deadline, Span};
use tg_schemas::msg::DEFAULT_COLLECTION;
use tg_schemas::{Error, ErrorCode, WorkspaceId, WorkspaceKey};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::admission::Admitted;
use crate::ask::{self, Parts};
use crate::auth::{Identity, Lapse, Resource, models};
use crate::call::{Call, Target};
use crate::detached::{Needs, Shown};
use crate::engine::scrub::scrub;
use crate::engine::translate::fields::fault;
use crate::engine::translate::generic::Raw;
use crate::engine::translate::{About, Body, Fields, MASKED};
use crate::error::RequestError;
use crate::flow_model;
use crate::iam_call;
use crate::judge;
use crate::opened::{self, Known};
use crate::registry::{self, EXPAND, Gate, Home, REMAKE};
use crate::rejoin::{self, Joined};
use crate::running::{Running, count};
use crate::sight::Judge;
use crate::state::App;
use crate::summaries::Asked;
use crate::trail;

/// The kind of flow service whose runs can be joined.
const AGENT: &str = "agent";
/// Flow services for which it counts which roles a caller has: agents and tools, also where an interface of any name is asked.
const ROLES_COUNT: [&str; 3] = [AGENT, "mcp-tool", "thru"];
/// Who may see, and end, the runs of others in a workspace.
const ADMINISTERS: &str = "users:admin";
/// What it takes to read what a run said.
const JOINS: Gate = Gate::Needs("agent");

impl App {
    /// Starts a question for a caller.
    pub(crate) async fn start(
        &self,
        identity: &Identity,
        mut call: Call,
        cancel: CancellationToken,
    ) -> Result<Running, RequestError> {
        let (endpoint, name) = (call.meta.endpoint, call.target.name());
        let asked = self.asked(identity, &call);
        let mut span = call.span(self.mesh.tracer());
        let started = self.start_inner(identity, call, cancel).await;
        self.decided(asked, started.as_ref().err());
        match started {
            Ok(mut running) => {
                running.span = span;
                Ok(running)
            }
            Err(fault) => {
                span.fail(fault.label());
                count(endpoint, name, fault.label());
                Err(fault)
            }
        }
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
            return self.own(identity, &call, cancel).await;
        }
        if call.leave.grace() > 0 && name != AGENT {
            let why = "grace=<seconds> is for runs of the agent";
            return Err(fault("on-disconnect", why).into());
        }
        let admitted = self.admit(identity, &call).await?;
        let user_context = match call.target {
            Target::Kind { .. } => {
                iam_call::impose_context(identity, self.auth.open(), name, &mut call.body)
            }
            // What it says of a user in its body is its own.
            Target::Service { .. } => iam_call::context(identity),
        };
        if let Some(flow) = &admitted.flow
            && flow_model::is_left_out(name, &call.body)
        {
            let options = self.ask_options(identity, &call, &admitted, cancel.clone());
            flow_model::add(&self.mesh, flow, &mut call.body, options).await?;
        }
        let masked = matches!(name, "config" | "flow")
            && (call.asks(MASKED) || !self.may_configure(identity, &admitted).await?);
        let about = self.about(identity, &call, masked);
        let mut ask = self.ask_options(identity, &call, &admitted, cancel.clone());
        ask.user_context = user_context;
        if roles_count(&call.target) {
            ask.roles = Some(self.auth.roles(identity, &admitted.needs.1).await?);
        }
        let judge = match &admitted.flow {
            Some(flow) if call.target.names_entities() => Judge::of(self, flow, ask.clone())?,
            _ => None,
        };
        let (about_it, token) = (shown(&call, &admitted), cancel.clone());
        let (detached, noted) = match ask.detach {
            true => {
                let listed = self.detached.enter(identity, about_it, token)?;
                if matches!(name, "agent" | "thru") {
                    self.detached.has_room(&self.mesh, identity).await?;
                }
                (Some((self.mesh.clone(), listed)), None)
            }
            false => (None, Some(self.detached.note(identity, about_it, token))),
        };
        // By this it is looked for and cancelled, and its run is joined, listed and cancelled.
        let listed = detached.as_ref().map(|(_, listed)| listed);
        let listed = listed.or(noted.as_ref());
        ask.id = listed.map(|one| one.id().to_owned());
        let parts = asks_of(&call.target)(&self.mesh, &admitted.topic, &call.body, &about, ask)
            .map_err(|error| RequestError::Service(scrub(error)))?;
        let of = admitted.workspace.as_ref().map_or("", |id| id.as_str());
        let parts = match Known::by(name, call.target.operation(), &call.body, of) {
            Some(known) => opened::awaited(parts, self.mesh.config().clone(), known),
            None => parts,
        };
        let parts = match judge {
            Some(judge) => judge.judged(parts, collection_of(&call.body)),
            None => parts,
        };
        let (parts, run) = self.recorded(parts, identity, &call, &admitted, listed, &cancel);
        let (gate, resource) = admitted.needs;
        Ok(Running {
            parts: parts.peekable(),
            lapse: match call.target.operation() {
                // It ends the session that it is made in, and is to be heard of all the same.
                "change-password" => Lapse::never(),
                _ => self.auth.lapse(identity, gate, resource),
            },
            cancel,
            detached,
            noted,
            run,
            placed: false,
            waits: u64::try_from(call.leave.grace()).map_or(Duration::ZERO, Duration::from_secs),
            stopped: admitted
                .flow
                .map_or_else(CancellationToken::new, |flow| flow.stopped.clone()),
            over: false,
            name,
            endpoint,
            started: Instant::now(),
            permit: Some(admitted.permit),
            held: None,
            lane: self.turns.lane(named(identity, &call)),
            span: Span::none(),
        })
    }

    /// What a service is told of a call besides its body.
    fn about(&self, identity: &Identity, call: &Call, masked: bool) -> About {
        About {
            operation: call.target.operation().to_owned(),
            actor: identity.id.to_string(),
            credential: identity.credential.to_string(),
            address: trail::shown(call.meta.address),
            // Not what a client calls it: by that others' changes could be taken for one with this.
            request_id: call.meta.number.to_string(),
            client_ip: iam_call::address(
                call.target.operation(),
                call.meta.address,
                call.meta.local,
            ),
            kind: call.target.spoken(),
            flow: match &call.target {
                Target::Kind { flow, .. } => flow.clone(),
                Target::Service { .. } => String::new(),
            },
            whole: call.is_whole(),
            explained: call.asks("streaming") || call.asks("explainable"),
            operator: self.auth.open(),
            grace: call.leave.grace(),
            masked,
            granted: identity.granted(),
            translated: call.meta.translated,
        }
    }

    /// Answers what is asked of the gateway itself.
    async fn own(
        &self,
        identity: &Identity,
        call: &Call,
        cancel: CancellationToken,
    ) -> Result<Running, RequestError> {
        let operation = call.target.operation();
        let (mut run, mut lapse) = (None, Lapse::never());
        let (parts, permit) = match call.target.name() {
            registry::ANSWERS => {
                let permit = self.enter(&identity.workspace)?;
                (judge::answer(operation, &call.body)?, Some(permit))
            }
            _ if call.target.joins() => {
                let permit = self.enter(&identity.workspace)?;
                let place = rejoin::place(&Fields::new(&call.body))?;
                let parts;
                (parts, lapse) = self.joined(identity, call, &place, cancel).await?;
                run = Some(place);
                (parts, Some(permit))
            }
            registry::REQUESTS if operation == "cancel-run" && self.names_kept(call) => {
                (self.cancel_kept(identity, call).await?, None)
            }
            registry::REQUESTS if matches!(operation, EXPAND | REMAKE) => {
                let permit = self.enter(&identity.workspace)?;
                let own = Resource::workspace(named(identity, call));
                self.auth.authorise(identity, JOINS, &own).await?;
                (self.of_summary(identity, call, cancel).await?, Some(permit))
            }
            _ => {
                let permit = match operation {
                    "list-runs" | "list-tasks" | "why-run" | "why-request" => {
                        Some(self.enter(&identity.workspace)?)
                    }
                    _ => None,
                };
                let workspace = self.administered(identity, call).await?;
                let whose = (&*identity.id, workspace.as_deref().unwrap_or_default());
                if matches!(operation, "cancel-run" | "confirm-run") && workspace.is_none() {
                    let run = Fields::new(&call.body).required_text("run")?;
                    self.of_run(identity, whose, &run).await?;
                }
                if operation == "cancel-request" {
                    let id = Fields::new(&call.body).required_text("id")?;
                    self.may_cancel(identity, whose, &id).await?;
                }
                let parts = match operation {
                    "list-tasks" => self.tasks(identity, JOINS, whose, &call.body).await?,
                    _ => {
                        let own = &self.detached;
                        own.answer(&self.mesh, whose, operation, &call.body).await?
                    }
                };
                (parts, permit)
            }
        };
        Ok(Running {
            parts: parts.peekable(),
            lapse,
            cancel: CancellationToken::new(),
            detached: None,
            noted: None,
            run,
            placed: false,
            waits: Duration::ZERO,
            stopped: CancellationToken::new(),
            over: false,
            name: call.target.name(),
            endpoint: call.meta.endpoint,
            started: Instant::now(),
            permit,
            held: None,
            lane: self.turns.lane(named(identity, call)),
            span: Span::none(),
        })
    }

    /// A stream that a caller may read: their own, or, for who administers its workspace, anybody's; and until when.
    async fn joined(
        &self,
        identity: &Identity,
        call: &Call,
        (run, first): &(Arc<str>, u64),
        cancel: CancellationToken,
    ) -> Result<(Parts, Lapse), RequestError> {
        let workspace = self.administered(identity, call).await?;
        let whose = (&*identity.id, workspace.as_deref().unwrap_or_default());
        let kept = match call.target.replays() {
            true => None,
            false => self.kept_stream(identity, whose, run).await?,
        };
        let (gate, resource) = match &kept {
            Some((access, _)) => access.needs.clone(),
            None => {
                let own = Resource::workspace(named(identity, call));
                self.auth.authorise(identity, JOINS, &own).await?;
                (JOINS, self.of_run(identity, whose, run).await?)
            }
        };
        let lapse = match workspace {
            Some(_) => {
                let all = Resource::workspace(named(identity, call));
                self.auth.lapse(identity, Gate::Needs(ADMINISTERS), all)
            }
            None => self.auth.lapse(identity, gate, resource),
        };
        let open = self.auth.open();
        let noted = self.cancel_of(identity, call, run);
        if let Some((_, source)) = kept {
            let joined = Joined::kept(source, *first, (cancel, noted));
            return Ok((joined.parts(), lapse));
        }
        let joined = Joined::new(&self.mesh, whose, (run, *first), open, (cancel, noted));
        let joined = match call.target.replays() {
            true => joined.again(),
            false => joined,
        };
        Ok((joined.parts(), lapse))
    }

    /// What is said of a summary of a run that a caller may read.
    async fn of_summary(
        &self,
        identity: &Identity,
        call: &Call,
        cancel: CancellationToken,
    ) -> Result<Parts, RequestError> {
        let fields = Fields::new(&call.body);
        let asked = Asked::read(call.target.operation(), &fields)?;
        if let Some(model) = &asked.model {
            models::check_named(identity, model)?;
        }
        let workspace = self.administered(identity, call).await?;
        let whose = (&*identity.id, workspace.as_deref().unwrap_or_default());
        self.of_run(identity, whose, &asked.run).await?;
        let own = self.options.timeout;
        let span = call.timeout.map_or(own, |asked| asked.min(own));
        let ask = Ask {
            deadline: Some(Deadline::after(span)),
            cancel,
            user_id: Some(identity.id.to_string()),
            credential: Some(identity.credential.to_string()).filter(|known| !known.is_empty()),
            traceparent: Some(call.meta.traceparent.to_string()),
            request_id: Some(name_of(call).to_string()),
            ..Ask::default()
        };
        let whose = (whose.0.to_owned(), whose.1.to_owned());
        Ok(asked.parts(self.mesh.clone(), whose, ask, self.auth.open()))
    }

    /// The flow that a run is of, where the caller may ask the agent now; else there is no such run. One whose workspace was
    /// deleted is of none of that name.
    async fn of_run(
        &self,
        identity: &Identity,
        whose: (&str, &str),
        run: &str,
    ) -> Result<Resource, RequestError> {
        let known = rejoin::find(&self.mesh, whose, run).await;
        let known = known.map_err(|error| RequestError::Service(scrub(error)))?;
        let known = known.ok_or_else(rejoin::unknown)?;
        let workspace = WorkspaceId::new(&known.workspace).map_err(|_| rejoin::unknown())?;
        let resource = Resource::flow(workspace.as_str(), &known.flow);
        let owner = (&workspace, known.generation);
        self.may_still(identity, (JOINS, &resource), owner).await?;
        Ok(resource)
    }

    /// Whether a caller may do now what it took to ask for a request; else it looks as if there were none.
    async fn may_cancel(
        &self,
        identity: &Identity,
        whose: (&str, &str),
        id: &str,
    ) -> Result<(), RequestError> {
        let allowed = match self.detached.needs(whose.0, id) {
            Some(Needs {
                gate,
                resource,
                owner: Some((workspace, generation)),
            }) => {
                let owner = (&workspace, generation);
                self.may_still(identity, (gate, &resource), owner).await
            }
            Some(Needs { gate, resource, .. }) => {
                self.auth.authorise(identity, gate, &resource).await
            }
            // A run of the agent that another gateway took.
            None if whose.1.is_empty() => self.of_run(identity, whose, id).await.map(drop),
            None => Ok(()),
        };
        allowed.map_err(|fault| match fault {
            RequestError::Service(error) if error.code() != ErrorCode::NotFound => error.into(),
            RequestError::Service(_) | RequestError::AccessDenied => {
                Error::new(ErrorCode::NotFound, "request not found").into()
            }
            other => other,
        })
    }

    /// Whether a caller may do now what it took to ask, in a workspace that is still the same one; else it looks as if there were
    /// nothing.
    pub(crate) async fn may_still(
        &self,
        identity: &Identity,
        (gate, resource): (Gate, &Resource),
        (workspace, generation): (&WorkspaceId, i64),
    ) -> Result<(), RequestError> {
        match self.allowed(identity, gate, resource, workspace).await {
            Ok(now) if now == generation => Ok(()),
            Ok(_) | Err(RequestError::AccessDenied | RequestError::WorkspaceNotFound) => {
                Err(rejoin::unknown().into())
            }
            Err(fault) => Err(fault),
        }
    }

    /// The workspace all of whose runs a caller asks for, if they may see them: the text form of its key.
    pub(crate) async fn administered(
        &self,
        identity: &Identity,
        call: &Call,
    ) -> Result<Option<String>, RequestError> {
        if !is_of_all(call)? {
            return Ok(None);
        }
        let gate = Gate::Needs(ADMINISTERS);
        let workspace = self.workspace(identity, call.workspace.as_deref(), gate);
        let (workspace, generation) = workspace.await?;
        let key = WorkspaceKey::new(workspace.as_str(), generation);
        Ok(Some(key.to_string()))
    }

    fn ask_options(
        &self,
        identity: &Identity,
        call: &Call,
        admitted: &Admitted,
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
            detach: call.target.goes_on(call.leave),
            // Its runs are in its ledger: another agent goes on with them.
            taken_over: call.target.name() == AGENT,
            epoch: admitted.epoch,
            workspace: admitted.workspace.clone(),
            generation: admitted.generation,
            user_id: Some(identity.id.to_string()),
            credential: Some(identity.credential.to_string()).filter(|known| !known.is_empty()),
            traceparent: Some(call.meta.traceparent.to_string()),
            request_id: Some(name_of(call).to_string()),
            ..Ask::default()
        }
    }
}

/// What a question is called elsewhere: as its client calls the request. The services iam and sessions take two of one name for
/// the same one, and what a socket is called does not name its frames.
fn name_of(call: &Call) -> &str {
    let once = matches!(call.target.name(), "iam" | "sessions");
    match once && call.meta.endpoint != "rest" {
        true => &call.meta.number,
        false => &call.meta.request_id,
    }
}

/// Whether it counts which roles the caller has: where an agent or a tool is asked, also through a listener or a session.
fn roles_count(target: &Target) -> bool {
    let name = target.name();
    ROLES_COUNT.contains(&name) || registry::asks_models(name, target.operation())
}

/// Whether a call is about the runs of everybody in a workspace.
pub(crate) fn is_of_all(call: &Call) -> Result<bool, Error> {
    let operation = call.target.operation();
    let of_runs = operation.ends_with("-run")
        || matches!(operation, "list-runs" | "list-tasks" | EXPAND | REMAKE);
    Ok(of_runs && Fields::new(&call.body).flag("all")?)
}

/// The workspace that a call names, else the caller's own.
fn named<'a>(identity: &'a Identity, call: &'a Call) -> &'a str {
    let name = call.workspace.as_deref().filter(|name| !name.is_empty());
    name.unwrap_or(&identity.workspace)
}

/// What a list of requests says of a call.
fn shown(call: &Call, admitted: &Admitted) -> Shown {
    Shown {
        service: call.target.name(),
        operation: call.target.operation().to_owned(),
        flow: match &call.target {
            Target::Kind { flow, .. } => flow.clone(),
            Target::Service { .. } => String::new(),
        },
        workspace: admitted.workspace.clone(),
        request_id: call.meta.request_id.clone(),
        needs: Some(Needs {
            gate: admitted.needs.0,
            resource: admitted.needs.1.clone(),
            owner: admitted.workspace.clone().zip(admitted.generation),
        }),
    }
}

/// The translator of what is asked.
fn asks_of(target: &Target) -> ask::Asks {
    match target {
        Target::Service { service, .. } => service.asks,
        Target::Kind {
            kind, interface, ..
        } => match registry::is_thru(kind) && registry::takes_raw(interface) {
            true => ask::ask::<Raw>,
            false => kind.asks,
        },
    }
}

/// The collection that a question about vectors is of.
fn collection_of(body: &Body) -> String {
    let named = body.get("collection").and_then(Value::as_str);
    let named = named.filter(|name| !name.is_empty());
    named.unwrap_or(DEFAULT_COLLECTION).to_owned()
}
