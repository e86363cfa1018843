//! What the gateway decides: who was let do what, and who was refused. What a request holds is no part of it, but for ids
//! of what it changes.

use serde_json::Value;
use tg_clients::audit::{ALLOWED, READ, REFUSED, STRANGER};
use tg_schemas::WorkspaceId;
use tg_schemas::msg::AuditEntry;

use crate::auth::Identity;
use crate::call::{Call, Leave, Meta, Target};
use crate::dispatch::is_of_all;
use crate::engine::translate::Body;
use crate::error::RequestError;
use crate::iam_call;
use crate::registry::{self, Gate, Home, REMAKE};
use crate::rejoin::Noted;
use crate::state::App;
use crate::trail;

/// By service and a word of the operation: the key of a body that says what it changes, and what that is. Other keys of the
/// body say nothing, whatever a caller puts there.
const TARGETS: [(&str, &str, &str, &str); 8] = [
    ("librarian", "upload", "upload-id", "upload"),
    ("librarian", "processing", "processing-id", "processing"),
    ("librarian", "", "document-id", "document"),
    ("flow", "blueprint", "blueprint-name", "blueprint"),
    ("flow", "", "flow-id", "flow"),
    ("collection-management", "", "collection", "collection"),
    ("knowledge", "", "id", "core"),
    (registry::REQUESTS, "-run", "run", "run"),
];

/// A request that is about to be decided on.
pub(crate) struct Asked(Option<AuditEntry>);

impl App {
    /// Tells what was decided until the endpoints close.
    pub(crate) async fn tell_decisions(self: std::sync::Arc<Self>) {
        self.trail.run(&self.closing).await;
    }

    /// Tells the last of it.
    pub(crate) async fn tell_last_decisions(&self) {
        self.trail.close().await;
    }

    /// Who makes a request, if it is not one too many of theirs.
    pub(crate) async fn known(
        &self,
        token: Option<&str>,
        meta: &Meta,
    ) -> Result<Identity, RequestError> {
        let identity = self.recognised(token, meta).await?;
        self.pace.of_caller(&identity)?;
        Ok(identity)
    }

    /// Who holds a credential, of which nothing is asked yet. That nobody does is written down.
    pub(crate) async fn recognised(
        &self,
        token: Option<&str>,
        meta: &Meta,
    ) -> Result<Identity, RequestError> {
        self.pace.of_address(meta.address)?;
        let known = self.auth.authenticate(token).await;
        known.inspect_err(|fault| self.not_known(token, fault, meta))
    }

    /// Writes down that somebody is not known.
    pub(crate) fn not_known(&self, token: Option<&str>, fault: &RequestError, meta: &Meta) {
        if !self.trail.is_on() {
            return;
        }
        let reason = match fault {
            RequestError::AuthFailure if token.is_none_or(str::is_empty) => "no-credential",
            RequestError::AuthFailure => "bad-credential",
            _ => "unchecked",
        };
        self.trail.note(AuditEntry {
            operation: "authenticate".to_owned(),
            reason: reason.to_owned(),
            ..begun(STRANGER, meta)
        });
    }

    /// What is asked for, before it is decided; nothing where there is nothing to decide.
    pub(crate) fn asked(&self, identity: &Identity, call: &Call) -> Asked {
        let gate = call.target.gate();
        if !self.trail.is_on() || gate == Gate::Public {
            return Asked(None);
        }
        let (name, operation) = (call.target.name(), call.target.operation());
        let kind = kind_of(&call.target, gate);
        let (target_kind, target) = match kind {
            ALLOWED => target(&call.target, &call.body),
            _ => Default::default(),
        };
        Asked(Some(AuditEntry {
            workspace: workspace(identity, call),
            operation: match operation {
                "" => name.to_owned(),
                operation => format!("{name}/{operation}"),
            },
            target_kind,
            target,
            ..by(identity, kind, &call.meta)
        }))
    }

    /// The same for bulk data and metrics.
    pub(crate) fn asked_for(
        &self,
        identity: &Identity,
        (capability, operation): (&str, String),
        workspace: &str,
        meta: &Meta,
    ) -> Asked {
        if !self.trail.is_on() {
            return Asked(None);
        }
        Asked(Some(AuditEntry {
            workspace: workspace.to_owned(),
            operation,
            ..by(identity, kind_by(capability), meta)
        }))
    }

    /// Notes, when it is called, that a caller ended the run that they had joined.
    pub(crate) fn cancel_of(&self, identity: &Identity, call: &Call, run: &str) -> Noted {
        let mut body = call.body.clone();
        body.insert("operation".to_owned(), "cancel-run".into());
        body.insert("run".to_owned(), run.into());
        let asked = Target::service(registry::REQUESTS, &body).map(|target| {
            let cancel = Call {
                target,
                body,
                workspace: call.workspace.clone(),
                timeout: None,
                leave: Leave::Cancel,
                whole: false,
                meta: call.meta.clone(),
            };
            self.asked(identity, &cancel)
        });
        let trail = self.trail.clone();
        Box::new(move || {
            if let Ok(Asked(Some(entry))) = asked {
                trail.note(entry);
            }
        })
    }

    /// What was decided. That a request failed for another reason than access is no decision.
    pub(crate) fn decided(&self, asked: Asked, fault: Option<&RequestError>) {
        let Some(entry) = asked.0 else { return };
        let reason = match fault {
            None => "",
            Some(RequestError::AccessDenied | RequestError::ModelNotAllowed) => "no-capability",
            Some(RequestError::WorkspaceNotFound) => "no-workspace",
            Some(RequestError::AuthFailure) => "bad-credential",
            Some(RequestError::Unchecked) => "unchecked",
            Some(_) => return,
        };
        self.trail.note(AuditEntry {
            // What cannot be the name of one is told by nobody.
            workspace: match WorkspaceId::new(&entry.workspace) {
                Ok(_) => entry.workspace,
                Err(_) => String::new(),
            },
            reason: reason.to_owned(),
            kind: match reason {
                "" => entry.kind,
                _ => REFUSED.to_owned(),
            },
            ..entry
        });
    }
}

fn by(identity: &Identity, kind: &str, meta: &Meta) -> AuditEntry {
    AuditEntry {
        actor: identity.id.to_string(),
        credential: identity.credential.to_string(),
        ..begun(kind, meta)
    }
}

fn begun(kind: &str, meta: &Meta) -> AuditEntry {
    AuditEntry {
        kind: kind.to_owned(),
        door: meta.endpoint.to_owned(),
        address: trail::shown(meta.address),
        request_id: meta.number.to_string(),
        client_request_id: match meta.request_id == meta.number {
            true => String::new(),
            false => meta.request_id.to_string(),
        },
        ..AuditEntry::default()
    }
}

/// Whether a request changes something, or reads.
fn kind_of(target: &Target, gate: Gate) -> &'static str {
    match (target, gate) {
        (Target::Service { service, .. }, _) if service.name == "iam" => {
            let reads = ["list-", "get-", "whoami", "resolve-"];
            let operation = target.operation();
            match reads.iter().any(|word| operation.starts_with(word)) {
                true => READ,
                false => ALLOWED,
            }
        }
        // The head of a day is kept, and is one of a chain.
        (_, Gate::Needs(_)) if is_signing(target) => ALLOWED,
        // It costs, and is kept.
        (_, Gate::Needs(_)) if target.operation() == REMAKE => ALLOWED,
        (_, Gate::Needs(capability)) => kind_by(capability),
        _ if matches!(
            target.operation(),
            "cancel-request" | "cancel-run" | "confirm-run"
        ) =>
        {
            ALLOWED
        }
        _ => READ,
    }
}

fn is_signing(target: &Target) -> bool {
    (target.name(), target.operation()) == ("traces", "sign-traces")
}

fn kind_by(capability: &str) -> &'static str {
    let changes = capability.ends_with(":write") || capability.ends_with(":admin");
    // Tools of others may do anything.
    match changes || capability == "mcp" {
        true => ALLOWED,
        false => READ,
    }
}

/// The workspace that a request is about.
fn workspace(identity: &Identity, call: &Call) -> String {
    let operation = call.target.operation();
    if let Target::Service { service, .. } = &call.target
        && matches!(service.home, Home::System(_))
    {
        let resource = iam_call::resource(service.name, operation, &call.body, identity);
        return resource.ok().and_then(|one| one.about).unwrap_or_default();
    }
    if let Target::Service { service, .. } = &call.target
        && service.home == Home::Gateway
        && !is_of_all(call).unwrap_or_default()
    {
        // It is about the caller alone, and nobody looked whether what the body names is a workspace.
        return identity.workspace.to_string();
    }
    let named = call.workspace.as_deref().filter(|name| !name.is_empty());
    named.unwrap_or(&identity.workspace).to_owned()
}

/// What a request changes: kind and id.
fn target(target: &Target, body: &Body) -> (String, String) {
    if let Target::Kind { flow, .. } = target {
        return ("flow".to_owned(), flow.clone());
    }
    let text = |value: &Value, key: &str| value.get(key)?.as_str().map(str::to_owned);
    let operation = target.operation();
    if target.name() == "config" {
        let rows = match operation {
            "delete" => body.get("keys"),
            _ => body.get("values"),
        };
        let rows = rows
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        let first = rows.first();
        let row = first.and_then(|row| Some((text(row, "type")?, text(row, "key")?)));
        return row.map_or_else(Default::default, |(kind, key)| {
            let more = match rows.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            ("config".to_owned(), format!("{kind}/{key}{more}"))
        });
    }
    let mut fitting = TARGETS.iter();
    let fitting = fitting
        .find(|(service, word, ..)| *service == target.name() && operation.contains(word))
        .and_then(|(_, _, key, kind)| Some(((*kind).to_owned(), text_of(body, key)?)));
    fitting.unwrap_or_default()
}

fn text_of(body: &Body, key: &str) -> Option<String> {
    Some(body.get(key)?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_changes_something_is_told_from_what_reads() {
        let kind = |service: &str, operation: &str| {
            let body = json!({"operation": operation});
            let target = Target::service(service, body.as_object().unwrap())
                .ok()
                .unwrap();
            kind_of(&target, target.gate())
        };
        for (service, operation, is) in [
            ("iam", "create-user", ALLOWED),
            ("iam", "change-password", ALLOWED),
            ("traces", "sign-traces", ALLOWED),
            ("traces", "list-ended-runs", READ),
            ("iam", "mint-token", ALLOWED),
            ("iam", "list-api-keys", READ),
            ("iam", "resolve-effective-permissions", READ),
            ("config", "put", ALLOWED),
            ("config", "get", READ),
            ("requests", "cancel-request", ALLOWED),
            ("requests", "cancel-run", ALLOWED),
            ("requests", "confirm-run", ALLOWED),
            ("requests", "list-requests", READ),
            ("requests", "read-run", READ),
            ("requests", "replay-run", READ),
            ("requests", "expand-summary", READ),
            ("requests", "remake-summary", ALLOWED),
            ("audit", "list-events", READ),
        ] {
            assert_eq!(kind(service, operation), is, "{service}/{operation}");
        }
        let thru = |name: &str| {
            let target = Target::kind(name, "f").ok().unwrap();
            kind_of(&target, target.gate())
        };
        assert_eq!(thru("text-load"), ALLOWED);
        assert_eq!(thru("thru/text-load"), ALLOWED);
        assert_eq!(thru("thru/mcp-tool"), ALLOWED);
        assert_eq!(thru("agent"), READ);
    }

    #[test]
    fn who_asks_for_the_runs_of_all_asks_about_a_workspace() {
        let about = |body: Value| {
            let body = body.as_object().cloned().unwrap();
            let call = Call {
                target: Target::service("requests", &body).ok().unwrap(),
                body,
                workspace: Some("acme".to_owned()),
                timeout: None,
                leave: Leave::Cancel,
                whole: false,
                meta: Meta {
                    request_id: "r".into(),
                    number: "1".into(),
                    traceparent: "".into(),
                    begins: true,
                    endpoint: "rest",
                    local: None,
                    address: None,
                    translated: false,
                },
            };
            workspace(&Identity::plain("u", "home"), &call)
        };
        for operation in [
            "list-runs",
            "list-tasks",
            "read-run",
            "replay-run",
            "cancel-run",
            "expand-summary",
            "remake-summary",
        ] {
            let run = json!({"operation": operation, "run": "r", "all": true});
            assert_eq!(about(run), "acme", "{operation}");
            assert_eq!(about(json!({"operation": operation, "run": "r"})), "home");
        }
        let requests = json!({"operation": "list-requests", "all": true});
        assert_eq!(about(requests), "home", "nobody looked at it");
    }

    #[test]
    fn what_is_changed_is_named_by_ids_only() {
        let named = |service: &str, body: Value| {
            let body = body.as_object().unwrap();
            let of = Target::service(service, body).ok().unwrap();
            target(&of, body)
        };
        let config = json!({"operation": "put", "values": [
            {"type": "mcp", "key": "tool", "value": "hunter2"}]});
        assert_eq!(
            named("config", config),
            ("config".into(), "mcp/tool".into())
        );
        let more = json!({"operation": "delete", "values": [{"type": "a", "key": "b"}],
            "keys": [{"type": "mcp", "key": "tool"}, {"type": "mcp", "key": "evil"}]});
        assert_eq!(
            named("config", more),
            ("config".into(), "mcp/tool and 1 more".into())
        );
        let decoy =
            json!({"operation": "delete-collection", "collection": "c", "document-id": "x"});
        assert_eq!(
            named("collection-management", decoy),
            ("collection".into(), "c".into())
        );
        let flow =
            json!({"operation": "start-flow", "flow-id": "f", "parameters": {"key": "hunter2"}});
        assert_eq!(named("flow", flow), ("flow".into(), "f".into()));
        let run = json!({"operation": "cancel-run", "run": "r"});
        assert_eq!(named("requests", run), ("run".into(), "r".into()));
        let user = json!({"operation": "create-user", "user": {"password": "hunter2"}});
        assert_eq!(named("iam", user), (String::new(), String::new()));
    }
}
