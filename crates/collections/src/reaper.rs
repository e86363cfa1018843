//! Purges what deleted workspaces left in a store: what a due tombstone of the config service names, and nothing else.
//!
//! It goes by states, so it also works for what was deleted while the store was closed. A store remembers which config
//! store it has known and at which version; from another one, or an older one, it takes no tombstone. Both are looked
//! at again just before each purge: what was restored meanwhile stays.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_mesh::deadline::now_millis;
use tg_mesh::{Mesh, OwnedStore};
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};
use tg_storage::ConfigKnown;
use tokio::time::Instant;

use crate::known_config::KnownConfig;
use crate::registry::Registry;
use crate::verdict::{self, Stone, Verdict};

/// Longest pause between two looks, and how often the known version is written down.
const LOOK: Duration = Duration::from_secs(60);
/// Pause while the store is not this process's, and after a failure.
const AGAIN: Duration = Duration::from_secs(1);

/// A store that keeps things for workspaces.
#[async_trait]
pub trait WorkspaceStore: Send + Sync + 'static {
    /// Whether nothing of it comes back when a workspace is restored: then it is purged without waiting.
    const AT_ONCE: bool = false;

    /// Every workspace that it keeps anything for, in the text form of its key.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn workspaces(&self) -> Result<Vec<String>, Error>;

    /// Forgets everything of a workspace, for good: what `deleted` proves has ended. Doing it again changes nothing.
    ///
    /// # Errors
    /// When the store failed; it is tried again.
    async fn purge(&self, key: &WorkspaceKey, deleted: &WorkspaceTombstone) -> Result<(), Error>;

    /// Where it remembers which configuration it has known.
    fn known_config(&self) -> &dyn KnownConfig;
}

/// What was seen last: looked for again only when that changed.
#[derive(Default)]
struct Seen {
    refused: Option<&'static str>,
    /// The configuration that the store knows, and when that was read from the store or written there.
    known: Option<(ConfigKnown, Instant)>,
    purged: Option<(Vec<Stone>, Instant)>,
}

/// Runs until the process stops, and works while the store is this process's. Among foreign processors nothing is
/// purged: they say nothing of deletions.
pub async fn run<S: WorkspaceStore>(mesh: Mesh, name: &'static str, store: Arc<OwnedStore<S>>) {
    if !mesh.bus().mode().has_tombstones() {
        return;
    }
    let mut changes = mesh.config().changes();
    let mut seen = Seen::default();
    loop {
        changes.borrow_and_update();
        // Not held while nothing is done: the store must be free to go.
        let pause = match store.opened() {
            Some(store) => {
                let round = Round {
                    name,
                    store: &*store,
                    registry: mesh.config(),
                    clock: &clock,
                    look: LOOK,
                };
                let stopping = || mesh.stopping().is_cancelled();
                match round.run(&mut seen, stopping).await {
                    Ok(pause) => pause,
                    Err(error) => {
                        tracing::warn!(store = name, %error, "deleted workspaces are not purged yet");
                        AGAIN
                    }
                }
            }
            None => {
                // Whoever has it meanwhile may know more.
                seen.known = None;
                AGAIN
            }
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(pause) => {}
            () = mesh.stopping().cancelled() => return,
        }
    }
}

/// Why a store purges nothing now; `None`: it may. For those who tell people how a system is.
///
/// # Errors
/// When the store cannot be read.
pub async fn refusal<S: WorkspaceStore>(
    mesh: &Mesh,
    store: &S,
) -> Result<Option<&'static str>, Error> {
    let Some(config) = mesh.config().config() else {
        return Ok(None);
    };
    let known = store.known_config().config_known().await?;
    Ok(Verdict::of(known.as_ref(), &config).refusal())
}

/// Milliseconds since the Unix epoch.
fn clock() -> i64 {
    i64::try_from(now_millis()).unwrap_or(i64::MAX)
}

/// One look at one store.
struct Round<'a, S, R> {
    name: &'static str,
    store: &'a S,
    registry: &'a R,
    clock: &'a (dyn Fn() -> i64 + Sync),
    look: Duration,
}

impl<S: WorkspaceStore, R: Registry> Round<'_, S, R> {
    /// Purges what is due. How long nothing more is to be done, unless configuration changes.
    async fn run(
        &self,
        seen: &mut Seen,
        stopping: impl Fn() -> bool + Send,
    ) -> Result<Duration, Error> {
        if !self.may_purge(seen).await? {
            return Ok(self.look);
        }
        let (due, next) = self.due();
        let pause = next.map_or(self.look, |next| {
            let left = next.saturating_sub((self.clock)()).max(0);
            Duration::from_millis(left.unsigned_abs()).min(self.look)
        });
        let looked =
            |(what, when): &(Vec<Stone>, Instant)| *what == due && when.elapsed() < self.look;
        if due.is_empty() || seen.purged.as_ref().is_some_and(looked) {
            return Ok(pause);
        }
        let keys = self.store.workspaces().await?;
        let keys = keys.iter().map(|text| WorkspaceKey::parse(text)).collect();
        for (key, _) in verdict::ended(keys, &due) {
            if stopping() {
                return Ok(AGAIN);
            }
            // Looking takes its time, and so do other purges.
            if !self.may_purge(seen).await? {
                return Ok(self.look);
            }
            let still = verdict::ended(vec![key], &self.due().0);
            let Some((key, stone)) = still.into_iter().next() else {
                continue;
            };
            self.store.purge(&key, &stone).await?;
            tracing::info!(store = self.name, workspace = %key, "a deleted workspace was purged");
        }
        seen.purged = Some((due, Instant::now()));
        Ok(pause)
    }

    /// The tombstones that may be acted upon now, and when the next one may be.
    fn due(&self) -> (Vec<Stone>, Option<i64>) {
        let stones = self.registry.stones();
        match S::AT_ONCE {
            true => (stones, None),
            false => verdict::due(stones, (self.clock)()),
        }
    }

    /// Whether the configuration is the one that the store has known. Reports when that changes.
    async fn may_purge(&self, seen: &mut Seen) -> Result<bool, Error> {
        let Some(config) = self.registry.config() else {
            return Ok(false);
        };
        let refusal = self.verify(config, seen).await?.refusal();
        if refusal != seen.refused {
            seen.refused = refusal;
            metrics::gauge!("tg_purging_refused", "store" => self.name)
                .set(f64::from(u8::from(refusal.is_some())));
            match refusal {
                Some(why) => tracing::error!(store = self.name, why, "nothing is purged"),
                None => tracing::info!(
                    store = self.name,
                    "the configuration is the known one again"
                ),
            }
        }
        Ok(refusal.is_none())
    }

    /// Compares the configuration with the one that the store has known, always; and remembers it, now and then.
    async fn verify(&self, config: ConfigKnown, seen: &mut Seen) -> Result<Verdict, Error> {
        if let Some((known, noted)) = &mut seen.known
            && noted.elapsed() < self.look
        {
            let verdict = Verdict::of(Some(known), &config);
            if verdict == Verdict::Known {
                *known = config;
            }
            return Ok(verdict);
        }
        let memory = self.store.known_config();
        let stored = memory.config_known().await?;
        let known = match (stored.clone(), seen.known.take()) {
            // Seen since it was written down.
            (Some(stored), Some((seen, _)))
                if seen.identity == stored.identity && seen.version > stored.version =>
            {
                Some(seen)
            }
            (stored, _) => stored,
        };
        let verdict = Verdict::of(known.as_ref(), &config);
        if verdict == Verdict::Known {
            if stored.as_ref() != Some(&config) {
                memory.remember_config(config.clone()).await?;
            }
            seen.known = Some((config, Instant::now()));
        } else {
            seen.known = known.map(|known| (known, Instant::now()));
        }
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests;
