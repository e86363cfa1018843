//! A dataset's place in this process: being loaded, ready, or failed; and the order of its changes.

use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::watch;

use crate::engine::quota::Usage;
use crate::error::GraphError;
use crate::store::embedded::batch::{Op, Run};
use crate::store::embedded::by_hand;
use crate::store::embedded::dataset::Dataset;

type Outcome = Option<Result<Arc<Dataset>, GraphError>>;

/// Shared by the loader, the commit thread and everybody who reads.
pub(crate) struct Entry {
    id: i64,
    order: Mutex<Order>,
    outcome: watch::Sender<Outcome>,
}

/// What the dataset in memory holds, and what its journal weighs.
#[derive(Default)]
struct Order {
    /// Number of the last committed change this process knows of.
    committed: i64,
    /// Number of the last change in memory.
    applied: i64,
    weight: Weight,
    dataset: Option<Arc<Dataset>>,
}

/// How much is in the journal, to decide when merging it pays.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weight {
    /// Quads named in rows.
    pub(crate) quads: u64,
    /// Rows.
    pub(crate) rows: u64,
    /// Quads named in deletions since the dataset was loaded.
    pub(crate) deleted: u64,
    /// What was added in rows.
    pub(crate) held: Usage,
    /// Quads alive when somebody last counted.
    pub(crate) live: u64,
    /// What the journal may cost before somebody counts again.
    due: u64,
}

impl Weight {
    /// What a row costs at loading, in quads. Traces are rows of 30 to 60 quads that stay: a journal of them is not merged.
    const ROW: u64 = 32;
    /// Journals below this are left alone.
    const SMALL: u64 = 100_000;

    pub(crate) fn add(&mut self, quads: u64) {
        self.quads += quads;
        self.rows += 1;
    }

    /// What loading it costs, in quads.
    fn cost(&self) -> u64 {
        self.quads + Self::ROW * self.rows
    }

    /// The same journal, if so much of it is alive.
    pub(crate) fn with_live(self, live: u64) -> Self {
        Self { live, ..self }
    }

    /// Whether half of loading it would be spent on the past.
    pub(crate) fn is_wasteful(&self) -> bool {
        self.cost() > 2 * self.live + Self::SMALL
    }

    /// Whether it may be wasteful, and was not counted lately: counting goes through everything.
    fn is_due(&self) -> bool {
        self.is_wasteful() && self.cost() > self.due
    }

    /// Lets the journal grow by a part of what it costs before it is looked at again.
    fn wait_for(&mut self, part: u64) {
        self.due = self.cost() + part + Self::SMALL / 8;
    }

    /// Whether memory still holds a lot that was deleted.
    pub(crate) fn holds_garbage(&self) -> bool {
        self.deleted > self.live + Self::SMALL
    }
}

/// Result of an attempt to say that loading is done.
pub(crate) enum Published {
    /// Readers have it.
    Ready,
    /// More was committed meanwhile: read on.
    Behind,
}

impl Entry {
    /// A dataset that somebody loads.
    pub(crate) fn loading(id: i64) -> Self {
        Self {
            id,
            order: Mutex::default(),
            outcome: watch::Sender::new(None),
        }
    }

    /// A dataset that was just created, empty.
    pub(crate) fn created(id: i64, dataset: Arc<Dataset>) -> Self {
        let entry = Self::loading(id);
        entry.order.lock().dataset = Some(dataset.clone());
        entry.outcome.send_replace(Some(Ok(dataset)));
        entry
    }

    /// Id in the journal.
    pub(crate) fn id(&self) -> i64 {
        self.id
    }

    /// The dataset, if it is in memory as far as everything that was committed.
    pub(crate) fn loaded(&self) -> Option<Arc<Dataset>> {
        self.order.lock().dataset.clone()
    }

    /// It is let go of: who still looks at it is told so.
    pub(crate) fn retire(&self) {
        if let Some(dataset) = self.loaded() {
            dataset.retire();
        }
    }

    /// What it will hold once it is loaded.
    pub(crate) fn reserve(&self, held: Usage) {
        self.order.lock().weight.held = held;
    }

    /// What it holds in memory at most.
    pub(crate) fn held(&self) -> Usage {
        self.order.lock().weight.held
    }

    /// Waits until it is loaded.
    pub(crate) async fn ready(&self) -> Result<Arc<Dataset>, GraphError> {
        let mut outcome = self.outcome.subscribe();
        let known = outcome.wait_for(Option::is_some).await;
        match known.as_deref() {
            Ok(Some(result)) => result.clone(),
            _ => Err(GraphError::Closed),
        }
    }

    /// The loader has read everything up to `seq`.
    pub(crate) fn publish(&self, dataset: &Arc<Dataset>, seq: i64, weight: Weight) -> Published {
        let mut order = self.order.lock();
        if order.committed > seq {
            return Published::Behind;
        }
        order.committed = seq;
        order.applied = seq;
        order.weight = weight;
        order.dataset = Some(dataset.clone());
        self.outcome.send_replace(Some(Ok(dataset.clone())));
        Published::Ready
    }

    /// Loading failed.
    pub(crate) fn fail(&self, error: GraphError) {
        self.outcome.send_replace(Some(Err(error)));
    }

    /// Applies runs that were committed as the changes up to `seq` in `rows` rows. Left to the loader
    /// while there is one. Returns whether the journal is worth merging.
    pub(crate) fn apply(&self, seq: i64, rows: u64, runs: &[&Run]) -> Result<bool, GraphError> {
        let mut order = self.order.lock();
        order.committed = order.committed.max(seq);
        let Some(dataset) = order.dataset.clone() else {
            return Ok(false);
        };
        if order.applied >= seq {
            return Ok(false);
        }
        dataset.apply(runs.iter().copied())?;
        order.applied = seq;
        for run in runs {
            let quads = run.quads.len() as u64;
            order.weight.quads += quads;
            if run.op == Op::Delete {
                order.weight.deleted += quads;
            }
            order.weight.held = order.weight.held.and(run.adds());
        }
        order.weight.rows += rows;
        Ok(order.weight.is_due())
    }

    /// One state with its number and weight, for a snapshot.
    pub(crate) fn freeze(&self) -> Option<Frozen> {
        let order = self.order.lock();
        let dataset = order.dataset.as_ref()?;
        Some(Frozen {
            dataset: dataset.clone(),
            quads: dataset.all(),
            by_hand: dataset.by_hand(),
            seq: order.applied,
            weight: order.weight,
        })
    }

    /// The rows up to the frozen state now weigh this.
    pub(crate) fn reweigh(&self, before: Weight, rows: u64, held: Usage) -> Weight {
        let mut order = self.order.lock();
        let live = held.quads;
        let since = Weight {
            quads: order.weight.quads - before.quads,
            rows: order.weight.rows - before.rows,
            ..order.weight
        };
        order.weight = Weight {
            quads: since.quads + live,
            rows: since.rows + rows,
            held: since.held.without(before.held).and(held),
            deleted: since.deleted,
            live,
            due: 0,
        };
        order.weight
    }

    /// Somebody counted, and merging is not worth it yet.
    pub(crate) fn counted(&self, live: u64) {
        let mut order = self.order.lock();
        order.weight.live = live;
        let part = order.weight.cost() / 8;
        order.weight.wait_for(part);
    }

    /// Merging did not work: not again before the journal has grown as much once more.
    pub(crate) fn not_merged(&self) {
        let mut order = self.order.lock();
        let all = order.weight.cost();
        order.weight.wait_for(all);
    }
}

/// All quads of one state, the change it stands at and what the journal weighed then.
pub(crate) struct Frozen {
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) quads: oxigraph::store::QuadIter<'static>,
    pub(crate) by_hand: by_hand::Frozen,
    pub(crate) seq: i64,
    pub(crate) weight: Weight,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_grows_by_what_stays_is_counted_rarely() {
        let entry = Entry::loading(1);
        let (mut counts, mut live) = (0, 0);
        for _ in 0..20_000 {
            live += 40;
            let due = {
                let mut order = entry.order.lock();
                order.weight.add(40);
                order.weight.is_due()
            };
            if due {
                counts += 1;
                entry.counted(live);
            }
        }
        assert!((1..=20).contains(&counts), "{counts}");
    }

    #[test]
    fn a_journal_that_could_not_be_merged_grows_first() {
        let mut weight = Weight::default();
        weight.add(Weight::SMALL);
        assert!(weight.is_due());
        let entry = Entry::loading(1);
        entry.order.lock().weight = weight;
        entry.not_merged();
        let mut order = entry.order.lock();
        order.weight.add(Weight::SMALL / 2);
        assert!(!order.weight.is_due());
        order.weight.add(Weight::SMALL);
        assert!(order.weight.is_due());
    }
}
