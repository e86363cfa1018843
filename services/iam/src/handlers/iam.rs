//! The queue of `iam-svc`: one operation a question. Where a workspace opens or closes, the registry in configuration
//! follows the directory; each such operation may be repeated after a crash and then completes.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rand::RngCore;
use tg_clients::audit::AuditBuffer;
use tg_mesh::Responder;
use tg_mesh::leased_store::off_runtime;
use tg_mesh::{Cx, LeasedStore, RequestHandler, TaskKind, clock};
use tg_schemas::msg::{IamRequest, IamResponse};
use tg_schemas::{Error, ErrorCode};
use tg_storage::StorageError;
use tokio::sync::oneshot;

use crate::bootstrap_code::CodeFile;
use crate::cached::{CachedDirectory, Operation};
use crate::engine::{self, Call, Fresh};
use crate::external::External;
use crate::login::{Passwords, Worked};
use crate::oidc::Issuer;
use crate::options::AuthMode;
use crate::places::{Place, Places};
use crate::secret::ApiKey;
use crate::{generations, remote, revocations};

/// How long an answer waits until everybody was told of a revocation.
const TELLING: Duration = Duration::from_secs(3);

/// What the audit calls a token of an external issuer.
const ISSUER: &str = "issuer";

/// Answers on the system queue.
pub(crate) struct Handler {
    pub(crate) store: Arc<LeasedStore<CachedDirectory>>,
    pub(crate) auth_mode: AuthMode,
    /// Users of one home workspace at most.
    pub(crate) workspace_users: usize,
    pub(crate) code: CodeFile,
    pub(crate) passwords: Passwords,
    /// Whose tokens are good for a login.
    pub(crate) issuer: Option<Issuer>,
    /// For what takes long.
    pub(crate) places: Places,
    /// What was refused, until it is written down.
    pub(crate) refusals: Arc<AuditBuffer>,
}

#[async_trait]
impl RequestHandler<IamRequest, IamResponse> for Handler {
    async fn serve(
        &self,
        cx: Cx,
        ask: IamRequest,
        mut out: Responder<IamResponse>,
    ) -> Result<(), Error> {
        let place = self.places.of(&ask.operation, &ask.client_ip)?;
        // Before the store is held: the issuer may have to be waited for.
        let external = self.external(&ask).await;
        let service = self.store.get().await?;
        let ask = Arc::new(match &external {
            // Who it is is known from here on, for the audit.
            Ok(Some(who)) => IamRequest {
                actor: who.id.clone(),
                credential: ISSUER.to_owned(),
                ..ask
            },
            _ => ask,
        });
        let answer = match external {
            Ok(external) => {
                let (service, ask) = (service.clone(), ask.clone());
                self.answer(cx, service, ask, external, place).await
            }
            Err(error) => Err(error),
        };
        let answer = answer.inspect_err(|error| {
            if engine::audit::acts(&ask.operation) {
                self.refusals.note(service.refused(&ask, error));
            }
        })?;
        drop(service);
        if !answer.bootstrap_admin_api_key.is_empty() {
            let code = self.code.clone();
            let removed = off_runtime(move || {
                code.remove();
                Ok::<_, StorageError>(())
            });
            let _ = removed.await;
        }
        out.send(answer).await
    }
}

impl Handler {
    async fn answer(
        &self,
        cx: Cx,
        service: Arc<CachedDirectory>,
        ask: Arc<IamRequest>,
        external: Option<External>,
        place: Option<Place>,
    ) -> Result<IamResponse, Error> {
        let vouched = ask.operation == "bootstrap" && self.vouched(&ask).await;
        let worked = match self.auth_mode {
            AuthMode::None => Worked::default(),
            AuthMode::Iam if external.is_some() => Worked::default(),
            AuthMode::Iam => self.passwords.work(&service, &ask).await?,
        };
        let work = Work {
            service,
            store: self.store.clone(),
            run: match self.auth_mode {
                AuthMode::None => engine::run_anonymous,
                AuthMode::Iam => engine::run,
            },
            call: Call {
                workspace_users: self.workspace_users,
                external,
                ..call(&cx, vouched, worked, &ask)?
            },
            ask,
            cx,
            place,
        };
        work.answer().await
    }

    /// For whom an external issuer answers, where somebody logs in with a token.
    async fn external(&self, ask: &IamRequest) -> Result<Option<External>, Error> {
        if self.auth_mode == AuthMode::None || ask.operation != "login" || ask.api_key.is_empty() {
            return Ok(None);
        }
        let issuer = self.issuer.as_ref().ok_or_else(engine::auth_failed)?;
        issuer.login(ask).await.map(Some)
    }

    /// Whether the first key may be had: by who has the code, and by a program on the gateway's own machine, which
    /// is the only one of whom the gateway tells the address.
    async fn vouched(&self, ask: &IamRequest) -> bool {
        let address = ask.client_ip.parse::<IpAddr>();
        if address.is_ok_and(|address| address.is_loopback()) {
            return true;
        }
        let (code, given) = (self.code.clone(), ask.password.clone());
        off_runtime(move || Ok::<_, StorageError>(code.is(&given)))
            .await
            .unwrap_or(false)
    }
}

/// One question in progress.
struct Work {
    cx: Cx,
    service: Arc<CachedDirectory>,
    /// Where that is, as long as this process has it.
    store: Arc<LeasedStore<CachedDirectory>>,
    run: Operation,
    call: Call,
    ask: Arc<IamRequest>,
    /// Held until the last of it is done, whoever still waits for that.
    place: Option<Place>,
}

impl Work {
    async fn answer(&self) -> Result<IamResponse, Error> {
        match self.ask.operation.as_str() {
            "delete-workspace" => self.delete_workspace().await,
            "restore-workspace" => self.restore_workspace().await,
            "create-workspace" | "enable-workspace" | "disable-workspace" | "update-workspace" => {
                self.clear_left().await?;
                let answer = self.perform(self.run).await?;
                if let Some(workspace) = &answer.workspace {
                    if workspace.enabled {
                        remote::register(&self.cx, &workspace.id).await?;
                    } else {
                        remote::deregister(&self.cx, &workspace.id).await?;
                    }
                }
                Ok(answer)
            }
            "login" | "mint-token" => {
                let answer = self.perform(self.run).await?;
                // Before the token is told.
                let user = match (&self.call.proof, &self.call.external) {
                    (Some(proof), _) => proof.user_id.clone(),
                    (None, Some(who)) => who.id.clone(),
                    (None, None) => self.service.meant(&self.ask),
                };
                self.service.came_in(&user, &self.ask).await?;
                Ok(answer)
            }
            _ => self.perform(self.run).await,
        }
    }

    /// First its keys are refused, then what runs in it ends, then nothing of it is left.
    async fn delete_workspace(&self) -> Result<IamResponse, Error> {
        let id = self.service.workspace(&self.ask)?;
        let key = self.service.key(&id);
        self.perform(self.run).await?;
        remote::clear(&self.cx, &id).await?;
        if key.is_some() && self.service.key(&id) != key {
            // The reaper was quicker, and who has the name now is another.
            return Ok(IamResponse::default());
        }
        let removed = self.perform(|directory, _, ask| engine::remove(directory, ask));
        match removed.await {
            // Quicker still.
            Err(error) if error.code() == ErrorCode::NotFound => Ok(IamResponse::default()),
            outcome => outcome,
        }
    }

    /// What a deletion that was cut short left is no workspace that could be made or changed.
    async fn clear_left(&self) -> Result<(), Error> {
        let Some(input) = &self.ask.workspace_record else {
            return Ok(());
        };
        let (mesh, service, id) = (self.cx.mesh.clone(), self.service.clone(), input.id.clone());
        let (done, result) = oneshot::channel();
        let place = self.place.clone();
        // In a task of its own, as every change.
        self.cx.mesh.spawn(TaskKind::Handler, async move {
            let _place = place;
            let _ = done.send(generations::clear_left(&mesh, &service, &id).await);
        });
        result.await.map_err(|_| stopping())?
    }

    /// First its record, so that a crash leaves something that can be done again; then all that configuration kept.
    async fn restore_workspace(&self) -> Result<IamResponse, Error> {
        let was_there = self.service.workspace(&self.ask).is_ok();
        let answer = self.perform(self.run).await?;
        let id = answer.workspace.as_ref().map_or("", |one| one.id.as_str());
        match remote::restore(&self.cx, id).await {
            Ok(()) => {
                self.perform(engine::restored).await?;
                Ok(answer)
            }
            Err(error) => {
                if !was_there && !error.code().is_transient() {
                    self.perform(engine::not_restored).await?;
                }
                Err(error)
            }
        }
    }

    /// Runs an operation; one that changes something in a task of its own, which an asker that gives up
    /// does not stop half-way.
    async fn perform(&self, operation: Operation) -> Result<IamResponse, Error> {
        if let Some(answer) = self.service.read(operation, &self.call, &self.ask)? {
            return Ok(answer);
        }
        let (done, result) = oneshot::channel();
        let (service, call, ask) = (self.service.clone(), self.call.clone(), self.ask.clone());
        let (mesh, store, place) = (self.cx.mesh.clone(), self.store.clone(), self.place.clone());
        self.cx.mesh.spawn(TaskKind::Handler, async move {
            let _place = place;
            let changed = service.change(operation, &call, &ask).await;
            drop(service);
            let (answer, revocation) = match changed {
                Ok(changed) => changed,
                Err(error) => {
                    let _ = done.send(Err(error));
                    return;
                }
            };
            let Some(revocation) = revocation else {
                let _ = done.send(Ok(answer));
                return;
            };
            let told = revocations::tell(&mesh, &store, revocation);
            tokio::pin!(told);
            // Whoever revokes something hears that it is done when it is. If nobody can be told now, they hear of it all
            // the same, and the others as soon as that works.
            let heard = tokio::time::timeout(TELLING, &mut told).await;
            let _ = done.send(Ok(answer));
            if heard.is_err() {
                told.await;
            }
        });
        result.await.map_err(|_| stopping())?
    }
}

fn stopping() -> Error {
    Error::new(ErrorCode::Unavailable, "the service is stopping")
}

/// The clock, the ids and the random key that engines do not make themselves.
fn call(cx: &Cx, vouched: bool, worked: Worked, ask: &IamRequest) -> Result<Call, Error> {
    let mut random = [0; 24];
    rand::rng().fill_bytes(&mut random);
    let makes = matches!(
        ask.operation.as_str(),
        "rotate-signing-key" | "revoke-signing-key"
    );
    let signing = makes.then(tg_jwt::SigningKey::generate);
    let fault = |_| Error::new(ErrorCode::Internal, "a signing key could not be made");
    Ok(Call {
        now: clock::now(),
        question: cx.id.to_string(),
        // A request without a name has the one that the gateway gave it.
        named: cx
            .request()
            .filter(|name| !ask.request_id.is_empty() && *name != ask.request_id)
            .map(str::to_owned),
        vouched,
        workspace_users: 0,
        proof: worked.proof,
        external: None,
        fresh: Fresh {
            user_id: uuid::Uuid::new_v4().to_string(),
            key_id: uuid::Uuid::new_v4().to_string(),
            key: ApiKey::from_random(random),
            password: worked.password,
            temporary: worked.temporary,
            signing: signing.transpose().map_err(fault)?,
        },
    })
}
