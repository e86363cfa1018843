//! Keeps the [`ConfigView`] current: subscribe, read at version v, apply v+1; on any other number and on
//! each reconnect, read everything again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_schemas::Error;
use tg_schemas::codec;
use tg_schemas::msg::ConfigPush;
use tokio::sync::mpsc;

use crate::config_view::{ConfigView, LIFECYCLE};
use crate::mesh::Mesh;
use tg_bus::pause::doubled;
use tg_bus::{Consume, Consumer, Delivery, Link, Sink};

/// One fetch may take this long before it is tried again.
const FETCH: Duration = Duration::from_secs(10);
/// Pause after a failed fetch; doubles up to two seconds, or more where asking again is unlikely to help.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);
const LONGEST_REFUSED: Duration = Duration::from_secs(30);
/// Notices waiting to be applied; more than that means a full re-read anyway.
const BACKLOG: usize = 256;
/// A type that cannot be read is logged after so many tries, and then at each doubling.
const TOLD: u32 = 4;
/// A notice with more keys than this is applied by re-reading its types.
const MAX_KEYS: usize = 64;

/// What the rest of the runtime learns after a change was applied.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changed {
    /// Type and workspace pairs of which any row may differ.
    pub(crate) whole: BTreeSet<(String, String)>,
    /// Type, workspace and key of single rows that may differ.
    pub(crate) rows: BTreeSet<(String, String, String)>,
}

impl Changed {
    /// Whether a row of the type may differ.
    pub(crate) fn of(&self, kind: &str) -> bool {
        self.whole.iter().any(|(changed, _)| changed == kind)
            || self.rows.iter().any(|(changed, ..)| changed == kind)
    }
}

/// The types this process watches.
#[derive(Default)]
pub(crate) struct Watched {
    types: Mutex<BTreeSet<String>>,
    added: tokio::sync::Notify,
}

impl Watched {
    /// Adds types; `true` if any is new.
    pub(crate) fn add(&self, types: impl IntoIterator<Item = String>) -> bool {
        let mut known = self.types.lock();
        let before = known.len();
        known.extend(types);
        let grown = known.len() > before;
        drop(known);
        if grown {
            self.added.notify_one();
        }
        grown
    }

    fn all(&self) -> BTreeSet<String> {
        self.types.lock().clone()
    }
}

enum Event {
    /// A notice, and the process that sent it; a foreign one does not say.
    Notice(ConfigPush, Option<String>),
    Overrun,
}

struct Notices(mpsc::Sender<Event>);

impl Sink for Notices {
    fn deliver(&self, delivery: Delivery) {
        let envelope = &delivery.envelope;
        let event = match codec::decode::<ConfigPush>(&envelope.body, envelope.content_type) {
            Ok(push) => Event::Notice(push, envelope.headers.from.clone()),
            Err(_) => Event::Overrun,
        };
        // A full channel loses the notice; the version gap then leads to a full re-read.
        let _ = self.0.try_send(event);
    }
}

/// Runs until the process stops. `applied` hears of each change after the view shows it.
pub(crate) async fn run(mesh: Mesh, watched: Arc<Watched>, applied: mpsc::Sender<Changed>) {
    let view = mesh.config().clone();
    let (tx, mut notices) = mpsc::channel(BACKLOG);
    let mut link = mesh.bus().link();
    let subscription =
        tg_schemas::Subscription::service(mesh.config_source().notices(), "config-watch");
    let mut consumer: Option<Box<dyn Consumer>> = None;
    let mut read = BTreeSet::new();
    let mut whole = false;
    let mut told_by: Option<String> = None;
    let mut pause = PAUSE;
    let mut failures = 0u32;
    loop {
        if consumer.is_none() {
            let sink = Arc::new(Notices(tx.clone()));
            match mesh
                .bus()
                .consume(&subscription, Consume::prefetch(64), sink)
                .await
            {
                Ok(running) => consumer = Some(running),
                Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            }
        }
        let wanted = watched.all();
        let missing: BTreeSet<_> = if whole {
            wanted
        } else {
            wanted.difference(&read).cloned().collect()
        };
        if !missing.is_empty() {
            match read_types(&mesh, &view, &missing).await {
                Ok((version, changed)) => {
                    read.extend(missing);
                    let was_whole = std::mem::take(&mut whole);
                    pause = PAUSE;
                    failures = 0;
                    // Types added later leave the version alone: notices that wait here still count.
                    let all = was_whole || view.version() < 0;
                    view.announce(if all { version } else { view.version() });
                    let _ = applied.send(changed).await;
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    // While a system starts nobody serves yet; what lasts is told, ever more rarely.
                    if failures >= TOLD && failures.is_power_of_two() {
                        tell(&mesh, &error, failures);
                    } else {
                        tracing::debug!(%error, "config is not readable yet");
                    }
                    tokio::time::sleep(pause).await;
                    pause = longer(pause, &error);
                }
            }
            continue;
        }
        tokio::select! {
            () = watched.added.notified() => {}
            changed = link.changed() => {
                if changed.is_err() {
                    return;
                }
                whole = matches!(*link.borrow_and_update(), Link::Up { generation } if generation > 1);
            }
            event = notices.recv() => match event {
                // Of another process than before: its store may be another one, whose versions say nothing beside ours.
                Some(Event::Notice(_, from)) if from.is_some() && from != told_by => {
                    told_by = from;
                    whole = true;
                }
                Some(Event::Notice(push, _)) => {
                    if push.version <= view.version() && !is_everything(&push, &view) {
                        continue;
                    }
                    if push.version > view.version() + 1 || push.version < view.version() {
                        whole = true;
                        continue;
                    }
                    match apply(&mesh, &view, &read, &push).await {
                        Ok(changed) => {
                            view.announce(push.version);
                            let _ = applied.send(changed).await;
                        }
                        Err(error) => {
                            tracing::debug!(%error, "a notice could not be applied; reading everything");
                            whole = true;
                        }
                    }
                }
                Some(Event::Overrun) => whole = true,
                None => return,
            }
        }
    }
}

/// Says where it was looked for as well: a process on another bus, or that speaks otherwise than the one that keeps the
/// configuration, finds nobody and has no other sign of it.
fn tell(mesh: &Mesh, error: &Error, failures: u32) {
    let (bus, rules) = (mesh.bus(), mesh.bus().rules());
    let topics = mesh.config_source().notices().exchange(rules.prefix);
    let prefix = topics.split('.').next().unwrap_or_default();
    tracing::warn!(
        %error, failures, bus = bus.address(), mode = rules.name, prefix,
        "the configuration cannot be read; trying again"
    );
}

/// The pause after the next failure.
fn longer(pause: Duration, error: &Error) -> Duration {
    let longest = match error.code().is_transient() {
        true => LONGEST,
        false => LONGEST_REFUSED,
    };
    doubled(pause, longest)
}

/// The config service announces its version at each connect; one lower than ours means another store.
fn is_everything(push: &ConfigPush, view: &ConfigView) -> bool {
    push.version < view.version() && !push.changes.is_empty()
}

async fn read_types(
    mesh: &Mesh,
    view: &ConfigView,
    types: &BTreeSet<String>,
) -> Result<(i64, Changed), Error> {
    // Types are read side by side; a change between two reads must be applied again to the earlier one.
    let mut version = i64::MAX;
    let source = mesh.config_source();
    let reads = types.iter().map(|kind| source.rows(mesh, kind, FETCH));
    // All or none: what a failed reading had changed in the view would be no change to the next one, and nobody told.
    let read = futures::future::try_join_all(reads).await?;
    let mut all = BTreeMap::new();
    for (kind, (at, rows)) in types.iter().zip(read) {
        version = version.min(at);
        all.insert(kind.clone(), rows);
    }
    let changed = Changed {
        whole: view.replace(all),
        ..Changed::default()
    };
    Ok((version, changed))
}

async fn apply(
    mesh: &Mesh,
    view: &ConfigView,
    read: &BTreeSet<String>,
    push: &ConfigPush,
) -> Result<Changed, Error> {
    let mut changed = Changed::default();
    let mut types: BTreeSet<String> = push
        .changes
        .keys()
        .filter(|kind| read.contains(*kind))
        .cloned()
        .collect();
    if push.workspace_changes.is_some() {
        let lifecycle = LIFECYCLE.into_iter().map(str::to_owned);
        types.extend(lifecycle.filter(|kind| read.contains(kind)));
    }
    if !push.keys.is_empty() && push.keys.len() <= MAX_KEYS {
        let mut by_workspace: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
        for key in push.keys.iter().filter(|key| read.contains(&key.r#type)) {
            by_workspace
                .entry(&key.workspace)
                .or_default()
                .push((key.r#type.clone(), key.key.clone()));
        }
        // All or none, as above.
        let mut read = Vec::new();
        for (workspace, keys) in by_workspace {
            let source = mesh.config_source();
            let values = source.values(mesh, workspace, &keys, FETCH).await?;
            read.push((workspace, keys, values));
        }
        for (workspace, keys, values) in read {
            for ((kind, key), value) in keys.into_iter().zip(values) {
                view.set(workspace, &kind, &key, value.as_deref());
                changed.rows.insert((kind, workspace.to_owned(), key));
            }
        }
        return Ok(changed);
    }
    if types.is_empty() {
        return Ok(changed);
    }
    Ok(read_types(mesh, view, &types).await?.1)
}
