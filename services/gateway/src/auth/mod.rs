//! Who asks, and whether they may. The iam service decides; the gateway remembers for at most a minute, and forgets
//! everything when iam says that something was revoked: a row of configuration changes then, so that a lost notice
//! is noticed.
//!
//! A token is never kept, logged or passed on except to the iam service; every refusal looks the same.

mod cache;
mod doubt;
pub(crate) mod guard;
pub(crate) mod models;
mod open_workspace;
mod revalidation;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tg_mesh::{Answer, Ask, Deadline, Mesh};
use tg_schemas::ErrorCode;
use tg_schemas::msg::{IamRequest, IamResponse};
use tg_schemas::processors::iam_svc;
use tg_schemas::roles::{ROLES, TOOL};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::RequestError;
use crate::options::{AuthMode, GatewayOptions};
use crate::registry::Gate;
use crate::seldom::Seldom;
use cache::Cache;

pub(crate) use revalidation::Lapse;

/// Reserved workspace, type and key of the row that iam changes when something was revoked.
pub(crate) const REVOCATION: (&str, &str, &str) = ("__iam__", "iam-revocation", "epoch");

/// Longest time a decision is remembered.
const MEMORY: Duration = Duration::from_secs(60);
/// How long the answer of an iam service that names no time is remembered.
const UNNAMED: Duration = Duration::from_secs(1);
/// Longest wait for the iam service.
const TIMEOUT: Duration = Duration::from_secs(15);
/// How many of those who go on are asked about at a time.
const TURNS: usize = 32;

/// An authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// User id.
    pub(crate) id: Arc<str>,
    /// Where requests go that name no workspace.
    pub(crate) workspace: Arc<str>,
    /// The only capabilities that what it came with has of the user's; `None`: all of them.
    pub(crate) scopes: Option<Arc<[String]>>,
    /// What policies are to know of the user, where a token says so.
    pub(crate) context: Option<Arc<Value>>,
    /// What it came with, by a name that opens nothing: `key:` and the key's id, or `token`.
    pub(crate) credential: Arc<str>,
    /// What it came with, to be looked at again.
    pub(crate) key: Key,
    /// How long what is known of it holds.
    pub(crate) until: Instant,
    /// The revocations that were known when it was found.
    pub(crate) generation: u64,
}

impl Identity {
    /// Somebody of whom no more is known, nor needs to be.
    pub(crate) fn plain(id: &str, workspace: &str) -> Self {
        Self {
            id: id.into(),
            workspace: workspace.into(),
            scopes: None,
            context: None,
            credential: "".into(),
            key: Key::default(),
            until: Instant::now() + MEMORY,
            generation: 0,
        }
    }

    /// Tools that agents use for the caller without asking first, by what it came with.
    pub(crate) fn granted(&self) -> Vec<String> {
        let scopes = self.scopes.as_deref().unwrap_or_default().iter();
        scopes
            .filter_map(|scope| scope.strip_prefix(TOOL).map(str::to_owned))
            .collect()
    }
}

/// A credential. It is never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Key(Option<Arc<str>>);

impl Key {
    /// For the iam service only.
    pub(super) fn reveal(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// What a capability is needed on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Resource {
    /// Workspace.
    pub(crate) workspace: Option<String>,
    /// Flow in it.
    pub(crate) flow: Option<String>,
    /// Workspace that a system level operation is about.
    pub(crate) about: Option<String>,
}

impl Resource {
    /// A workspace.
    pub(crate) fn workspace(workspace: &str) -> Self {
        Self {
            workspace: Some(workspace.to_owned()),
            ..Self::default()
        }
    }

    /// A flow.
    pub(crate) fn flow(workspace: &str, flow: &str) -> Self {
        Self {
            flow: Some(flow.to_owned()),
            ..Self::workspace(workspace)
        }
    }
}

type KeyHash = [u8; 32];
type Decision = (Arc<str>, &'static str, Resource);

/// Asks the iam service and remembers what it said.
pub(crate) struct Auth {
    mesh: Mesh,
    auth_mode: AuthMode,
    anonymous: Identity,
    keys: Cache<KeyHash, Identity>,
    decisions: Cache<Decision, bool>,
    token_keys: tokens::Keys,
    /// Counts what was revoked.
    generation: watch::Sender<u64>,
    /// Held by who asks about something that goes on.
    turns: tokio::sync::Semaphore,
    refusals: Seldom,
}

impl Auth {
    /// Reads mode and bounds from the options.
    pub(crate) fn new(mesh: Mesh, options: &GatewayOptions) -> Self {
        Self {
            mesh,
            auth_mode: options.auth_mode,
            anonymous: Identity::plain("anonymous", &options.default_workspace),
            keys: Cache::new(options.settings.cache_entries),
            decisions: Cache::new(options.settings.cache_entries),
            token_keys: tokens::Keys::default(),
            generation: watch::channel(0).0,
            turns: tokio::sync::Semaphore::new(TURNS),
            refusals: Seldom::default(),
        }
    }

    /// Forgets everything whenever iam revokes something. Runs until the process stops.
    pub(crate) async fn watch(self: Arc<Self>) {
        let config = self.mesh.config().clone();
        let mut changes = config.changes();
        let row = || config.get(REVOCATION.0, REVOCATION.1, REVOCATION.2);
        let mut seen = row();
        while changes.changed().await.is_ok() {
            let now = row();
            if now != seen {
                seen = now;
                // First the count: what is on the way is older, and not remembered.
                self.generation.send_modify(|count| *count += 1);
                self.keys.clear();
                self.decisions.clear();
                self.token_keys.clear();
                // Who was told meanwhile looks at what is remembered, which is nothing.
                self.generation.send_modify(|count| *count += 1);
            }
        }
    }

    fn generation(&self) -> u64 {
        *self.generation.borrow()
    }

    /// Whether everybody may come in.
    pub(crate) fn open(&self) -> bool {
        self.auth_mode == AuthMode::None
    }

    /// Who holds this token; an absent or empty one is the anonymous attempt.
    pub(crate) async fn authenticate(&self, token: Option<&str>) -> Result<Identity, RequestError> {
        if self.open() {
            return Ok(self.anonymous.clone());
        }
        match token.filter(|token| !token.is_empty()) {
            None => self.resolve("authenticate-anonymous", "").await,
            Some(key) if key.starts_with("tg_") => self.remembered("resolve-api-key", key).await,
            Some(token) if tg_jwt::is_plausible(token) => {
                self.remembered("resolve-token", token).await
            }
            Some(_) => Err(RequestError::AuthFailure),
        }
    }

    /// Whose credential it is, as it was told a short while ago, or is now.
    async fn remembered(
        &self,
        operation: &'static str,
        key: &str,
    ) -> Result<Identity, RequestError> {
        let hash: KeyHash = Sha256::digest(key.as_bytes()).into();
        if let Some(identity) = self.keys.get(&hash, Instant::now()) {
            return Ok(identity);
        }
        let claims = match operation {
            "resolve-token" => {
                let ask = async || self.public_keys().await;
                Some(self.token_keys.verify(key, ask).await?)
            }
            _ => None,
        };
        let context = claims.and_then(|claims| claims.user_context);
        let identity = Identity {
            context: context.map(|context| Arc::new(Value::Object(context))),
            ..self.resolve(operation, key).await?
        };
        if identity.generation == self.generation() {
            let now = Instant::now();
            let memory = identity.until.saturating_duration_since(now);
            self.keys.put(hash, identity.clone(), now, memory);
        }
        Ok(identity)
    }

    /// What verifies tokens, as the iam service has it now.
    async fn public_keys(&self) -> Result<String, RequestError> {
        let ask = IamRequest {
            operation: "get-signing-key-public".to_owned(),
            ..IamRequest::default()
        };
        Ok(self.ask(ask).await?.signing_key_public)
    }

    async fn resolve(&self, operation: &str, key: &str) -> Result<Identity, RequestError> {
        let generation = self.generation();
        let response = self
            .ask(IamRequest {
                operation: operation.to_owned(),
                api_key: key.to_owned(),
                ..IamRequest::default()
            })
            .await?;
        let complete = !response.resolved_user_id.is_empty()
            && !response.resolved_default_workspace.is_empty();
        if !complete {
            return Err(RequestError::AuthFailure);
        }
        // As long as the key lasts, if the service says how long that is.
        let memory = match u64::try_from(response.decision_ttl_seconds) {
            Ok(seconds @ 1..) => Duration::from_secs(seconds).min(MEMORY),
            _ => UNNAMED,
        };
        Ok(Identity {
            id: response.resolved_user_id.into(),
            workspace: response.resolved_default_workspace.into(),
            scopes: Some(response.resolved_scopes.into())
                .filter(|scopes: &Arc<[String]>| !scopes.is_empty()),
            context: None,
            credential: match (operation, response.resolved_key_id.as_str()) {
                ("resolve-token", _) => "token".into(),
                (_, "") => "".into(),
                (_, id) => format!("key:{id}").into(),
            },
            key: Key(Some(key.into())),
            until: Instant::now() + memory,
            generation,
        })
    }

    /// Whether the caller may. A failure of the iam service is a refusal.
    pub(crate) async fn authorise(
        &self,
        identity: &Identity,
        gate: Gate,
        resource: &Resource,
    ) -> Result<(), RequestError> {
        let capability = match gate {
            Gate::Needs(capability) if !self.open() => capability,
            _ => return Ok(()),
        };
        let within = |scopes: &Arc<[String]>| scopes.iter().any(|scope| scope == capability);
        if !identity.scopes.as_ref().is_none_or(within) {
            return Err(RequestError::AccessDenied);
        }
        let decision = (identity.id.clone(), capability, resource.clone());
        let allowed = match self.decisions.get(&decision, Instant::now()) {
            Some(allowed) => allowed,
            None => self.decide(decision).await?,
        };
        if allowed {
            Ok(())
        } else {
            Err(RequestError::AccessDenied)
        }
    }

    /// The roles that the caller has in a workspace, separated by spaces: by what it came with, too, where that has but some of
    /// the user's capabilities.
    pub(crate) async fn roles(
        &self,
        identity: &Identity,
        resource: &Resource,
    ) -> Result<String, RequestError> {
        let asked = ROLES.map(|(name, capability)| async move {
            match self
                .authorise(identity, Gate::Needs(capability), resource)
                .await
            {
                Ok(()) => Ok(Some(name)),
                Err(RequestError::AccessDenied) => Ok(None),
                Err(fault) => Err(fault),
            }
        });
        let had = futures::future::try_join_all(asked).await?;
        let had: Vec<&str> = had.into_iter().flatten().collect();
        Ok(had.join(" "))
    }

    async fn decide(&self, decision: Decision) -> Result<bool, RequestError> {
        let generation = self.generation();
        let (user, capability, resource) = &decision;
        let mut on = Map::new();
        if let Some(workspace) = &resource.workspace {
            on.insert("workspace".into(), json!(workspace));
        }
        if let Some(flow) = &resource.flow {
            on.insert("flow".into(), json!(flow));
        }
        let parameters = resource
            .about
            .as_ref()
            .map_or(json!({}), |workspace| json!({"workspace": workspace}));
        let response = self
            .ask(IamRequest {
                operation: "authorise".to_owned(),
                user_id: user.to_string(),
                actor: user.to_string(),
                capability: (*capability).to_owned(),
                resource_json: Value::Object(on).to_string(),
                parameters_json: parameters.to_string(),
                ..IamRequest::default()
            })
            .await?;
        let seconds = u64::try_from(response.decision_ttl_seconds).unwrap_or(0);
        let memory = Duration::from_secs(seconds).min(MEMORY);
        if generation == self.generation() {
            self.decisions
                .put(decision, response.decision_allow, Instant::now(), memory);
        }
        Ok(response.decision_allow)
    }

    async fn ask(&self, request: IamRequest) -> Result<IamResponse, RequestError> {
        let ask = Ask {
            deadline: Some(Deadline::after(TIMEOUT)),
            ..Ask::default()
        };
        let answer: Answer<IamResponse> = self.mesh.ask(&iam_svc::IAM.of_system(), &request, ask);
        answer.last().await.map_err(|error| {
            if let Some(left_out) = self.refusals.pass(Instant::now()) {
                tracing::info!(kind = %error.kind, operation = %request.operation, left_out, "iam refused");
            }
            refusal(&error.kind)
        })
    }
}

/// A credential is wrong only if iam says so; that iam cannot be asked says nothing about it.
fn refusal(kind: &str) -> RequestError {
    match ErrorCode::from_wire(kind) {
        ErrorCode::Busy
        | ErrorCode::Unavailable
        | ErrorCode::NobodyServes
        | ErrorCode::Timeout
        | ErrorCode::Interrupted
        | ErrorCode::Cancelled
        | ErrorCode::Storage => RequestError::Unchecked,
        _ => RequestError::AuthFailure,
    }
}
