//! Purges what deleted workspaces left in a store: what a due tombstone of the config service names, and nothing else.
//!
//! It goes by states, so it also works for what was deleted while the store was closed. A store remembers which config
//! store it has known and at which version; from another one, or an older one, it takes no tombstone. Both are looked
//! at again just before each purge: what was restored meanwhile stays.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_mesh::config_view::ConfigView;
use tg_mesh::{LeasedStore, Mesh, TaskKind, clock};
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};
use tg_storage::ConfigKnown;
use tokio::time::Instant;

use crate::known_config::KnownConfig;
use crate::registry::Registry;
use crate::verdict::{self, Stone, Verdict};

/// Longest pause between two looks, and between two comparisons with what the store remembers.
const LOOK: Duration = Duration::from_secs(60);
/// How long a new version of the configuration is known before it is written down: a store that is opened again notices
/// an older one by what was written.
const NOTE: Duration = Duration::from_secs(1);
/// Pause while the store is not this process's, and after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(1);

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

/// The configuration that a store knows.
struct Known {
    config: ConfigKnown,
    /// When the store was asked last, or told.
    noted: Instant,
    /// The version that the store has written down.
    written: i64,
}

impl Known {
    /// As the store has it.
    fn new(config: ConfigKnown) -> Self {
        Self {
            noted: Instant::now(),
            written: config.version,
            config,
        }
    }

    /// Whether the store has not written it down yet.
    fn is_ahead(&self) -> bool {
        self.written != self.config.version
    }
}

/// What was seen last: looked for again only when that changed.
#[derive(Default)]
struct Seen {
    refused: Option<&'static str>,
    known: Option<Known>,
    purged: Option<(Vec<Stone>, Instant)>,
}

impl Seen {
    /// Notes why the store purges nothing, if it does not.
    fn note(&mut self, store: &'static str, refused: Option<&'static str>) {
        if refused != self.refused {
            self.refused = refused;
            metrics::gauge!("tg_purging_refused", "store" => store)
                .set(f64::from(u8::from(refused.is_some())));
        }
    }
}

/// Keeps a store until the process stops, and works while the store is this process's. Nothing is purged where no
/// tombstones announce deletions.
pub fn start<S: WorkspaceStore>(mesh: &Mesh, name: &'static str, store: Arc<LeasedStore<S>>) {
    if mesh.rules().tombstones {
        mesh.spawn(TaskKind::Closing, run(mesh.clone(), name, store));
    }
}

async fn run<S: WorkspaceStore>(mesh: Mesh, name: &'static str, store: Arc<LeasedStore<S>>) {
    let mut changes = mesh.config().changes();
    let mut seen = Seen::default();
    let mut told = None;
    loop {
        changes.borrow_and_update();
        // Not held while nothing is done: the store must be free to go.
        let pause = match store.opened() {
            Some(store) => {
                let round = Round::of(&mesh, name, &*store, LOOK);
                let stopping = || mesh.stopping().is_cancelled();
                let looked = tokio::select! {
                    looked = round.run(&mut seen, stopping) => looked,
                    // A purge that takes long is done again after the next start.
                    () = mesh.shutdown().cancelled() => break,
                };
                match looked {
                    Ok(pause) => pause,
                    Err(error) => {
                        tracing::warn!(store = name, %error, "deleted workspaces are not purged yet");
                        RETRY_DELAY
                    }
                }
            }
            None => {
                // Whoever has it meanwhile may know more, and says whether it purges.
                seen.known = None;
                seen.note(name, None);
                RETRY_DELAY
            }
        };
        if seen.refused != told {
            told = seen.refused;
            tg_mesh::tell_purging(&mesh, name, told).await;
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(pause) => {}
            () = mesh.stopping().cancelled() => break,
        }
    }
    // What was known last is written down before the store goes.
    if let Some(store) = store.opened()
        && let Some(config) = Registry::config(mesh.config())
    {
        let round = Round::of(&mesh, name, &*store, Duration::ZERO);
        if let Err(error) = round.verify(config, &mut seen).await {
            tracing::debug!(store = name, %error, "the last configuration was not written down");
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

/// One look at one store.
struct Round<'a, S, R> {
    name: &'static str,
    store: &'a S,
    registry: &'a R,
    clock: &'a (dyn Fn() -> i64 + Sync),
    look: Duration,
}

impl<'a, S: WorkspaceStore> Round<'a, S, ConfigView> {
    /// At a store of this process, with its clock. What was compared more than `look` ago is compared again.
    fn of(mesh: &'a Mesh, name: &'static str, store: &'a S, look: Duration) -> Self {
        Self {
            name,
            store,
            registry: mesh.config(),
            clock: &clock::millis,
            look,
        }
    }
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
        let longest = match seen.known.as_ref().is_some_and(Known::is_ahead) {
            true => self.look.min(NOTE),
            false => self.look,
        };
        let (due, next) = self.due();
        let pause = next.map_or(longest, |next| {
            let left = next.saturating_sub((self.clock)()).max(0);
            Duration::from_millis(left.unsigned_abs()).min(longest)
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
                return Ok(RETRY_DELAY);
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
            seen.note(self.name, refusal);
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
        if let Some(known) = &mut seen.known {
            let age = known.noted.elapsed();
            let verdict = Verdict::of(Some(&known.config), &config);
            if verdict == Verdict::Known {
                known.config = config.clone();
            }
            if age < self.look && (age < NOTE || !known.is_ahead()) {
                return Ok(verdict);
            }
        }
        let memory = self.store.known_config();
        let stored = memory.config_known().await?;
        let known = match (stored.clone(), seen.known.take()) {
            // Seen since it was written down.
            (Some(stored), Some(Known { config: seen, .. }))
                if seen.identity == stored.identity && seen.version > stored.version =>
            {
                Some(seen)
            }
            (stored, _) => stored,
        };
        let verdict = Verdict::of(known.as_ref(), &config);
        // What is refused is not remembered; what was known before it is.
        let known = match verdict {
            Verdict::Known => Some(config),
            Verdict::Another | Verdict::Older => known,
        };
        if let Some(known) = &known
            && stored.as_ref() != Some(known)
        {
            memory.remember_config(known.clone()).await?;
        }
        seen.known = known.map(Known::new);
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests;
