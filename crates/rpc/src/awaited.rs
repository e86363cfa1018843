//! The writer's end of receipts: records whose writer waits for a report on them.
//!
//! Nothing is asked twice and nothing is kept for who lost a receipt: what is not reported in the writer's own time is not known.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tg_bus::Envelope;
use tg_schemas::Error;
use tg_schemas::msg::{Receipt, Receipts};
use tg_schemas::receipt::{Fate, Slip};
use tokio::sync::Notify;

/// What this process waits for. Cheap to clone.
#[derive(Clone)]
pub struct AwaitedReceipts(Arc<Inner>);

struct Inner {
    inbox: Arc<str>,
    next: AtomicU64,
    open: Mutex<HashMap<u64, Arc<Open>>>,
}

/// Records that were written for one thing, the parts of it.
#[derive(Default)]
struct Open {
    parts: Mutex<Parts>,
    settled: Notify,
}

#[derive(Default)]
struct Parts {
    all: Vec<Part>,
    /// Those that are not settled.
    left: usize,
}

/// What is known of one of them.
#[derive(Debug, Default, Clone)]
struct Part {
    stored: bool,
    /// A record was made of it, ...
    passed_on: bool,
    /// ... which is stored.
    derived: bool,
    refused: Option<Error>,
    later: Option<Error>,
}

/// What became of a part, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartFate {
    /// Its effect is durable.
    Stored,
    /// Why it, or some of it, is not stored.
    Refused(Error),
    /// Nobody has said; with why it failed before, if it did.
    Unknown(Option<Error>),
}

/// Receipts of a thing that are waited for, until this is dropped.
pub struct Awaited {
    all: AwaitedReceipts,
    of: u64,
    open: Arc<Open>,
}

impl AwaitedReceipts {
    pub(crate) fn new(inbox: Arc<str>) -> Self {
        Self(Arc::new(Inner {
            inbox,
            next: AtomicU64::new(0),
            open: Mutex::default(),
        }))
    }

    /// Waits for receipts of so many records. Whoever opens bounds how many are open.
    pub fn open(&self, parts: usize) -> Awaited {
        let of = self.0.next.fetch_add(1, Ordering::Relaxed);
        let open = Arc::new(Open {
            parts: Mutex::new(Parts {
                all: vec![Part::default(); parts],
                left: parts,
            }),
            settled: Notify::new(),
        });
        self.0.open.lock().insert(of, open.clone());
        Awaited {
            all: self.clone(),
            of,
            open,
        }
    }

    /// How many things are waited for.
    pub fn open_count(&self) -> usize {
        self.0.open.lock().len()
    }

    /// Receipts came into the inbox. What nobody waits for any more is passed over.
    pub(crate) fn deliver(&self, envelope: &Envelope) {
        let Ok(told) = envelope.read::<Receipts>() else {
            return;
        };
        for receipt in &told.receipts {
            self.take(receipt);
        }
    }

    fn take(&self, receipt: &Receipt) {
        let (Ok(of), Ok(part)) = (u64::try_from(receipt.of), usize::try_from(receipt.part)) else {
            return;
        };
        let Some(fate) = Fate::told(receipt) else {
            return;
        };
        let Some(open) = self.0.open.lock().get(&of).cloned() else {
            return;
        };
        let mut parts = open.parts.lock();
        if let Some(part) = parts.all.get_mut(part) {
            let before = part.is_settled();
            part.hear(fate, receipt.derived);
            let now = part.is_settled();
            parts.left -= usize::from(now && !before);
        }
        let settled = parts.left == 0;
        drop(parts);
        if settled {
            open.settled.notify_one();
        }
    }
}

impl Part {
    fn hear(&mut self, fate: Fate, derived: bool) {
        match fate {
            Fate::Stored if derived => self.derived = true,
            Fate::Stored => self.stored = true,
            Fate::PassedOn => self.passed_on = true,
            Fate::Refused(error) => {
                self.refused.get_or_insert(error);
            }
            Fate::Later(error) => self.later = Some(error),
        }
    }

    fn is_stored(&self) -> bool {
        self.stored || (self.passed_on && self.derived)
    }

    fn is_settled(&self) -> bool {
        self.refused.is_some() || self.is_stored()
    }

    fn fate(&self) -> PartFate {
        match &self.refused {
            Some(error) => PartFate::Refused(error.clone()),
            None if self.is_stored() => PartFate::Stored,
            None => PartFate::Unknown(self.later.clone()),
        }
    }
}

impl Awaited {
    /// What the record of a part says of where its receipt goes.
    pub fn slip(&self, part: usize) -> String {
        let slip = Slip {
            inbox: self.all.0.inbox.to_string(),
            of: self.of,
            part: u32::try_from(part).unwrap_or(u32::MAX),
            derived: false,
        };
        slip.to_string()
    }

    /// Waits until it is known of every part what became of it.
    pub async fn settled(&self) {
        loop {
            let notified = self.open.settled.notified();
            if self.open.parts.lock().left == 0 {
                return;
            }
            notified.await;
        }
    }

    /// What is known of each part now.
    pub fn fates(&self) -> Vec<PartFate> {
        self.open.parts.lock().all.iter().map(Part::fate).collect()
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.all.0.open.lock().remove(&self.of);
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use tg_schemas::codec::{self, ContentType};

    use super::*;

    fn told(all: &AwaitedReceipts, receipts: Vec<Receipt>) {
        let body = codec::encode(&Receipts { receipts }, ContentType::Json).unwrap();
        all.deliver(&Envelope {
            body,
            ..Envelope::default()
        });
    }

    fn receipt(slip: &str, fate: &Fate) -> Receipt {
        Slip::parse(slip).unwrap().receipt(fate)
    }

    fn is_settled(of: &Awaited) -> bool {
        let mut settled = std::pin::pin!(of.settled());
        let mut cx = Context::from_waker(Waker::noop());
        settled.as_mut().poll(&mut cx).is_ready()
    }

    fn no() -> Error {
        Error::typed("too-large", "full")
    }

    #[test]
    fn a_thing_is_settled_once_all_its_parts_are_and_then_forgotten() {
        let all = AwaitedReceipts::new("inbox".into());
        let (one, other) = (all.open(2), all.open(1));
        assert_ne!(one.slip(0), other.slip(0));
        told(&all, vec![receipt(&one.slip(0), &Fate::Stored)]);
        assert!(!is_settled(&one));
        assert_eq!(one.fates(), [PartFate::Stored, PartFate::Unknown(None)]);
        told(&all, vec![receipt(&one.slip(1), &Fate::Later(no()))]);
        assert_eq!(one.fates()[1], PartFate::Unknown(Some(no())));
        // Told twice, and of a part that there is not.
        let again = [0, 1, 2].map(|part| receipt(&one.slip(part), &Fate::Stored));
        told(&all, again.to_vec());
        assert!(is_settled(&one));
        assert_eq!(one.fates(), [PartFate::Stored, PartFate::Stored]);
        assert_eq!(other.fates(), [PartFate::Unknown(None)]);
        drop((one, other));
        assert_eq!(all.open_count(), 0);
        assert!(is_settled(&all.open(0)));
    }

    #[test]
    fn what_was_refused_never_counts_as_stored() {
        let all = AwaitedReceipts::new("inbox".into());
        let one = all.open(1);
        let slip = one.slip(0);
        told(&all, vec![receipt(&slip, &Fate::Refused(no()))]);
        told(&all, vec![receipt(&slip, &Fate::Stored)]);
        assert_eq!(one.fates(), [PartFate::Refused(no())]);
    }

    #[test]
    fn of_a_record_that_was_made_of_another_both_are_heard() {
        let all = AwaitedReceipts::new("inbox".into());
        let one = all.open(1);
        let (slip, derived) = (one.slip(0), format!("{}/+", one.slip(0)));
        // The store may be quicker than who wrote to it.
        told(&all, vec![receipt(&derived, &Fate::Stored)]);
        assert!(!is_settled(&one));
        told(&all, vec![receipt(&slip, &Fate::PassedOn)]);
        assert_eq!(one.fates(), [PartFate::Stored]);
        let refused = all.open(1);
        let derived = format!("{}/+", refused.slip(0));
        told(&all, vec![receipt(&refused.slip(0), &Fate::PassedOn)]);
        told(&all, vec![receipt(&derived, &Fate::Refused(no()))]);
        assert_eq!(refused.fates(), [PartFate::Refused(no())]);
    }

    #[test]
    fn noise_settles_nothing() {
        let all = AwaitedReceipts::new("inbox".into());
        let one = all.open(1);
        all.deliver(&Envelope::default());
        let odd = Receipt {
            of: -1,
            part: -1,
            fate: "stored".to_owned(),
            ..Receipt::default()
        };
        let new = Receipt {
            fate: "evaporated".to_owned(),
            ..receipt(&one.slip(0), &Fate::Stored)
        };
        told(&all, vec![odd, new]);
        assert_eq!(one.fates(), [PartFate::Unknown(None)]);
    }
}
