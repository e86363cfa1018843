//! What is too old goes out of the ledger on time, also where no run begins.

use std::sync::Arc;
use std::time::Duration;

use tg_mesh::{LeasedStore, clock};
use tg_storage::StorageError;

use crate::store::Ledger;

/// How often it goes, and how soon the first time.
const EVERY: Duration = Duration::from_secs(600);
const FIRST: Duration = Duration::from_secs(20);
/// Pause between two pieces: others write meanwhile.
const BETWEEN: Duration = Duration::from_millis(50);

/// Runs until `stopping`. The store is not held while nothing is done: it must be free to go.
pub(crate) async fn run(store: Arc<LeasedStore<Ledger>>, stopping: impl Future<Output = ()>) {
    tokio::pin!(stopping);
    let mut pause = FIRST;
    loop {
        // The pause between two looks at what is too old, or between its pieces.
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = &mut stopping => return,
        }
        pause = match some(&store).await {
            Ok(true) => BETWEEN,
            Ok(false) => EVERY,
            Err(error) => {
                tracing::warn!(%error, "the ledger keeps what is too old for another while");
                EVERY
            }
        };
    }
}

/// Forgets some, if this process has the ledger; whether there is more.
async fn some(store: &LeasedStore<Ledger>) -> Result<bool, StorageError> {
    match store.opened() {
        Some(ledger) => ledger.forget(clock::millis()).await,
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use tg_provenance::Ended;

    use super::*;
    use crate::store::{IsOver, RunEnd, RunKey, Told};

    #[tokio::test(start_paused = true)]
    async fn what_is_too_old_goes_also_where_no_run_begins() {
        let ledger = Ledger::in_memory().unwrap();
        for run in ["a", "b"] {
            let end = RunEnd {
                workspace: "ws".into(),
                day: "1970-01-01".into(),
                ended: Ended {
                    run: run.into(),
                    collection: "c".into(),
                    hash: "h".into(),
                },
                ..RunEnd::default()
            };
            let key = RunKey {
                run: run.into(),
                is_over: IsOver::when(|| false),
            };
            ledger
                .finish_run(&key, 1, &end, Told::default(), 1)
                .await
                .unwrap();
        }
        let kept = async || ledger.ended("ws", "1970-01-01", 0, 9).await.unwrap().len();
        assert_eq!(kept().await, 2);
        let store = LeasedStore::opened_with("agent-manager", ledger.clone());
        let forgetting = tokio::spawn(run(store, std::future::pending()));
        // While the store is waited for, the clock goes on by itself.
        let mut looks = 0;
        while kept().await > 0 {
            looks += 1;
            assert!(looks < 10_000, "it goes");
        }
        forgetting.abort();
    }
}
