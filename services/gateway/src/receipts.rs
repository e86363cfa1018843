//! The receipts of stores that imports wait for, within a bound for all and for each workspace: whoever finds no room waits with
//! the next record.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_mesh::fair::{Pool, Share};
use tg_mesh::{Awaited, Mesh, PartFate};
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::translate::bulk::BulkKind;
use crate::options::Settings;

/// Of the room for all, one workspace has this part: those whose store is away hold up no others.
const OF_ONE: usize = 8;

/// What all imports wait for.
#[derive(Debug, Clone)]
pub(crate) struct Receipts {
    room: Pool,
    patience: Duration,
    most: Duration,
    heard: Arc<Heard>,
}

/// When the stores said of a record last what became of it, for each kind of import: one that does is behind, and not away.
#[derive(Debug)]
struct Heard([Mutex<Instant>; 5]);

impl Heard {
    fn of(&self, kind: BulkKind) -> &Mutex<Instant> {
        let [triples, entities, chunks, contexts, rows] = &self.0;
        match kind {
            BulkKind::Triples => triples,
            BulkKind::GraphEmbeddings => entities,
            BulkKind::DocumentEmbeddings => chunks,
            BulkKind::EntityContexts => contexts,
            BulkKind::Rows => rows,
        }
    }
}

/// A frame whose records the stores have not settled yet.
pub(crate) struct Unsettled {
    awaited: Awaited,
    /// Number of the first item of each record.
    starts: Vec<usize>,
    kind: BulkKind,
    sent: Instant,
    receipts: Receipts,
    _share: Share,
}

/// What the stores said of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All of it is stored.
    Stored,
    /// Some of it is not, and why.
    Refused(Vec<Refused>),
    /// They did not say in time, of some of it at least; with why it failed before, if it did.
    Unconfirmed(Option<Error>),
}

/// Why a record of a frame, or some of it, was not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Number of its first item in the frame; `None` where the record is the whole frame.
    pub(crate) from: Option<usize>,
    /// As the store says it; items are counted from the first of the record.
    pub(crate) error: Error,
}

impl Receipts {
    pub(crate) fn new(settings: &Settings) -> Self {
        let all = settings.imports_unsettled;
        Self {
            room: Pool::new(all, all.div_ceil(OF_ONE)),
            patience: Duration::from_secs(settings.import_settle_seconds as u64),
            most: Duration::from_secs(settings.import_settle_most_seconds as u64),
            heard: Arc::new(Heard([(); 5].map(|()| Mutex::new(Instant::now())))),
        }
    }

    /// Waits for room for the records of a frame, of so many items each. None where the process ends.
    ///
    /// # Errors
    /// `too-large` where there is never so much room.
    pub(crate) async fn open(
        &self,
        mesh: &Mesh,
        workspace: &str,
        kind: BulkKind,
        items: impl Iterator<Item = usize>,
    ) -> Result<Option<Unsettled>, Error> {
        let mut next = 0;
        let starts = items.map(|count| {
            let start = next;
            next += count;
            start
        });
        let starts: Vec<usize> = starts.collect();
        let (units, each) = (starts.len().max(1), self.room.each());
        if units > each {
            let text = format!(
                "the frame makes {units} records, and {each} may wait for the stores at a time: send it in smaller frames"
            );
            return Err(Error::new(ErrorCode::TooLarge, text));
        }
        let user = Arc::from(workspace);
        let Ok(_share) = self.room.take(&user, units).await else {
            return Ok(None);
        };
        Ok(Some(Unsettled {
            awaited: mesh.awaited().open(starts.len()),
            starts,
            kind,
            sent: Instant::now(),
            receipts: self.clone(),
            _share,
        }))
    }

    /// Until when a record that was sent at a time may still be settled, as it looks now.
    fn until(&self, kind: BulkKind, sent: Instant) -> Instant {
        let heard = *self.heard.of(kind).lock();
        let most = sent + self.most.max(self.patience);
        (sent.max(heard) + self.patience).min(most)
    }

    /// A store has said what became of something.
    fn hear(&self, kind: BulkKind) {
        *self.heard.of(kind).lock() = Instant::now();
    }
}

impl Unsettled {
    /// What the record of a part says of where its receipt goes.
    pub(crate) fn slip(&self, part: usize) -> String {
        self.awaited.slip(part)
    }

    /// All its records are on the bus: from now on the store may take its time.
    pub(crate) fn sent(&mut self) {
        self.sent = Instant::now();
    }

    /// Waits until the stores have said what became of all of it, for as long as they may take, and not once that is
    /// enough. A store that settles others meanwhile gets to it.
    pub(crate) async fn verdict(self, enough: CancellationToken) -> Verdict {
        let mut known = 0;
        loop {
            let until = self.receipts.until(self.kind, self.sent);
            tokio::select! {
                biased;
                () = self.awaited.settled() => break,
                () = enough.cancelled() => break,
                () = tokio::time::sleep_until(until) => {}
            }
            // What was said of a part of this frame is a sign of life, too.
            let fates = self.awaited.fates().into_iter();
            let told = fates.filter(|fate| !matches!(fate, PartFate::Unknown(_)));
            let told = told.count();
            if told > known {
                known = told;
                self.receipts.hear(self.kind);
            }
            if self.receipts.until(self.kind, self.sent) <= Instant::now() {
                break;
            }
        }
        let verdict = judge(&self.starts, self.awaited.fates());
        if !matches!(verdict, Verdict::Unconfirmed(_)) {
            self.receipts.hear(self.kind);
        }
        verdict
    }
}

/// What the fates of the records say of the frame: one that was refused anywhere is refused, and one is stored only if all of
/// it is.
fn judge(starts: &[usize], fates: Vec<PartFate>) -> Verdict {
    let whole = fates.len() == 1;
    let (mut refused, mut unknown) = (Vec::new(), None);
    for (fate, start) in fates.into_iter().zip(starts) {
        match fate {
            PartFate::Stored => {}
            PartFate::Refused(error) => refused.push(Refused {
                from: (!whole).then_some(*start),
                error,
            }),
            PartFate::Unknown(why) => unknown = unknown.or(Some(why)),
        }
    }
    match unknown {
        _ if !refused.is_empty() => Verdict::Refused(refused),
        Some(why) => Verdict::Unconfirmed(why),
        None => Verdict::Stored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Error {
        Error::typed("too-large", "full")
    }

    #[test]
    fn a_store_that_is_behind_is_waited_for_and_one_that_is_away_is_not() {
        let settings = Settings {
            import_settle_seconds: 30,
            import_settle_most_seconds: 100,
            ..Settings::default()
        };
        let receipts = Receipts::new(&settings);
        let (kind, sent) = (BulkKind::Triples, Instant::now());
        let seconds = Duration::from_secs;
        let heard = |after| *receipts.heard.of(kind).lock() = sent + seconds(after);
        assert_eq!(receipts.until(kind, sent), sent + seconds(30));
        heard(20);
        assert_eq!(receipts.until(kind, sent), sent + seconds(50));
        heard(99);
        assert_eq!(receipts.until(kind, sent), sent + seconds(100));
        assert_eq!(
            receipts.until(BulkKind::Rows, sent),
            sent + seconds(30),
            "of another store"
        );
    }

    #[test]
    fn a_frame_is_stored_only_if_all_of_it_is() {
        use PartFate::{Refused as No, Stored, Unknown};
        let refused = |from| {
            let error = full();
            Verdict::Refused(vec![Refused { from, error }])
        };
        for (fates, verdict) in [
            (vec![], Verdict::Stored),
            (vec![Stored, Stored], Verdict::Stored),
            (vec![Stored, Unknown(None)], Verdict::Unconfirmed(None)),
            (
                vec![Unknown(Some(full())), Stored],
                Verdict::Unconfirmed(Some(full())),
            ),
            (vec![Stored, No(full())], refused(Some(1000))),
            (vec![Unknown(None), No(full())], refused(Some(1000))),
            (vec![No(full())], refused(None)),
        ] {
            assert_eq!(judge(&[0, 1000], fates.clone()), verdict, "{fates:?}");
        }
    }
}
