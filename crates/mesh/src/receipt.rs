//! What is reported to the writer of a record, where it asked: reported by the processors that keep what records hold
//! ([`tg_schemas::processors::Spec::keeps`]), once the record is settled.

use std::sync::Arc;

use parking_lot::Mutex;
use tg_rpc::Peer;
use tg_schemas::receipt::{Fate, Slip};
use tg_schemas::{Error, Headers};

/// The receipts of one record in progress.
pub(crate) struct RecordReceipt {
    slips: Vec<Slip>,
    /// What its handler says became of it, where that is not what `Ok` says otherwise.
    fate: Mutex<Option<Fate>>,
}

impl RecordReceipt {
    /// Of a record whose writer asked.
    pub(crate) fn of(headers: &Headers) -> Option<Arc<Self>> {
        let slips: Vec<Slip> = Slip::all(headers.receipt.as_deref()?).collect();
        (!slips.is_empty()).then(|| {
            Arc::new(Self {
                slips,
                fate: Mutex::default(),
            })
        })
    }

    /// It is settled although nothing, or not all of it, was kept.
    pub(crate) fn not_kept(&self, error: Error) {
        *self.fate.lock() = Some(Fate::Refused(error));
    }

    /// Records that are made of it say these slips, and have the last word.
    pub(crate) fn pass_on(&self) -> String {
        self.fate.lock().get_or_insert(Fate::PassedOn);
        let derived = self.slips.iter().cloned().map(Slip::of_derived);
        let derived: Vec<String> = derived.map(|slip| slip.to_string()).collect();
        derived.join(" ")
    }

    /// Its handler is done with it.
    pub(crate) fn handled(&self, peer: &Peer) {
        let fate = self.fate.lock().take().unwrap_or(Fate::Stored);
        self.tell(peer, &fate);
    }

    /// Tells its writers.
    pub(crate) fn tell(&self, peer: &Peer, fate: &Fate) {
        for slip in &self.slips {
            peer.receipts().tell(slip, fate);
        }
    }
}
