//! What a stop did, in numbers. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Deliveries of one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct QueueReceipt {
    /// Whose queue it was.
    pub subscription: String,
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
    /// Per subscription: handled since its processor knew of the stop, as it told itself.
    pub told: BTreeMap<String, u64>,
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
        let get = |map: &BTreeMap<String, u64>, name: &str| map.get(name).copied().unwrap_or(0);
        let mut names: Vec<&String> = self
            .before
            .keys()
            .chain(self.told.keys())
            .chain(self.parked.keys())
            .chain(self.discarded.keys())
            .collect();
        names.sort();
        names.dedup();
        let queues = names
            .into_iter()
            .map(|name| QueueReceipt {
                subscription: name.clone(),
                finished: self.told.get(name).copied().unwrap_or_else(|| {
                    get(&self.before, name)
                        .saturating_sub(get(&self.after, name))
                        .saturating_sub(get(&self.aside, name))
                }),
                parked: get(&self.parked, name),
                discarded: get(&self.discarded, name),
            })
            .filter(|queue| queue.finished + queue.parked + queue.discarded > 0)
            .collect();
        Receipt {
            queues,
            queues_removed: self.queues_removed,
            exchanges_removed: self.exchanges_removed,
            exchanges_left: self.exchanges_left,
            still_attached: self.still_attached.clone(),
            dry_run: false,
        }
    }
}
