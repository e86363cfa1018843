//! The one way from an authenticated caller to a running question: it is admitted, completed and asked. Every endpoint
//! goes through here.

use futures::StreamExt;
use serde_json::Value;
use tg_mesh::{Ask, Deadline};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::admission::Admitted;
use crate::ask;
use crate::auth::{Identity, Lapse};
use crate::call::{Call, Target};
use crate::engine::scrub::scrub;
use crate::engine::translate::generic::Raw;
use crate::engine::translate::{About, Body};
use crate::error::RequestError;
use crate::flow_model;
use crate::iam_call;
use crate::judge;
use crate::opened::{self, Known};
use crate::options::OnDisconnect;
use crate::registry::{self, Home};
use crate::running::{Running, count};
use crate::state::App;
use crate::trail;

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
        let admitted = self.admit(identity, &call).await?;
        let user_context = match call.target {
            Target::Kind { .. } => {
                iam_call::impose_context(identity, self.auth.open(), name, &mut call.body)
            }
            Target::Service { .. } => None,
        };
        if let Some(flow) = &admitted.flow
            && flow_model::is_left_out(name, &call.body)
        {
            let options = self.ask_options(identity, &call, &admitted, cancel.clone());
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
            masked: name == "config" && !self.may_configure(identity, &admitted).await,
        };
        let mut ask = self.ask_options(identity, &call, &admitted, cancel.clone());
        ask.user_context = user_context;
        let detached = match ask.detach {
            true => {
                let listed =
                    self.detached
                        .enter(identity, shown(&call, &admitted), cancel.clone())?;
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
        let parts = asks(&self.mesh, &admitted.topic, &call.body, &about, ask)
            .map_err(|error| RequestError::Service(scrub(error)))?;
        let of = admitted.workspace.as_ref().map_or("", |id| id.as_str());
        let parts = match Known::by(name, call.target.operation(), &call.body, of) {
            Some(known) => opened::awaited(parts, self.mesh.config().clone(), known),
            None => parts,
        };
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
            stopped: admitted
                .flow
                .map_or_else(CancellationToken::new, |flow| flow.stopped.clone()),
            over: false,
            name,
            endpoint,
            started: Instant::now(),
            permit: Some(admitted.permit),
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

    /// Whether a question goes on when its caller goes admitted.
    pub(crate) fn goes_on(&self, target: &Target, asked: bool) -> bool {
        target.is_lasting() && (asked || self.options.on_disconnect == OnDisconnect::Finish)
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
            detach: self.goes_on(&call.target, call.detach),
            epoch: admitted.epoch,
            workspace: admitted.workspace.clone(),
            generation: admitted.generation,
            user_id: Some(identity.id.to_string()),
            traceparent: Some(call.meta.traceparent.to_string()),
            request_id: Some(call.meta.request_id.to_string()),
            ..Ask::default()
        }
    }
}

/// What a list of requests says of a call.
fn shown(call: &Call, admitted: &Admitted) -> Body {
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
        admitted.workspace.as_ref().map_or("", |id| id.as_str()),
    );
    put("request-id", &call.meta.request_id);
    about
}
