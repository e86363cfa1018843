//! The backends of a model, one or several: a question goes to one of them, and to another where that fails before its first
//! piece. What is decided is decided by [`engine::router`](crate::engine::router); here it meets the clock and the clients.

mod attempts;
mod held;
mod offered;
mod shared;
mod told;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use parking_lot::Mutex;
use tg_schemas::limits::MODEL_NAME;
use tg_schemas::msg::{ModelInfo, ModelRest};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::engine::router::choice::{Candidate, Strategy, choose};
use crate::engine::router::health::Health;
use crate::engine::router::pauses::Policy;
use crate::engine::router::serving::{Backend, Server, Serves, servers};
use crate::error::LlmError;
use crate::model::{ChatModel, ChatRequest, ChatStream};
use held::Held;

pub(crate) use shared::share;

/// What bounds a single provider, which no setting gives bounds: more than a process asks it at once or in a minute, and
/// longer than any question waits.
const TOKENS: u64 = 1 << 40;
const PLACES: usize = 10_000;
const BEGINS: Duration = Duration::from_secs(3600);

/// Models by their backends.
pub struct Router {
    backends: Vec<Held>,
    /// What the settings say of them, in the same order.
    abouts: Vec<Backend>,
    strategy: Strategy,
    policy: Policy,
    /// The model where a question names none.
    usual: String,
    /// There is one provider: it takes the names of models as they are, and has no name among others.
    alone: bool,
    /// The operator set it up, so metrics show its backends.
    is_operators: bool,
    health: Mutex<Health>,
    turn: AtomicUsize,
    chance: fn() -> f64,
    /// To the other processes, once somebody tells them.
    teller: OnceLock<mpsc::Sender<ModelRest>>,
}

/// How a router chooses and waits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    /// Who is next.
    pub strategy: Strategy,
    /// How often and when it is tried again.
    pub policy: Policy,
}

impl Router {
    /// A router over clients. `usual` is the model where a question names none.
    pub fn new(backends: Vec<(Backend, Arc<dyn ChatModel>)>, usual: &str, rules: Rules) -> Self {
        let now = Instant::now();
        let abouts = backends.iter().map(|(about, _)| about.clone()).collect();
        let held = |(about, client): (Backend, _)| Held::new(&about, client, now);
        Self {
            abouts,
            backends: backends.into_iter().map(held).collect(),
            strategy: rules.strategy,
            policy: rules.policy,
            usual: usual.to_owned(),
            alone: false,
            is_operators: true,
            health: Mutex::default(),
            turn: AtomicUsize::new(0),
            chance: rand::random::<f64>,
            teller: OnceLock::new(),
        }
    }

    /// A router over the one provider that there is: it retries and rests, and has no other bounds.
    pub fn of_one(model: Arc<dyn ChatModel>, policy: Policy) -> Self {
        let provider = model.provider().to_owned();
        let about = Backend {
            name: provider.clone(),
            provider,
            serves: Serves::Everything,
            model: None,
            priority: 1,
            tokens_per_minute: TOKENS,
            most: PLACES,
            timeout: BEGINS,
        };
        let usual = model.default_model().to_owned();
        let rules = Rules {
            policy,
            ..Rules::default()
        };
        Self {
            alone: true,
            ..Self::new(vec![(about, model)], &usual, rules)
        }
    }

    /// The same over a service that a workspace names.
    pub(crate) fn of_workspace(model: Arc<dyn ChatModel>, policy: Policy) -> Self {
        Self {
            is_operators: false,
            ..Self::of_one(model, policy)
        }
    }

    /// Whether there is one provider, so that no model is named by its backend.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone
    }

    /// A backend's name in answers and traces; empty where there is one provider.
    fn label(&self, at: usize) -> &str {
        match self.alone {
            true => "",
            false => &self.abouts[at].name,
        }
    }

    /// The models to be asked for, in order.
    fn chain<'a>(&'a self, request: &'a ChatRequest) -> Vec<&'a str> {
        let first = request.model.as_deref().unwrap_or(&self.usual);
        let mut chain = vec![first];
        for model in &request.fallbacks {
            if !chain.contains(&model.as_str()) {
                chain.push(model);
            }
        }
        chain
    }

    fn servers(&self, model: &str) -> Vec<Server> {
        if self.alone {
            let model = model.to_owned();
            return vec![Server { at: 0, model }];
        }
        servers(&self.abouts, model)
    }

    /// By what the failures of a backend are kept.
    fn id(&self, server: &Server) -> String {
        format!("{}/{}", self.abouts[server.at].name, server.model)
    }

    fn candidate(&self, server: &Server, tried: u32) -> Candidate {
        let about = &self.abouts[server.at];
        Candidate {
            at: server.at,
            priority: about.priority,
            active: self.backends[server.at].active(),
            most: about.most,
            tried,
        }
    }

    fn choose(&self, candidates: &[Candidate]) -> Option<usize> {
        choose(
            self.strategy,
            candidates,
            self.turn.fetch_add(1, Ordering::Relaxed),
        )
    }

    /// Notes a failure that may pass, of a question that `began` then. A backend that answered another question meanwhile does
    /// not rest: it failed at this question only. It does rest if it asks for a pause.
    fn failed(&self, server: &Server, began: Instant, error: &LlmError) {
        let id = self.id(server);
        let (backend, model) = (&self.abouts[server.at].name, &server.model);
        let noted = {
            let mut health = self.health.lock();
            let is_single = error.pause().is_none() && health.answered_since(&id, began);
            (!is_single).then(|| {
                let rest = health.failed(&id, error.pause(), Instant::now());
                (rest, health.failures(&id))
            })
        };
        let Some((rest, failures)) = noted else {
            tracing::warn!(backend, model, %error, "a model backend failed at one question");
            return;
        };
        self.shown(server, false);
        self.tell(server, failures, rest);
        let seconds = rest.as_secs();
        tracing::warn!(backend, model, %error, seconds, "a model backend failed and rests");
    }

    /// Notes an answer.
    fn answered(&self, server: &Server) {
        self.shown(server, true);
        let id = self.id(server);
        if self.health.lock().answered(&id, Instant::now()) {
            self.tell(server, 0, Duration::ZERO);
            let backend = &self.abouts[server.at].name;
            tracing::info!(
                backend,
                model = server.model,
                "a model backend answers again"
            );
        }
    }

    fn shown(&self, server: &Server, up: bool) {
        if !self.is_operators {
            return;
        }
        let backend = self.abouts[server.at].name.clone();
        metrics::gauge!("tg_model_backend_up", "backend" => backend).set(f64::from(u8::from(up)));
    }

    /// Tells the other processes. What finds no place is not told: they notice by themselves.
    fn tell(&self, server: &Server, failures: u32, rest: Duration) {
        let Some(teller) = self.teller.get() else {
            return;
        };
        let _ = teller.try_send(ModelRest {
            backend: self.abouts[server.at].name.clone(),
            model: server.model.clone(),
            failures: i64::from(failures),
            rest_ms: rest.as_millis() as i64,
            ..ModelRest::default()
        });
    }

    /// Hears what another process tells of a backend that this one has, too.
    fn heard(&self, told: &ModelRest) {
        if told.model.len() > MODEL_NAME {
            return;
        }
        let Some(at) = self.abouts.iter().position(|one| one.name == told.backend) else {
            return;
        };
        let server = Server {
            at,
            model: told.model.clone(),
        };
        let id = self.id(&server);
        let mut health = self.health.lock();
        match (u32::try_from(told.failures), u64::try_from(told.rest_ms)) {
            (Ok(failures @ 1..), Ok(rest)) => {
                health.heard(&id, failures, Duration::from_millis(rest), Instant::now());
            }
            (Ok(0), _) => {
                health.answered(&id, Instant::now());
            }
            _ => {}
        }
    }
}

/// As one provider, for whoever needs none of the choice: its models are those of all that answer.
#[async_trait]
impl ChatModel for Router {
    fn provider(&self) -> &'static str {
        "router"
    }

    fn default_model(&self) -> &str {
        &self.usual
    }

    async fn chat(&self, _: &ChatRequest) -> Result<ChatStream, LlmError> {
        // Questions go through `Router::open`, which knows how long there is.
        Err(LlmError::Unsupported)
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        let listed = join_all(self.backends.iter().map(Held::list_models)).await;
        let mut all: Vec<ModelInfo> = Vec::new();
        let mut failed = None;
        for (about, listed) in self.abouts.iter().zip(listed) {
            let models = match listed {
                Ok(models) => models,
                Err(error) => {
                    failed.get_or_insert(error);
                    Vec::new()
                }
            };
            for model in offered::offered(about, models) {
                if all.iter().all(|one| one.id != model.id) {
                    all.push(model);
                }
            }
        }
        match failed {
            Some(error) if all.is_empty() => Err(error),
            _ => Ok(all),
        }
    }
}

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod tests;
