//! What a stop did, in numbers. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Deliveries of one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct QueueReceipt {
    /// Whose queue it was.
    pub subscription: String,
    /// All that came to it since the flow was started, as far as it was counted: the sum of the others.
    pub sent: u64,
    /// Handled before that moment of the stop from which on `finished` counts. Counted by the processor; a foreign
    /// one counts nothing, and one that was killed takes with it what it counted: then [`Self::at_least`] says so.
    pub answered: u64,
    /// Not all who handled its messages reported their counts: `sent` and `answered` may be more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Handled between the moment when the processor knew of the stop and its departure. Counted by the
    /// processor, or, for a foreign one, from what its queue held.
    pub finished: u64,
    /// Kept as dead letters.
    pub parked: u64,
    /// Thrown away.
    pub discarded: u64,
}

/// A receipt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Receipt {
    /// Queues that held or handled anything.
    pub queues: Vec<QueueReceipt>,
    /// Not all who handled messages of the flow reported their counts: there may be more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Queues removed.
    pub queues_removed: u64,
    /// Exchanges removed.
    pub exchanges_removed: u64,
    /// Exchanges that others still listen to.
    #[serde(skip_serializing_if = "is_zero")]
    pub exchanges_left: u64,
    /// Processors that did not report their departure in time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub still_attached: Vec<String>,
    /// Nothing was done; the numbers say what would be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Running counts of a stop; kept between crashes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Counts {
    /// Per subscription: waiting or in progress when the stop began.
    pub before: BTreeMap<String, u64>,
    /// Per subscription: handled since its processor knew of the stop, as it reported itself.
    pub told: BTreeMap<String, u64>,
    /// Per subscription: handled before, as its processor reported; by one that never knew of the stop, until it left.
    pub answered: BTreeMap<String, u64>,
    /// Subscriptions of which somebody did not report all that it handled before.
    pub uncounted: BTreeSet<String>,
    /// Who stops the flow does not know whom it had since its start, so that of no subscription all is known.
    pub all_uncounted: bool,
    /// Per subscription: waiting when the processors had left.
    pub after: BTreeMap<String, u64>,
    /// Per subscription: parked.
    pub parked: BTreeMap<String, u64>,
    /// Per subscription: thrown away.
    pub discarded: BTreeMap<String, u64>,
    /// Per subscription: dead-lettered by the processors themselves during the stop, part of `parked` or
    /// `discarded` but not of `after`.
    pub aside: BTreeMap<String, u64>,
    /// Queues removed.
    pub queues_removed: u64,
    /// Exchanges removed.
    pub exchanges_removed: u64,
    /// Exchanges that others still listen to.
    pub exchanges_left: u64,
    /// Processors that did not leave in time.
    pub still_attached: Vec<String>,
}

impl Counts {
    /// The receipt.
    pub fn receipt(&self) -> Receipt {
        let mut names: Vec<&String> = self
            .before
            .keys()
            .chain(self.told.keys())
            .chain(self.answered.keys())
            .chain(self.parked.keys())
            .chain(self.discarded.keys())
            .chain(&self.uncounted)
            .collect();
        names.sort();
        names.dedup();
        let queues = names
            .into_iter()
            .map(|name| self.of(name))
            .filter(|queue| queue.sent > 0 || self.uncounted.contains(&queue.subscription))
            .collect();
        Receipt {
            queues,
            at_least: self.all_uncounted || !self.uncounted.is_empty(),
            queues_removed: self.queues_removed,
            exchanges_removed: self.exchanges_removed,
            exchanges_left: self.exchanges_left,
            still_attached: self.still_attached.clone(),
            dry_run: false,
        }
    }

    /// What became of what came to one queue.
    fn of(&self, name: &str) -> QueueReceipt {
        let get = |map: &BTreeMap<String, u64>| map.get(name).copied().unwrap_or(0);
        let mut answered = get(&self.answered);
        let finished = self.told.get(name).copied().unwrap_or_else(|| {
            let finished = get(&self.before)
                .saturating_sub(get(&self.after))
                .saturating_sub(get(&self.aside));
            // Who did not know of the stop counted these, too.
            answered = answered.saturating_sub(finished);
            finished
        });
        let (parked, discarded) = (get(&self.parked), get(&self.discarded));
        QueueReceipt {
            subscription: name.to_owned(),
            sent: answered + finished + parked + discarded,
            answered,
            at_least: self.all_uncounted || self.uncounted.contains(name),
            finished,
            parked,
            discarded,
        }
    }
}
