//! Completion reports: who handled which record of a run, published in batches for the one who counts.
//!
//! A record of a run is acknowledged only after its report is confirmed, so a report may come twice but never
//! not at all (**at least once**). Handlers that are not part of a run never come here; the task starts with the first
//! report.

use std::sync::OnceLock;
use std::time::Duration;

use tg_schemas::msg::{RunTally, RunTallyEntry};
use tg_schemas::processors::fabric;
use tg_schemas::{ErrorCode, Subscription, Topic};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use tg_bus::TaskKind;
use tg_bus::pause::doubled;
use tg_rpc::{Ask, Peer};

/// Entries of one message at most, and how much they may name.
const ENTRIES: usize = 256;
const WRITTEN: usize = 8192;
/// How long the first entry of a batch waits for more: where each message costs a way over a network, and where it
/// does not. Its record counts as in progress meanwhile, so that a longer wait would slow down readers of few records
/// at a time.
const LINGER: Duration = Duration::from_millis(3);
const LINGER_HERE: Duration = Duration::from_millis(2);
/// Entries that may wait to be taken into a batch; more wait in their handlers.
const WAITING: usize = 1024;
/// Pauses between tries: doubling, at most this.
const PAUSE: Duration = Duration::from_secs(5);
/// Pause between two lines of the log about reports that wait.
const LOG_PAUSE: Duration = Duration::from_secs(60);

/// The topic of reports.
pub fn topic() -> Topic {
    subscription().topic
}

/// Its one reader.
pub fn subscription() -> Subscription {
    fabric::completion_reports()
}

/// An entry, who waits for it, and since when.
type Waiting = (RunTallyEntry, oneshot::Sender<()>, Instant);

/// This process's way to the one who counts.
#[derive(Debug, Default)]
pub(crate) struct Reports(OnceLock<mpsc::Sender<Waiting>>);

impl Reports {
    /// Adds an entry; `true` once it is confirmed. `false`: the process stops, the record stays where it is.
    pub(crate) async fn add(&self, peer: &Peer, entry: RunTallyEntry) -> bool {
        let to = self.0.get_or_init(|| {
            let (to, from) = mpsc::channel(WAITING);
            peer.spawn(TaskKind::Background, run(peer.clone(), from));
            to
        });
        let (told, confirmed) = oneshot::channel();
        to.send((entry, told, Instant::now())).await.is_ok() && confirmed.await.is_ok()
    }
}

async fn run(peer: Peer, mut from: mpsc::Receiver<Waiting>) {
    let mut declared = false;
    let linger = match peer.bus().in_process() {
        true => LINGER_HERE,
        false => LINGER,
    };
    while let Some(first) = from.recv().await {
        let (entries, told) = collect(first, &mut from, linger).await;
        metrics::histogram!("tg_tally_batch_entries").record(entries.len() as f64);
        publish(&peer, entries, &mut declared).await;
        for told in told {
            let _ = told.send(());
        }
    }
}

async fn collect(
    first: Waiting,
    from: &mut mpsc::Receiver<Waiting>,
    linger: Duration,
) -> (Vec<RunTallyEntry>, Vec<oneshot::Sender<()>>) {
    // What came while the last batch was published has waited already.
    let until = first.2 + linger;
    let mut written = first.0.written.len();
    let (mut entries, mut told) = (vec![first.0], vec![first.1]);
    while entries.len() < ENTRIES && written < WRITTEN {
        // One that is there counts even when the time is up.
        let next = tokio::time::timeout_at(until, from.recv()).await;
        let Ok(Some((entry, confirm, _))) = next else {
            break;
        };
        written += entry.written.len();
        entries.push(entry);
        told.push(confirm);
    }
    (entries, told)
}

/// Returns when the entries are safe. The readers whose entries wait take nothing new meanwhile.
async fn publish(peer: &Peer, entries: Vec<RunTallyEntry>, declared: &mut bool) {
    let mut report = RunTally { entries };
    let mut pause = Duration::from_millis(100);
    let mut logged: Option<Instant> = None;
    loop {
        // Without its reader's queue the report would go nowhere.
        if !*declared {
            let queue = [subscription()];
            *declared = peer.bus().declare(&[topic()], &queue).await.is_ok();
        }
        if *declared {
            match peer.record(&topic(), &report, Ask::default()).await {
                Ok(()) => return,
                Err(error) if error.code() == ErrorCode::TooLarge => cut(&mut report),
                Err(error) if logged.is_none_or(|last| last.elapsed() >= LOG_PAUSE) => {
                    logged = Some(Instant::now());
                    tracing::warn!(%error, "completion reports of runs wait");
                }
                Err(_) => {}
            }
        }
        metrics::counter!("tg_tally_retries_total").increment(1);
        tokio::time::sleep(pause).await;
        pause = doubled(pause, PAUSE);
    }
}

/// What no message can hold is reported as failed instead: the run must not look complete.
fn cut(report: &mut RunTally) {
    let longest = report
        .entries
        .iter_mut()
        .max_by_key(|entry| entry.written.len());
    if let Some(entry) = longest {
        entry.written.clear();
        entry.outcome = "failed".to_owned();
        entry.detail = "wrote more records than a report can hold".to_owned();
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::msg::RunWritten;

    use super::*;

    fn entry(written: usize) -> RunTallyEntry {
        RunTallyEntry {
            outcome: "ok".to_owned(),
            written: vec![RunWritten::default(); written],
            ..RunTallyEntry::default()
        }
    }

    #[tokio::test]
    async fn a_batch_ends_with_time_number_or_weight() {
        let (to, mut from) = mpsc::channel(WAITING);
        for (sent, written, batch) in [(3, 0, 3), (ENTRIES + 5, 0, ENTRIES), (10, WRITTEN / 4, 4)] {
            for _ in 0..sent {
                let waiting = (entry(written), oneshot::channel().0, Instant::now());
                to.send(waiting).await.unwrap();
            }
            let first = from.recv().await.unwrap();
            assert_eq!(collect(first, &mut from, LINGER).await.0.len(), batch);
            while from.try_recv().is_ok() {}
        }
    }

    #[test]
    fn what_cannot_be_told_is_failed() {
        let mut report = RunTally {
            entries: vec![entry(1), entry(9), entry(2)],
        };
        cut(&mut report);
        let told: Vec<_> = report
            .entries
            .iter()
            .map(|entry| entry.outcome.as_str())
            .collect();
        assert_eq!(told, ["ok", "failed", "ok"]);
        assert!(report.entries[1].written.is_empty());
    }
}
