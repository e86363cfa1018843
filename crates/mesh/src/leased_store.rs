//! Stores with one owner, under a **lease**: a process serves what a store belongs to only while it holds both the name on the
//! bus and the store itself (in practice: the lock beside its file).
//!
//! [`Leased`] is what the runtime needs of a store; [`LeasedStore`] is the one implementation that services
//! use. Handlers ask it for the open store; it never opens one by itself.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use tg_schemas::{Error, ErrorCode};
use tg_storage::StorageError;
use tokio::sync::watch;
use tokio::time::Instant;

use tg_bus::TaskKind;
use tg_rpc::Peer;

/// A store that opens slower than this goes on doing so while its processors are attached already; their
/// handlers wait for it.
const PROMPT: Duration = Duration::from_millis(250);
/// After a store could not be opened, it is not tried again for this long.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// A store that one process at a time may serve.
#[async_trait]
pub trait Leased: Send + Sync + 'static {
    /// Name of the store, the same in every process that could own it.
    fn name(&self) -> &str;

    /// Takes the store, or finds it taken by this process already. `Ok(false)` while another process holds
    /// it. An error means that nobody else holds it and that it cannot be opened: questions are answered
    /// with that.
    ///
    /// # Errors
    /// Nobody else holds it and it cannot be opened: questions are answered with this, and it is tried again.
    async fn acquire(&self, peer: &Peer) -> Result<bool, Error>;

    /// Lets the store go, once nothing uses it any more. Idempotent.
    async fn release(&self);

    /// Which store it is, once this process has it; `None` where a store has no identity of its own.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn identity(&self) -> Result<Option<String>, Error>;

    /// Whether it is open now; for reports on this process.
    fn is_open(&self) -> bool;
}

/// Why a store did not open.
#[derive(Debug)]
pub enum OpenError {
    /// Another process holds it.
    InUse,
    /// It cannot be opened.
    Failed(Error),
}

impl From<StorageError> for OpenError {
    fn from(fault: StorageError) -> Self {
        match fault {
            StorageError::InUse => Self::InUse,
            fault => Self::Failed(fault.into()),
        }
    }
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

type Open<T> = Box<dyn Fn() -> BoxFuture<'static, Result<T, OpenError>> + Send + Sync>;

enum State<T> {
    Closed,
    /// Number of the opening, so that one which was given up does not count.
    Opening(u64),
    Open(Arc<T>),
    Failed(Error, Instant),
}

/// A store that is open exactly while this process owns it.
pub struct LeasedStore<T> {
    name: String,
    open: Open<T>,
    /// The file whose identity is the store's.
    file: OnceLock<PathBuf>,
    state: watch::Sender<State<T>>,
}

impl<T: Send + Sync + 'static> LeasedStore<T> {
    /// A store that is opened with `open` when this process becomes its owner. `open` takes the store's own
    /// lock before anything else and says [`OpenError::InUse`] if it cannot.
    pub fn new<F, Fut>(name: &str, open: F) -> Arc<Self>
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, OpenError>> + Send + 'static,
    {
        Arc::new(Self {
            name: name.to_owned(),
            open: Box::new(move || Box::pin(open())),
            file: OnceLock::new(),
            state: watch::channel(State::Closed).0,
        })
    }

    /// As [`LeasedStore::new`] with something that blocks; it runs beside the async runtime.
    pub fn blocking<F, E>(name: &str, open: F) -> Arc<Self>
    where
        F: Fn() -> Result<T, E> + Clone + Send + Sync + 'static,
        E: Into<OpenError> + Send + 'static,
    {
        Self::new(name, move || off_runtime(open.clone()))
    }

    /// Names the file whose identity is the store's: a process with another file of the same name does not take
    /// over from the one that served (see `leases.rs`).
    pub fn kept_in(&self, file: PathBuf) {
        let _ = self.file.set(file);
    }

    /// A store that is open for good, for tests of what uses it.
    pub fn opened_with(name: &str, store: T) -> Arc<Self> {
        let closed = || async { Err(OpenError::InUse) };
        let owned = Self::new(name, closed);
        owned.state.send_replace(State::Open(Arc::new(store)));
        owned
    }

    /// The open store. Waits while it is being opened; fails while this process does not own it, or with why
    /// it cannot be opened.
    ///
    /// # Errors
    /// `unavailable` while another process owns the store, else why it cannot be opened. A record may be tried again later.
    pub async fn get(&self) -> Result<Arc<T>, Error> {
        if let State::Open(store) = &*self.state.borrow() {
            return Ok(store.clone());
        }
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, State::Opening(_)));
        match settled.await.as_deref() {
            Ok(State::Open(store)) => Ok(store.clone()),
            Ok(State::Failed(error, _)) => Err(error.clone()),
            _ => Err(Error::new(
                ErrorCode::Unavailable,
                "another process owns this store",
            )),
        }
    }

    /// The store if it is open now.
    pub fn opened(&self) -> Option<Arc<T>> {
        match &*self.state.borrow() {
            State::Open(store) => Some(store.clone()),
            _ => None,
        }
    }

    /// Starts opening unless that is done or under way.
    fn begin(self: &Arc<Self>, peer: &Peer) {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let begun = self.state.send_if_modified(|state| {
            let begin = match state {
                State::Closed => true,
                State::Failed(_, at) => at.elapsed() >= RETRY_DELAY,
                State::Opening(_) | State::Open(_) => false,
            };
            if begin {
                *state = State::Opening(number);
            }
            begin
        });
        if !begun {
            return;
        }
        let this = self.clone();
        peer.spawn(TaskKind::Background, async move {
            let mut opened = Some((this.open)().await);
            this.state.send_if_modified(|state| {
                let ours = matches!(state, State::Opening(now) if *now == number);
                if ours && let Some(result) = opened.take() {
                    *state = this.outcome(result);
                }
                ours
            });
            // One that was given up meanwhile is closed again.
            drop_apart(opened).await;
        });
    }

    fn outcome(&self, result: Result<T, OpenError>) -> State<T> {
        match result {
            Ok(store) => State::Open(Arc::new(store)),
            Err(OpenError::InUse) => State::Closed,
            Err(OpenError::Failed(error)) => {
                tracing::error!(store = %self.name, %error, "a store cannot be opened");
                State::Failed(error, Instant::now())
            }
        }
    }
}

/// The handle that a [`crate::Processor`] is given.
#[async_trait]
impl<T: Send + Sync + 'static> Leased for Arc<LeasedStore<T>> {
    fn name(&self) -> &str {
        &self.name
    }

    async fn acquire(&self, peer: &Peer) -> Result<bool, Error> {
        self.begin(peer);
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, State::Opening(_)));
        let Ok(settled) = tokio::time::timeout(PROMPT, settled).await else {
            // What takes long has its lock already.
            return Ok(true);
        };
        match settled.as_deref() {
            Ok(State::Open(_) | State::Opening(_)) => Ok(true),
            Ok(State::Failed(error, _)) => Err(error.clone()),
            Ok(State::Closed) | Err(_) => Ok(false),
        }
    }

    async fn identity(&self) -> Result<Option<String>, Error> {
        let Some(file) = self.file.get().cloned() else {
            return Ok(None);
        };
        let read = off_runtime(move || tg_storage::identity_of(&file)).await;
        read.map_err(|fault| match fault {
            OpenError::Failed(error) => error,
            OpenError::InUse => StorageError::InUse.into(),
        })
    }

    async fn release(&self) {
        let was = self.state.send_replace(State::Closed);
        drop_apart(was).await;
    }

    fn is_open(&self) -> bool {
        self.opened().is_some()
    }
}

/// Runs something that blocks beside the async runtime.
///
/// # Errors
/// What the work says, or that it panicked.
pub async fn off_runtime<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, OpenError>
where
    T: Send + 'static,
    E: Into<OpenError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(Into::into),
        Err(_) => Err(Error::new(ErrorCode::Internal, "the store could not be opened").into()),
    }
}

/// Closing a store joins its threads.
async fn drop_apart<T: Send + 'static>(it: T) {
    let _ = tokio::task::spawn_blocking(move || drop(it)).await;
}
