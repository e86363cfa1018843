//! A backend with what it is doing: its client, its tokens of this minute, its places.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tg_mesh::fair::{Pool, Share};
use tg_schemas::msg::ModelInfo;
use tokio::time::{Instant, timeout};

use crate::engine::router::bucket::Bucket;
use crate::engine::router::serving::Backend;
use crate::error::LlmError;
use crate::model::ChatModel;

/// How long a backend may take to list its models, and how long that is told again.
const LISTING: Duration = Duration::from_secs(5);
const LISTED: Duration = Duration::from_secs(30);

/// Models that were listed, or why not, and when.
type Listing = (Instant, Result<Vec<ModelInfo>, LlmError>);

/// A backend at work.
pub(super) struct Held {
    pub(super) client: Arc<dyn ChatModel>,
    pub(super) bucket: Arc<Mutex<Bucket>>,
    /// Of a workspace half of them, or one may keep all others waiting; but two, if there are two.
    places: Pool,
    active: Arc<AtomicUsize>,
    listed: tokio::sync::Mutex<Option<Listing>>,
}

impl Held {
    pub(super) fn new(about: &Backend, client: Arc<dyn ChatModel>, now: Instant) -> Self {
        Self {
            client,
            bucket: Arc::new(Mutex::new(Bucket::new(about.tokens_per_minute, now))),
            places: Pool::new(about.most, (about.most / 2).max(about.most.min(2))),
            active: Arc::default(),
            listed: tokio::sync::Mutex::default(),
        }
    }

    /// Questions that it answers now.
    pub(super) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Its models, as it listed them lately. Who asks meanwhile waits for the same listing.
    pub(super) async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        let mut listed = self.listed.lock().await;
        if let Some((at, models)) = &*listed
            && at.elapsed() < LISTED
        {
            return models.clone();
        }
        let asked = timeout(LISTING, self.client.list_models()).await;
        let models = asked.unwrap_or(Err(LlmError::Timeout));
        *listed = Some((Instant::now(), models.clone()));
        models
    }

    /// Waits until there are tokens and a place for a call.
    pub(super) async fn enter(&self, workspace: &str, tokens: u64) -> Result<Entered, LlmError> {
        let taken = loop {
            let wait = match self.bucket.lock().take(Instant::now(), tokens) {
                Ok(taken) => break taken,
                Err(wait) => wait,
            };
            tokio::time::sleep(wait).await;
        };
        // Left before it was asked, nothing was used.
        let mut entered = Entered {
            bucket: self.bucket.clone(),
            taken,
            used: 0,
            _place: None,
        };
        let place = self.places.take(&Arc::from(workspace), 1).await;
        let share = place.map_err(|_| LlmError::Cancelled)?;
        self.active.fetch_add(1, Ordering::Relaxed);
        entered._place = Some(Place {
            _share: share,
            active: self.active.clone(),
        });
        entered.used = taken;
        Ok(entered)
    }
}

/// What a call holds; it ends with it.
pub(super) struct Entered {
    bucket: Arc<Mutex<Bucket>>,
    taken: u64,
    /// Tokens that it used; what was taken, as long as nobody says.
    pub(super) used: u64,
    _place: Option<Place>,
}

/// One of the questions that a backend answers at once.
struct Place {
    _share: Share,
    active: Arc<AtomicUsize>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.bucket
            .lock()
            .settle(Instant::now(), self.taken, self.used);
    }
}
