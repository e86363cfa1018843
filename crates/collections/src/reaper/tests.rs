//! What is purged, and what is not, when configuration changes while the reaper is at work.

use parking_lot::Mutex;

use super::*;

/// A day after every tombstone of these tests.
const NOW: i64 = 86_400_000;

#[derive(Clone)]
struct Config {
    known: ConfigKnown,
    stones: Vec<Stone>,
}

/// A configuration that tests change.
struct Fake(Mutex<Config>);

impl Fake {
    fn new(stones: &[&str]) -> Arc<Self> {
        let stones = stones.iter().map(|name| stone(name)).collect();
        Arc::new(Self(Mutex::new(Config {
            known: at("x", 7),
            stones,
        })))
    }
}

impl Registry for Arc<Fake> {
    fn config(&self) -> Option<ConfigKnown> {
        Some(self.0.lock().known.clone())
    }

    fn stones(&self) -> Vec<Stone> {
        self.0.lock().stones.clone()
    }
}

fn at(identity: &str, version: i64) -> ConfigKnown {
    ConfigKnown {
        identity: identity.into(),
        version,
    }
}

fn stone(name: &str) -> Stone {
    let stone = WorkspaceTombstone {
        generation: 0,
        deleted_at: 0,
        purge_after: 1,
    };
    (name.to_owned(), stone)
}

/// Holds workspaces; whoever looks at them, or purges one, changes the configuration first.
#[derive(Default)]
struct Held {
    workspaces: Mutex<Vec<String>>,
    known: Mutex<Option<ConfigKnown>>,
    looked: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    purging: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Held {
    fn new(workspaces: &[&str]) -> Self {
        let held = Self::default();
        *held.workspaces.lock() = workspaces.iter().map(|name| (*name).to_owned()).collect();
        held
    }

    fn left(&self) -> Vec<String> {
        self.workspaces.lock().clone()
    }
}

#[async_trait]
impl WorkspaceStore for Held {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        if let Some(change) = self.looked.lock().take() {
            change();
        }
        Ok(self.left())
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        if let Some(change) = self.purging.lock().take() {
            change();
        }
        self.workspaces.lock().retain(|name| name != key.as_str());
        Ok(())
    }

    fn known_config(&self) -> &dyn KnownConfig {
        self
    }
}

#[async_trait]
impl KnownConfig for Held {
    async fn config_known(&self) -> Result<Option<ConfigKnown>, Error> {
        Ok(self.known.lock().clone())
    }

    async fn remember_config(&self, known: ConfigKnown) -> Result<(), Error> {
        *self.known.lock() = Some(known);
        Ok(())
    }
}

async fn look(store: &Held, config: &Arc<Fake>, seen: &mut Seen) {
    round(store, config, seen, LOOK).await;
}

/// As [`look`] when the last one is long ago.
async fn later(store: &Held, config: &Arc<Fake>, seen: &mut Seen) {
    round(store, config, seen, Duration::ZERO).await;
}

async fn round(store: &Held, config: &Arc<Fake>, seen: &mut Seen, look: Duration) -> Duration {
    let round = Round {
        name: "test",
        store,
        registry: config,
        clock: &|| NOW,
        look,
    };
    round.run(seen, || false).await.unwrap()
}

#[tokio::test]
async fn what_a_due_tombstone_names_is_purged_and_nothing_else() {
    let (store, config) = (Held::new(&["a", "a#9", "b"]), Fake::new(&["a"]));
    look(&store, &config, &mut Seen::default()).await;
    assert_eq!(store.left(), ["a#9", "b"]);
    assert_eq!(*store.known.lock(), Some(at("x", 7)));
}

#[tokio::test]
async fn another_or_an_older_configuration_is_noticed_within_the_minute_too() {
    for changed in [at("y", 9), at("x", 6)] {
        let (store, config) = (Held::new(&["a"]), Fake::new(&[]));
        let mut seen = Seen::default();
        look(&store, &config, &mut seen).await;
        *config.0.lock() = Config {
            known: changed.clone(),
            stones: vec![stone("a")],
        };
        look(&store, &config, &mut seen).await;
        assert_eq!(store.left(), ["a"], "{changed:?}");
        assert!(seen.refused.is_some());
        // Nor later, and the known one is taken again.
        later(&store, &config, &mut seen).await;
        assert_eq!(store.left(), ["a"], "{changed:?}");
        config.0.lock().known = at("x", 8);
        look(&store, &config, &mut seen).await;
        assert!(store.left().is_empty() && seen.refused.is_none());
    }
}

#[tokio::test]
async fn a_version_seen_since_it_was_written_down_counts() {
    let (store, config) = (Held::new(&["a"]), Fake::new(&[]));
    let mut seen = Seen::default();
    look(&store, &config, &mut seen).await;
    config.0.lock().known = at("x", 9);
    look(&store, &config, &mut seen).await;
    assert_eq!(
        *store.known.lock(),
        Some(at("x", 7)),
        "not written each time"
    );
    *config.0.lock() = Config {
        known: at("x", 8),
        stones: vec![stone("a")],
    };
    later(&store, &config, &mut seen).await;
    assert_eq!(store.left(), ["a"]);
}

/// A store that is opened again notices an older configuration by what was written down.
#[tokio::test]
async fn a_new_version_is_written_down_within_two_seconds() {
    let (store, config) = (Held::new(&[]), Fake::new(&[]));
    let mut seen = Seen::default();
    assert_eq!(round(&store, &config, &mut seen, LOOK).await, LOOK);
    config.0.lock().known = at("x", 9);
    let pause = round(&store, &config, &mut seen, LOOK).await;
    assert!(pause <= NOTE);
    tokio::time::sleep(pause).await;
    assert_eq!(round(&store, &config, &mut seen, LOOK).await, LOOK);
    assert_eq!(*store.known.lock(), Some(at("x", 9)));
}

#[tokio::test]
async fn what_was_known_is_written_down_before_an_older_one_is_refused() {
    let (store, config) = (Held::new(&[]), Fake::new(&[]));
    let mut seen = Seen::default();
    for version in [9, 8] {
        look(&store, &config, &mut seen).await;
        config.0.lock().known = at("x", version);
    }
    later(&store, &config, &mut seen).await;
    assert!(seen.refused.is_some());
    assert_eq!(*store.known.lock(), Some(at("x", 9)));
}

#[tokio::test]
async fn what_was_restored_while_the_reaper_looked_stays() {
    let (store, config) = (Held::new(&["a", "b"]), Fake::new(&["a", "b"]));
    let restoring = config.clone();
    let restore = move || restoring.0.lock().stones.retain(|(name, _)| name != "b");
    *store.looked.lock() = Some(Box::new(restore));
    look(&store, &config, &mut Seen::default()).await;
    assert_eq!(store.left(), ["b"]);
}

#[tokio::test]
async fn each_purge_looks_again_for_its_tombstone_and_the_configuration() {
    let (store, config) = (Held::new(&["a", "b"]), Fake::new(&["a", "b"]));
    let replacing = config.clone();
    let replace = move || replacing.0.lock().known = at("y", 1);
    *store.purging.lock() = Some(Box::new(replace));
    look(&store, &config, &mut Seen::default()).await;
    assert_eq!(store.left(), ["b"], "the first was under way");
}
