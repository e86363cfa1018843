//! Runs one request against a model: a router asks until the first piece comes, then pieces are passed on, all within
//! one deadline and one cancel token. Never repeats a request after a piece was passed on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use tg_schemas::limits::MODEL_NAME;
use tg_schemas::msg::ModelInfo;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::router::pauses::Policy;
use crate::error::LlmError;
use crate::model::{ChatEvent, ChatModel, ChatRequest, ChatStream};
use crate::routing::Router;
use crate::services::Services;

/// Models of which it is kept what their provider lists of them.
const KEPT: usize = 4096;

/// A model with the router that asks it.
#[derive(Clone)]
pub struct Completer {
    /// Lists the models and names the usual one.
    model: Arc<dyn ChatModel>,
    router: Arc<Router>,
    /// The services of workspaces.
    services: Arc<Services>,
    /// Tokens that models read at once, as their provider listed them last.
    windows: Arc<watch::Sender<BTreeMap<String, u64>>>,
}

impl Completer {
    /// A completer over one provider.
    pub fn single(model: Arc<dyn ChatModel>, policy: Policy) -> Self {
        let router = Router::of_one(model.clone(), policy);
        Self::over(model, Arc::new(router))
    }

    /// A completer over several backends.
    pub fn routed(router: Arc<Router>) -> Self {
        Self::over(router.clone(), router)
    }

    fn over(model: Arc<dyn ChatModel>, router: Arc<Router>) -> Self {
        Self {
            model,
            router,
            services: Arc::default(),
            windows: Arc::new(watch::Sender::new(BTreeMap::new())),
        }
    }

    /// The router.
    pub(crate) fn router(&self) -> &Arc<Router> {
        &self.router
    }

    /// With credentials that workspaces may name.
    pub(crate) fn with_services(mut self, services: Services) -> Self {
        self.services = Arc::new(services);
        self
    }

    /// The model.
    pub fn model(&self) -> &Arc<dyn ChatModel> {
        &self.model
    }

    /// Starts the request. The stream ends with [`ChatEvent::Done`] or an error, at the latest when
    /// `left` has passed or `cancel` fires; both close the provider's socket.
    ///
    /// # Errors
    /// What the provider refused before the first piece, after the retries; [`LlmError::Timeout`] when `left` has passed,
    /// [`LlmError::Cancelled`] when `cancel` fired.
    pub async fn open(
        &self,
        request: &ChatRequest,
        left: Duration,
        cancel: &CancellationToken,
    ) -> Result<ChatStream, LlmError> {
        let own = request.service.as_ref().map(|own| own.timeout_ms);
        let own = own
            .and_then(|own| u64::try_from(own).ok())
            .filter(|own| *own > 0);
        let left = own.map_or(left, |own| left.min(Duration::from_millis(own)));
        let until = Instant::now() + left;
        let (first, rest) = bounded(until, cancel, self.attempts(request, until)).await??;
        let cancel = cancel.clone();
        let rest = stream::unfold(Some(rest), move |state| {
            let cancel = cancel.clone();
            async move {
                let mut rest = state?;
                let item = match bounded(until, &cancel, rest.next()).await {
                    Ok(Some(item)) => item,
                    Ok(None) => return None,
                    Err(error) => Err(error),
                };
                let open = matches!(item, Ok(ChatEvent::Delta(_) | ChatEvent::Thinking(_)));
                Some((item, open.then_some(rest)))
            }
        });
        Ok(stream::iter([Ok(first)]).chain(rest).boxed())
    }

    /// Lists the provider's models, within the time left.
    ///
    /// # Errors
    /// As the provider answers; [`LlmError::Timeout`] when `left` has passed, [`LlmError::Cancelled`] when `cancel` fired.
    pub async fn list_models(
        &self,
        left: Duration,
        cancel: &CancellationToken,
    ) -> Result<Vec<ModelInfo>, LlmError> {
        let models = bounded(Instant::now() + left, cancel, self.model.list_models()).await??;
        let listed = models.iter().filter_map(|model| {
            let window = u64::try_from(model.context_length?).ok()?;
            (model.id.len() <= MODEL_NAME).then(|| (model.id.clone(), window))
        });
        self.windows.send_replace(listed.take(KEPT).collect());
        Ok(models)
    }

    /// Tokens that a model reads at once, where its provider has listed them.
    pub(crate) fn window(&self, model: &str) -> Option<u64> {
        let windows = self.windows.borrow();
        // Where there are several backends, a name may begin with that of one.
        let of_one = || {
            let named = model.split_once('/').filter(|_| !self.router.is_alone());
            named.map(|(_, model)| model)
        };
        let known = windows.get(model);
        known.or_else(|| windows.get(of_one()?)).copied()
    }

    async fn attempts(
        &self,
        request: &ChatRequest,
        until: Instant,
    ) -> Result<(ChatEvent, ChatStream), LlmError> {
        match &request.service {
            None => self.router.open(request, until).await,
            Some(service) => {
                let router = self.services.of(&request.workspace, service)?;
                router.open(request, until).await
            }
        }
    }
}

/// Awaits something at most until the deadline or cancel.
async fn bounded<T>(
    until: Instant,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> Result<T, LlmError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(LlmError::Cancelled),
        done = work => Ok(done),
        () = tokio::time::sleep_until(until) => Err(LlmError::Timeout),
    }
}
