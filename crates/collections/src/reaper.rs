//! Purges what deleted workspaces left in a store: what a due tombstone of the config service names, and nothing else.
//!
//! It goes by states, so it also works for what was deleted while the store was closed. A store remembers which config
//! store it has known and at which version; from another one, or an older one, it takes no tombstone.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_mesh::deadline::now_millis;
use tg_mesh::{Mesh, Mode, OwnedStore};
use tg_schemas::workspace_key::{REGISTRY, TOMBSTONE};
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};
use tg_storage::{ConfigKnown, Database};
use tokio::time::Instant;

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
    async fn workspaces(&self) -> Result<Vec<String>, Error>;

    /// Forgets everything of a workspace, for good: what `deleted` proves has ended. Doing it again changes nothing.
    async fn purge(&self, key: &WorkspaceKey, deleted: &WorkspaceTombstone) -> Result<(), Error>;

    /// Where it remembers which configuration it has known.
    fn database(&self) -> &Database;
}

/// What was seen last: looked for again only when that changed.
#[derive(Default)]
struct Seen {
    refused: Option<&'static str>,
    noted: Option<Instant>,
    purged: Option<(Vec<Stone>, Instant)>,
}

/// Runs until the process stops, and works while the store is this process's. Among foreign processors nothing is
/// purged: they say nothing of deletions.
pub async fn run<S: WorkspaceStore>(mesh: Mesh, name: &'static str, store: Arc<OwnedStore<S>>) {
    if mesh.bus().mode() == Mode::Interop {
        return;
    }
    let mut changes = mesh.config().changes();
    let mut seen = Seen::default();
    loop {
        changes.borrow_and_update();
        // Not held while nothing is done: the store must be free to go.
        let pause = match store.opened() {
            Some(store) => match round(&mesh, name, &*store, &mut seen).await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(store = name, %error, "deleted workspaces are not purged yet");
                    AGAIN
                }
            },
            None => AGAIN,
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
    let config = mesh.config();
    let Some(identity) = config.store_identity() else {
        return Ok(None);
    };
    let known = store.database().config_known().await?;
    let verdict = Verdict::of(known.as_ref(), &identity, config.version());
    Ok(verdict.refusal())
}

async fn round<S: WorkspaceStore>(
    mesh: &Mesh,
    name: &'static str,
    store: &S,
    seen: &mut Seen,
) -> Result<Duration, Error> {
    let config = mesh.config();
    let (version, Some(identity)) = (config.version(), config.store_identity()) else {
        return Ok(LOOK);
    };
    if version < 0 {
        return Ok(LOOK);
    }
    let verdict = verify(store, &identity, version, seen).await?;
    let refusal = verdict.refusal();
    if refusal != seen.refused {
        seen.refused = refusal;
        metrics::gauge!("tg_purging_refused", "store" => name)
            .set(f64::from(u8::from(refusal.is_some())));
        match refusal {
            Some(why) => tracing::error!(store = name, why, "nothing is purged"),
            None => tracing::info!(store = name, "the configuration is the known one again"),
        }
    }
    if refusal.is_some() {
        return Ok(LOOK);
    }
    let now = i64::try_from(now_millis()).unwrap_or(i64::MAX);
    let (due, next) = match S::AT_ONCE {
        true => (stones(mesh), None),
        false => verdict::due(stones(mesh), now),
    };
    let pause = next.map_or(LOOK, |next| {
        Duration::from_millis((next - now).unsigned_abs()).min(LOOK)
    });
    let looked = |(what, when): &(Vec<Stone>, Instant)| *what == due && when.elapsed() < LOOK;
    if due.is_empty() || seen.purged.as_ref().is_some_and(looked) {
        return Ok(pause);
    }
    let keys = store.workspaces().await?;
    let keys = keys.iter().map(|text| WorkspaceKey::parse(text)).collect();
    for (key, stone) in verdict::ended(keys, &due) {
        if mesh.stopping().is_cancelled() {
            return Ok(AGAIN);
        }
        store.purge(&key, &stone).await?;
        tracing::info!(store = name, workspace = %key, "a deleted workspace was purged");
    }
    seen.purged = Some((due, Instant::now()));
    Ok(pause)
}

/// Compares the configuration with the one that the store has known, and remembers it.
async fn verify<S: WorkspaceStore>(
    store: &S,
    identity: &str,
    version: i64,
    seen: &mut Seen,
) -> Result<Verdict, Error> {
    let lately = seen.noted.is_some_and(|noted| noted.elapsed() < LOOK);
    if lately && seen.refused.is_none() {
        return Ok(Verdict::Known);
    }
    let known = store.database().config_known().await?;
    let verdict = Verdict::of(known.as_ref(), identity, version);
    if verdict == Verdict::Known {
        let now = ConfigKnown {
            identity: identity.to_owned(),
            version,
        };
        if known.as_ref() != Some(&now) {
            store.database().remember_config(now).await?;
        }
        seen.noted = Some(Instant::now());
    }
    Ok(verdict)
}

fn stones(mesh: &Mesh) -> Vec<Stone> {
    let rows = mesh.config().values(REGISTRY, TOMBSTONE);
    rows.iter()
        .filter_map(|(name, value)| Some((name.clone(), serde_json::from_str(value).ok()?)))
        .collect()
}
