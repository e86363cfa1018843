//! A request as an endpoint read it: what is asked for, of which workspace, and how it is known in traces.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

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
    pub(crate) fn is_whole(&self) -> bool {
        let of_flow = matches!(self.target, Target::Kind { .. });
        self.whole || (of_flow && !self.asks("streaming") && !self.asks("explainable"))
    }

    pub(crate) fn asks(&self, key: &str) -> bool {
        self.body.get(key) == Some(&Value::Bool(true))
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
    }
}
