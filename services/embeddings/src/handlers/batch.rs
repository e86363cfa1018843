//! Records that come within a few milliseconds of each other share one question and one record of
//! outcome. The first of them, the leader, asks and writes for all; the others wait for it. When the
//! question was at fault, each asks for itself, so that one bad text holds up nobody else.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_mesh::{ConsumeError, Cx};
use tg_schemas::{Error, Retry};
use tokio::sync::{Notify, oneshot};

use super::{Group, ask, fault};
use crate::engine::portion::{BYTES, TEXTS};

/// How long a leader waits for others.
const WINDOW: Duration = Duration::from_millis(3);

/// A text with what is to be said of its vector.
pub(crate) trait Item: Send + 'static {
    /// The text.
    fn text(&self) -> &str;
}

/// Writes the outcome.
pub(crate) trait Stage<I>: Send + Sync {
    /// One record for all items, each with its vector.
    fn write(
        &self,
        cx: &Cx,
        items: Vec<(I, Vec<f32>)>,
        model: String,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

/// What a follower hears.
#[derive(Debug, Clone)]
enum Outcome {
    Done,
    Failed(Error),
    /// Ask yourself.
    Alone,
}

struct Follower<I> {
    items: Vec<I>,
    tell: oneshot::Sender<(Outcome, Vec<I>)>,
}

struct Open<I> {
    number: u64,
    texts: usize,
    bytes: usize,
    followers: Vec<Follower<I>>,
    full: Arc<Notify>,
}

/// The open batches of a stage.
pub(crate) struct Batcher<I> {
    open: Mutex<(u64, HashMap<Group, Open<I>>)>,
}

impl<I: Item> Batcher<I> {
    pub(crate) fn new() -> Self {
        Self {
            open: Mutex::new((0, HashMap::new())),
        }
    }

    /// Sees to it that the items' vectors are written.
    pub(crate) async fn handle(
        &self,
        cx: &Cx,
        group: Group,
        items: Vec<I>,
        stage: &impl Stage<I>,
    ) -> Result<(), ConsumeError> {
        if items.is_empty() {
            return Ok(());
        }
        match self.join(&group, items) {
            Joined::Follower(told) => {
                let alone = match told.await {
                    Ok((Outcome::Done, _)) => return Ok(()),
                    Ok((Outcome::Failed(error), _)) => return Err(fault(error)),
                    Ok((Outcome::Alone, items)) => items,
                    Err(_) => {
                        let error = Error::typed(crate::error::FAULT, "the batch was given up");
                        return Err(fault(error));
                    }
                };
                run(cx, alone, stage)
                    .await
                    .map_err(|(error, _)| fault(error))
            }
            Joined::Leader {
                items,
                number,
                full,
            } => {
                let wait = tokio::time::timeout(WINDOW, full.notified());
                // Full or not: what is there by now is the batch.
                let _ = wait.await;
                let followers = self.close(&group, number);
                lead(cx, items, followers, stage).await.map_err(fault)
            }
        }
    }

    fn join(&self, group: &Group, items: Vec<I>) -> Joined<I> {
        let (count, bytes) = size(&items);
        let mut open = self.open.lock();
        if let Some(batch) = open.1.get_mut(group)
            && batch.texts + count <= TEXTS
            && batch.bytes + bytes <= BYTES
        {
            batch.texts += count;
            batch.bytes += bytes;
            let (tell, told) = oneshot::channel();
            batch.followers.push(Follower { items, tell });
            if batch.texts == TEXTS {
                batch.full.notify_one();
            }
            return Joined::Follower(told);
        }
        open.0 += 1;
        let number = open.0;
        let full = Arc::new(Notify::new());
        if count >= TEXTS || bytes >= BYTES {
            full.notify_one();
        }
        let batch = Open {
            number,
            texts: count,
            bytes,
            followers: Vec::new(),
            full: full.clone(),
        };
        // A batch without room for this one is full enough: it goes now, and stays findable for its
        // leader by its number.
        if let Some(before) = open.1.insert(group.clone(), batch) {
            before.full.notify_one();
            let mut aside = group.clone();
            aside.extra = format!("closed {}", before.number);
            open.1.insert(aside, before);
        }
        Joined::Leader {
            items,
            number,
            full,
        }
    }

    fn close(&self, group: &Group, number: u64) -> Vec<Follower<I>> {
        let mut open = self.open.lock();
        if open
            .1
            .get(group)
            .is_some_and(|batch| batch.number == number)
        {
            return open
                .1
                .remove(group)
                .map_or_else(Vec::new, |batch| batch.followers);
        }
        let mut aside = group.clone();
        aside.extra = format!("closed {number}");
        open.1
            .remove(&aside)
            .map_or_else(Vec::new, |batch| batch.followers)
    }
}

enum Joined<I> {
    Follower(oneshot::Receiver<(Outcome, Vec<I>)>),
    Leader {
        items: Vec<I>,
        number: u64,
        full: Arc<Notify>,
    },
}

fn size<I: Item>(items: &[I]) -> (usize, usize) {
    let bytes = items.iter().map(|item| item.text().len()).sum();
    (items.len(), bytes)
}

async fn lead<I: Item>(
    cx: &Cx,
    items: Vec<I>,
    followers: Vec<Follower<I>>,
    stage: &impl Stage<I>,
) -> Result<(), Error> {
    let own = items.len();
    let mut all = items;
    let mut waiting = Vec::with_capacity(followers.len());
    for follower in followers {
        waiting.push((follower.items.len(), follower.tell));
        all.extend(follower.items);
    }
    metrics::histogram!("tg_embeddings_batch_texts").record(all.len() as f64);
    let (outcome, mut items) = match run(cx, all, stage).await {
        Ok(()) => (Outcome::Done, Vec::new()),
        // Of what could not be written nothing comes back: each fails by itself, and nobody is told that it was done.
        Err((error, items))
            if error.code().retry() == Retry::Never && !waiting.is_empty() && !items.is_empty() =>
        {
            (Outcome::Alone, items)
        }
        Err((error, items)) => (Outcome::Failed(error), items),
    };
    let mine: Vec<I> = items.drain(..own.min(items.len())).collect();
    for (count, tell) in waiting {
        let theirs = items.drain(..count.min(items.len())).collect();
        // One that has gone is tried again from its queue.
        let _ = tell.send((outcome.clone(), theirs));
    }
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::Failed(error) => Err(error),
        Outcome::Alone => run(cx, mine, stage).await.map_err(|(error, _)| error),
    }
}

/// Asks and writes. The items come back when they were not embedded.
async fn run<I: Item>(
    cx: &Cx,
    items: Vec<I>,
    stage: &impl Stage<I>,
) -> Result<(), (Error, Vec<I>)> {
    let texts: Vec<&str> = items.iter().map(Item::text).collect();
    let (vectors, model) = match ask(cx, &texts).await {
        Ok(found) => found,
        Err(error) => return Err((error, items)),
    };
    let with_vectors = items.into_iter().zip(vectors).collect();
    let written = stage.write(cx, with_vectors, model).await;
    written.map_err(|error| (error, Vec::new()))
}
