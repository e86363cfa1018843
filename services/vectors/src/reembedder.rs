//! Makes the vectors of collections again by another model, a batch at a time, several collections side by side, and switches each
//! over when all of it is there. None waits for another: who is slow or stuck holds one of the places, and rests after a
//! failure. What is under way stands in the store: a process that takes it over goes on.

mod make;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use tg_collections::CollectionKey;
use tg_mesh::tg_bus::pause;
use tg_mesh::{LeasedStore, Mesh, TaskKind};
use tg_schemas::{Error, Topic};
use tokio::sync::Notify;
use tokio::time::Instant;

use self::make::{Service, make};
use crate::store::reembed::{Made, ReembedStore, Task};

/// Pause while the store is not this process's; and the first after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Longest pause of a collection after failures.
const LONGEST: Duration = Duration::from_secs(30);
/// Longest pause between two looks at what is to be done.
const LOOK: Duration = Duration::from_secs(60);
/// Pause of a collection of which nothing is left but what waits for texts.
const WAITING: Duration = Duration::from_secs(10);
/// Between two looks whether the store is still this process's, while vectors are made.
const STILL_OURS: Duration = Duration::from_secs(1);
/// Collections at a time: so many batches are in memory at most.
const AT_ONCE: usize = 16;
/// Changes that are read from the store at a time.
const PAGE: u32 = 256;

/// Why a collection does not go on at the moment, and until when.
struct Rest {
    task: i64,
    until: Instant,
    /// Failures since it last got on.
    failures: u32,
    /// Empty: it waits for texts.
    why: String,
}

/// What is known of the work beside the store.
#[derive(Default)]
pub(crate) struct Doing {
    begun: Notify,
    resting: Mutex<HashMap<CollectionKey, Rest>>,
}

impl Doing {
    /// A change of a collection was begun, or begun again: it is tried at once.
    pub(crate) fn wake(&self, key: &CollectionKey) {
        self.resting.lock().remove(key);
        self.begun.notify_one();
    }

    /// Why a collection does not get on; empty: it does.
    pub(crate) fn why_not(&self, key: &CollectionKey) -> String {
        let resting = self.resting.lock();
        resting
            .get(key)
            .map_or_else(String::new, |rest| rest.why.clone())
    }

    fn rests(&self, task: &Task) -> bool {
        let resting = self.resting.lock();
        let rest = resting.get(&task.key);
        rest.is_some_and(|rest| rest.task == task.id && rest.until > Instant::now())
    }

    /// How long until the first may go on.
    fn pause(&self) -> Duration {
        let resting = self.resting.lock();
        let first = resting.values().map(|rest| rest.until).min();
        first.map_or(LOOK, |until| {
            until.saturating_duration_since(Instant::now()).min(LOOK)
        })
    }

    /// Notes what a step came to.
    fn note(&self, task: &Task, outcome: Result<bool, Error>) {
        let mut resting = self.resting.lock();
        let (failures, why) = match outcome {
            Ok(true) => {
                resting.remove(&task.key);
                return;
            }
            Ok(false) => (0, String::new()),
            Err(error) => {
                tracing::debug!(%error, "vectors are not made again yet");
                let before = resting.get(&task.key).filter(|rest| rest.task == task.id);
                (before.map_or(0, |rest| rest.failures) + 1, error.message)
            }
        };
        let pause = match failures {
            0 => WAITING,
            failures => pause::after(RETRY_DELAY, failures - 1, LONGEST),
        };
        let rest = Rest {
            task: task.id,
            until: Instant::now() + pause,
            failures,
            why,
        };
        resting.insert(task.key.clone(), rest);
    }

    /// Forgets changes that are no more.
    fn keep(&self, tasks: &HashSet<i64>) {
        let mut resting = self.resting.lock();
        resting.retain(|_, rest| tasks.contains(&rest.task));
        let stuck = resting.values().filter(|rest| !rest.why.is_empty()).count();
        metrics::gauge!("tg_reembeddings_under_way").set(tasks.len() as f64);
        metrics::gauge!("tg_reembeddings_stuck").set(stuck as f64);
    }
}

/// Works until the process stops, while the store is this process's.
pub(crate) fn start<S: ReembedStore>(mesh: &Mesh, store: Arc<LeasedStore<S>>) -> Arc<Doing> {
    let doing = Arc::new(Doing::default());
    mesh.spawn(
        TaskKind::Background,
        run(mesh.clone(), store, doing.clone()),
    );
    doing
}

async fn run<S: ReembedStore>(mesh: Mesh, store: Arc<LeasedStore<S>>, doing: Arc<Doing>) {
    loop {
        let pause = tokio::select! {
            pause = work(&mesh, &store, &doing) => pause,
            () = mesh.stopping().cancelled() => return,
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = doing.begun.notified() => {}
            () = mesh.stopping().cancelled() => return,
        }
    }
}

/// Goes on until nothing can be done, or the store is not this process's any more: then it must be free to go, so it is held
/// here alone. How long nothing more is to be done.
async fn work<S: ReembedStore>(mesh: &Mesh, leased: &LeasedStore<S>, doing: &Doing) -> Duration {
    let Some(store) = leased.opened() else {
        doing.keep(&HashSet::new());
        return RETRY_DELAY;
    };
    let store = &*store;
    let (mut sweep, mut busy) = (Sweep::default(), HashSet::new());
    let mut going = FuturesUnordered::new();
    loop {
        while going.len() < AT_ONCE {
            match sweep.next(store, doing, &busy).await {
                Ok(Some(task)) => {
                    busy.insert(task.id);
                    going.push(async move {
                        let outcome = step(mesh, store, &task).await;
                        (task, outcome)
                    });
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "what is to be embedded again cannot be read");
                    return RETRY_DELAY;
                }
            }
        }
        if going.is_empty() {
            return doing.pause();
        }
        tokio::select! {
            Some((task, outcome)) = going.next() => {
                busy.remove(&task.id);
                doing.note(&task, outcome);
            }
            () = doing.begun.notified() => {}
            () = tokio::time::sleep(STILL_OURS) => {}
        }
        if leased.opened().is_none() {
            return RETRY_DELAY;
        }
    }
}

/// Goes round all changes, so that each has its turn.
#[derive(Default)]
struct Sweep {
    after: i64,
    page: VecDeque<Task>,
    seen: HashSet<i64>,
}

impl Sweep {
    /// The next that can be worked at; `None` where there is none in all.
    async fn next(
        &mut self,
        store: &impl ReembedStore,
        doing: &Doing,
        busy: &HashSet<i64>,
    ) -> Result<Option<Task>, Error> {
        let mut rounds = 0;
        loop {
            while let Some(task) = self.page.pop_front() {
                self.seen.insert(task.id);
                if !busy.contains(&task.id) && !doing.rests(&task) {
                    return Ok(Some(task));
                }
            }
            self.page = store.tasks(self.after, PAGE).await?.into();
            if let Some(last) = self.page.back() {
                self.after = last.id;
                continue;
            }
            doing.keep(&self.seen);
            self.seen.clear();
            self.after = 0;
            rounds += 1;
            if rounds == 2 {
                return Ok(None);
            }
        }
    }
}

/// The next batch, or the switch; whether it got on.
async fn step(mesh: &Mesh, store: &impl ReembedStore, task: &Task) -> Result<bool, Error> {
    let Some(mut batch) = store.batch(task).await? else {
        let switched = store.switch(task).await?;
        if switched {
            metrics::counter!("tg_reembedded_collections_total").increment(1);
            let collection = task.key.collection();
            tracing::info!(
                collection,
                model = task.model,
                "vectors of another model serve"
            );
        }
        return Ok(switched);
    };
    let topic = Topic::parse(&task.topic)?;
    let service = Service {
        mesh,
        topic: &topic,
        model: &task.model,
    };
    let made = make(&service, &mut batch).await?;
    let (vectors, refused) = (made.vectors, made.refused);
    let count = vectors.len() - refused.len();
    metrics::counter!("tg_reembedded_vectors_total").increment(count as u64);
    metrics::counter!("tg_reembeddings_refused_total").increment(refused.len() as u64);
    let task = task.clone();
    let made = Made {
        task,
        batch,
        vectors,
        refused,
    };
    // Of no use any more: the next look says what is to be done instead.
    store.stage(made).await?;
    Ok(true)
}
