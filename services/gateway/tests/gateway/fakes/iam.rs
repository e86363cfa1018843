//! The iam service, and the audit log that it keeps.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_mesh::{Cx, RequestHandler, Responder, clock};
use tg_schemas::msg::*;
use tg_schemas::{Error, ErrorCode};
use tokio::sync::watch;

use crate::workspaces::of_workspaces;

/// Keys `tg_admin`, `tg_reader` and `tg_manager` (home `acme`) and what they may; counts what it is asked.
#[derive(Default)]
pub struct FakeIam {
    /// Operations asked for.
    pub asked: Mutex<Vec<IamRequest>>,
    /// From now on it answers nothing.
    pub silent: AtomicBool,
    /// Operations whose client gave the request a name, or none.
    pub named: Mutex<Vec<(String, bool)>>,
    /// What signs tokens.
    pub signing: Mutex<Vec<tg_jwt::SigningKey>>,
    /// The workspaces that it knows.
    pub workspaces: Mutex<Vec<WorkspaceRecord>>,
}

impl FakeIam {
    /// The keys that verify.
    fn keys(&self) -> tg_jwt::PublicKeys {
        self.signing.lock().iter().map(|key| key.public()).collect()
    }

    /// How often an operation was asked for.
    pub fn count(&self, operation: &str) -> usize {
        let asked = self.asked.lock();
        asked
            .iter()
            .filter(|ask| ask.operation == operation)
            .count()
    }
}

#[async_trait]
impl RequestHandler<IamRequest, IamResponse> for FakeIam {
    async fn serve(
        &self,
        cx: Cx,
        ask: IamRequest,
        mut out: Responder<IamResponse>,
    ) -> Result<(), Error> {
        self.asked.lock().push(ask.clone());
        let named = cx.request().is_some_and(|name| name != ask.request_id);
        self.named.lock().push((ask.operation.clone(), named));
        if self.silent.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        let refused = || Err(Error::typed("auth-failed", "no such key"));
        let mut response = IamResponse::default();
        match ask.operation.as_str() {
            "resolve-api-key" => {
                let (user, home) = match ask.api_key.as_str() {
                    "tg_admin" => ("admin", "default"),
                    "tg_reader" => ("reader", "acme"),
                    "tg_manager" => ("manager", "acme"),
                    "tg_neighbour" => ("neighbour", "beta"),
                    "tg_model" => {
                        response.resolved_scopes = vec!["llm".into(), "model:one".into()];
                        ("admin", "acme")
                    }
                    "tg_held" => {
                        response.resolved_scopes = vec!["agent".into(), "model:one".into()];
                        ("admin", "acme")
                    }
                    "tg_granting" => {
                        response.resolved_scopes = vec!["agent".into(), "tool:pay".into()];
                        ("admin", "acme")
                    }
                    "tg_scoped" => {
                        response.resolved_scopes = vec!["config:read".into()];
                        ("admin", "acme")
                    }
                    _ => return refused(),
                };
                response.resolved_user_id = user.into();
                response.resolved_default_workspace = home.into();
                response.resolved_key_id = format!("id of {user}");
                response.decision_ttl_seconds = 60;
            }
            "get-signing-key-public" => response.signing_key_public = self.keys().to_pem(),
            "resolve-token" => {
                let Ok(claims) = self.keys().verify(&ask.api_key, clock::now().timestamp()) else {
                    return refused();
                };
                response.resolved_user_id = claims.sub;
                response.resolved_default_workspace = claims.default_workspace;
                response.decision_ttl_seconds = 60;
            }
            "authorise" => {
                let resource: serde_json::Value =
                    serde_json::from_str(&ask.resource_json).unwrap_or_default();
                let at_home = resource["workspace"].as_str().is_none_or(|ws| ws == "acme");
                let reads = matches!(ask.capability.as_str(), "agent" | "role:reader")
                    || ask.capability.ends_with(":read");
                response.decision_allow = match ask.user_id.as_str() {
                    "admin" => true,
                    // By a grant there, which is none for the system.
                    "manager" => resource["workspace"] == "acme",
                    "neighbour" => resource["workspace"] == "beta",
                    "reader" => at_home && reads && ask.capability != "metrics:read",
                    _ => false,
                };
                response.decision_ttl_seconds = 60;
            }
            "whoami" => {
                response.user = Some(UserRecord {
                    id: ask.actor,
                    ..UserRecord::default()
                });
            }
            "bootstrap-status" => response.bootstrap_available = true,
            "login" if ask.username == "slow" => return std::future::pending().await,
            "login" if ask.username == "hasty" => {
                let text = "too many attempts, try again in 30 seconds";
                return Err(Error::new(ErrorCode::Busy, text));
            }
            "login" if (&*ask.username, &*ask.password) == ("ada", "open sesame") => {
                let claims = tg_jwt::Claims::new("admin", "default", 0, clock::now().timestamp());
                let signing = self.signing.lock();
                let token = signing.first().map(|key| key.sign(&claims));
                response.jwt = token.expect("a key").expect("a token");
                response.jwt_expires = "2999-01-01T00:00:00+00:00".into();
            }
            "bootstrap" => response.bootstrap_admin_api_key = "tg_admin".into(),
            operation if operation.contains("-workspace") => {
                response = of_workspaces(&mut self.workspaces.lock(), &ask)?;
            }
            _ => return refused(),
        }
        out.send(response).await
    }
}

/// Keeps what the gateway says happened; fails the first few times.
pub struct FakeAudit {
    /// What came, also what failed.
    pub came: watch::Sender<Vec<AuditRequest>>,
    /// So many are still to fail.
    pub fails: Mutex<usize>,
}

impl Default for FakeAudit {
    fn default() -> Self {
        Self {
            came: watch::channel(Vec::new()).0,
            fails: Mutex::default(),
        }
    }
}

#[async_trait]
impl RequestHandler<AuditRequest, AuditResponse> for FakeAudit {
    async fn serve(
        &self,
        _cx: Cx,
        ask: AuditRequest,
        mut out: Responder<AuditResponse>,
    ) -> Result<(), Error> {
        self.came.send_modify(|all| all.push(ask));
        let failing = {
            let mut fails = self.fails.lock();
            let failing = *fails > 0;
            *fails = fails.saturating_sub(1);
            failing
        };
        if failing {
            return Err(Error::new(ErrorCode::Unavailable, "not now"));
        }
        out.send(AuditResponse::default()).await
    }
}
