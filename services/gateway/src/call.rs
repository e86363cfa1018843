//! A request as an endpoint read it: what is asked for, of which workspace, and how it is known in traces.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tg_mesh::telemetry::{Tracer, attributes};
use tg_mesh::{Span, SpanKind};

use crate::engine::translate::Body;
use crate::error::RequestError;
use crate::registry::{self, Gate, Kind, Service, THRU, Unknown};

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
    /// Whether it goes on when its caller goes away, who wants that so. A query does not: nobody would have its answer.
    pub(crate) fn goes_on(&self, leave: Leave) -> bool {
        let lasting = match self {
            Self::Service { .. } => true,
            Self::Kind { kind, .. } => kind.lasting,
        };
        lasting && leave != Leave::Cancel
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

    /// Whether a stream is joined again, which goes on whoever reads it.
    pub(crate) fn joins(&self) -> bool {
        matches!(self, Self::Service { service, operation, .. }
            if service.name == registry::REQUESTS
                && matches!(operation.as_str(), "read-run" | registry::REPLAY))
    }

    /// Whether what it sends is kept at this gateway where it goes on without its caller: texts that are read as they come.
    pub(crate) fn is_kept(&self) -> bool {
        match self {
            Self::Service {
                service, operation, ..
            } => registry::asks_models(service.name, operation),
            Self::Kind { kind, .. } => kind.kept,
        }
    }

    /// Whether that run is replayed, from its record.
    pub(crate) fn replays(&self) -> bool {
        self.joins() && self.operation() == registry::REPLAY
    }

    /// Whether the answer names entities of a graph that the graph itself was not asked for.
    pub(crate) fn names_entities(&self) -> bool {
        matches!(self, Self::Kind { interface, .. } if interface == "graph-embeddings")
    }

    /// What it takes.
    pub(crate) fn gate(&self) -> Gate {
        match self {
            Self::Service { gate, .. } => *gate,
            Self::Kind {
                kind, interface, ..
            } if registry::is_thru(kind) => registry::thru_gate(interface),
            Self::Kind { kind, .. } => kind.gate,
        }
    }

    /// Name of the service, from a closed set.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Service { service, .. } => service.name,
            Self::Kind { kind, .. } => kind.name,
        }
    }

    /// The kind whose messages are spoken: of `thru/<interface>`, the kind of that name, where there is one.
    pub(crate) fn spoken(&self) -> &'static str {
        match self {
            Self::Kind {
                kind, interface, ..
            } if registry::is_thru(kind) => {
                registry::flow_kind(interface).map_or(kind.name, |kind| kind.name)
            }
            _ => self.name(),
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
    /// Id of the HTTP request, which its client may have given.
    pub(crate) request_id: Arc<str>,
    /// Id of the question, which no client gives: no two have the same.
    pub(crate) number: Arc<str>,
    /// W3C trace context.
    pub(crate) traceparent: Arc<str>,
    /// The trace begins here: its client told none.
    pub(crate) begins: bool,
    /// Which endpoint.
    pub(crate) endpoint: &'static str,
    /// A program on this machine asks, from this address.
    pub(crate) local: Option<IpAddr>,
    /// Whoever is connected: a proxy, where there is one.
    pub(crate) address: Option<IpAddr>,
    /// The gateway wrote the body of the question, for a client of another API. None of its keys can be misspelled.
    pub(crate) translated: bool,
}

impl Meta {
    /// Of another question on the same connection.
    pub(crate) fn of_next(&self, traceparent: Arc<str>) -> Self {
        Self {
            traceparent,
            begins: true,
            number: uuid::Uuid::new_v4().to_string().into(),
            ..self.clone()
        }
    }
}

/// What becomes of a request when its caller goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Leave {
    /// It is cancelled.
    #[default]
    Cancel,
    /// It goes on, if it leaves something behind.
    Detach,
    /// It goes on for so many seconds, within which it may be joined again.
    Grace(i64),
}

impl Leave {
    /// Seconds that it waits for somebody; 0: it waits for nobody.
    pub(crate) fn grace(self) -> i64 {
        match self {
            Self::Grace(seconds) => seconds,
            _ => 0,
        }
    }
}

/// A request as a endpoint read it.
pub(crate) struct Call {
    pub(crate) target: Target,
    pub(crate) body: Body,
    /// The explicit workspace.
    pub(crate) workspace: Option<String>,
    /// Less time than the gateway gives.
    pub(crate) timeout: Option<Duration>,
    /// What becomes of the work when the caller goes away.
    pub(crate) leave: Leave,
    /// The endpoint gives one reply, not the parts.
    pub(crate) whole: bool,
    pub(crate) meta: Meta,
}

impl Call {
    /// Whether the caller wants one reply: because of the endpoint, or as it asks a flow for neither pieces nor
    /// explanations. Official clients that do not stream take the first frame for the answer.
    pub(crate) fn is_whole(&self) -> bool {
        let of_flow = matches!(self.target, Target::Kind { .. });
        self.whole || (of_flow && !self.asks("streaming") && !self.asks("explainable"))
    }

    pub(crate) fn asks(&self, key: &str) -> bool {
        self.body.get(key) == Some(&Value::Bool(true))
    }

    /// The span of the request: what is asked for it from now on belongs to it. Where its client told of a trace it is a part
    /// of that, and recorded if that is.
    pub(crate) fn span(&mut self, tracer: &Tracer) -> Span {
        let (endpoint, service) = (self.meta.endpoint, self.target.name());
        let (told, name) = (&*self.meta.traceparent, || format!("{endpoint} {service}"));
        let mut span = match self.meta.begins {
            true => tracer.root(SpanKind::Server, told, name),
            false => tracer.child(SpanKind::Server, Some(told), name),
        };
        let Some(traceparent) = span.traceparent() else {
            return span;
        };
        self.meta.traceparent = traceparent.into();
        span.say(attributes::ENDPOINT, endpoint);
        span.say(attributes::SERVICE, service);
        span.say(attributes::OPERATION, self.target.operation());
        span.say(attributes::REQUEST_ID, &self.meta.request_id);
        span.say(
            attributes::WORKSPACE,
            self.workspace.as_deref().unwrap_or_default(),
        );
        if let Target::Kind { flow, .. } = &self.target {
            span.say(attributes::FLOW, flow);
        }
        span
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        let spoken = |name| Target::kind(name, "f").unwrap().spoken();
        assert_eq!(spoken("thru/graph-rag"), "graph-rag");
        assert_eq!(spoken("thru/something-else"), "thru");
    }
}
