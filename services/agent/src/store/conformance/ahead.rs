//! What is reserved for the next step of a run.

use super::usage::{bound, call, reservation, sums, took};
use super::{Store, decides, end, of, of_ended};
use crate::engine::decision::Observation;
use crate::engine::usage::Scope;
use crate::store::{CallKind, Counted, Reservation, Told};

/// What is reserved for a call of a run in a workspace with 1000 tokens: by the step before (`ahead`), or by its own.
fn next(run: &str, expires_ms: i64, ahead: bool) -> Reservation {
    Reservation {
        expires_ms,
        waits: true,
        ahead,
        ..reservation(run, 600, vec![bound(Scope::Workspace, 1000)])
    }
}

/// Whether that fits.
async fn fits(ledger: &Store, run: &str, now_ms: i64, next: Reservation) -> bool {
    let model = call(run, 2, CallKind::Model);
    let over = ledger.reserve(&model, &next, now_ms).await.unwrap();
    over.is_none()
}

/// The call is over.
async fn settles(ledger: &Store, run: &str, count: u64) {
    let model = call(run, 2, CallKind::Model);
    let (whose, usage) = (of(run), took(run, count));
    let settled = ledger.settle(&whose, &model, &usage, 1);
    settled.await.unwrap();
}

/// What the step's calls took is counted before: the next call must fit what is left.
pub(super) async fn an_observation_reserves_for_the_next_step(ledger: Store) {
    for run in ["a", "b"] {
        decides(&ledger, run, 1, "x").await;
    }
    let observe = async |run: &str, used: u64, ended: bool| {
        let key = if ended { of_ended(run) } else { of(run) };
        let counted = [Counted {
            call: call(run, 1, CallKind::Tool),
            used: took(run, used),
        }];
        let next = Reservation {
            ahead: true,
            ..reservation(run, 40, vec![bound(Scope::Workspace, 100)])
        };
        let next = (call(run, 2, CallKind::Model), next);
        let seen = Observation {
            text: run.into(),
            ..Observation::default()
        };
        let with = (&counted[..], &next);
        let kept = ledger.observe_and_reserve(&key, 1, &seen, Told::default(), with, 1);
        kept.await.unwrap()
    };
    assert!(!observe("a", 50, true).await);
    assert!(sums(&ledger, "ws", Scope::Workspace).await.is_empty());
    // What was said of a call stands.
    for _ in 0..2 {
        assert!(observe("a", 50, false).await);
    }
    for _ in 0..2 {
        assert!(!observe("b", 5, false).await, "a has reserved the rest");
    }
    // It is observed all the same, and what was used for that is counted.
    for run in ["a", "b"] {
        let row = ledger.load(run.into(), 1).await.unwrap();
        assert_eq!(row.observation.unwrap().text, run);
    }
    let used = sums(&ledger, "ws", Scope::Workspace).await;
    assert_eq!(used, [(String::new(), 55)]);
    // The step asks for its call once more, and hears the same.
    let next = reservation("a", 40, vec![bound(Scope::Workspace, 100)]);
    let model = call("a", 2, CallKind::Model);
    assert_eq!(ledger.reserve(&model, &next, 1).await.unwrap(), None);
}

/// A run that ends before the step for which a call is reserved did not begin that call. A call of its last step may have been made.
pub(super) async fn the_end_of_a_run_frees_what_is_reserved_for_later_steps(ledger: Store) {
    for (run, last, used) in [("r", 1, 0), ("s", 2, 600)] {
        let next = reservation(run, 600, vec![bound(Scope::Workspace, 1000)]);
        let model = call(run, 2, CallKind::Model);
        assert_eq!(ledger.reserve(&model, &next, 1).await.unwrap(), None);
        let ended = end("ws", "", run, "");
        let key = of(run);
        let finished = ledger.finish_run(&key, last, &ended, Told::default(), 1);
        finished.await.unwrap();
        let sums = sums(&ledger, "ws", Scope::Workspace).await;
        let used = (used > 0).then(|| (String::new(), used));
        assert_eq!(sums, Vec::from_iter(used), "{run}");
    }
}

/// A step whose record waits leaves the room to others. A step that has begun keeps it.
pub(super) async fn what_is_reserved_ahead_is_not_held_for_long(ledger: Store) {
    assert!(fits(&ledger, "a", 1, next("a", 100, true)).await);
    assert!(!fits(&ledger, "b", 50, next("b", 1000, false)).await);
    // Its step begins, in another process: what it reserves is the same call.
    assert!(fits(&ledger, "a", 50, next("a", 1000, false)).await);
    assert!(!fits(&ledger, "b", 150, next("b", 1000, false)).await);
    settles(&ledger, "a", 10).await;
    // This one goes on in the same process.
    assert!(fits(&ledger, "c", 200, next("c", 300, true)).await);
    let model = call("c", 2, CallKind::Model);
    ledger.renew(&model, 1000).await.unwrap();
    assert!(!fits(&ledger, "b", 400, next("b", 1000, false)).await);
    settles(&ledger, "c", 10).await;
    // The record of this one waits, and another run takes the room.
    assert!(fits(&ledger, "d", 400, next("d", 500, true)).await);
    assert!(fits(&ledger, "b", 600, next("b", 1000, false)).await);
    assert!(!fits(&ledger, "d", 600, next("d", 1000, false)).await);
    settles(&ledger, "b", 10).await;
    assert!(fits(&ledger, "d", 600, next("d", 1000, false)).await);
    settles(&ledger, "d", 10).await;
    // A call that is over stays over.
    ledger.renew(&model, 2000).await.unwrap();
    assert!(fits(&ledger, "e", 600, next("e", 1000, false)).await);
    let sums = sums(&ledger, "ws", Scope::Workspace).await;
    assert_eq!(sums, [(String::new(), 40)]);
}

/// A step that is taken up again after that makes a call like any other.
pub(super) async fn a_call_that_was_freed_is_reserved_and_counted_anew(ledger: Store) {
    let model = call("a", 2, CallKind::Model);
    assert!(fits(&ledger, "a", 1, next("a", 1000, true)).await);
    ledger.free(&model).await.unwrap();
    assert!(fits(&ledger, "b", 1, next("b", 1000, true)).await);
    assert!(!fits(&ledger, "a", 1, next("a", 1000, false)).await);
    settles(&ledger, "b", 10).await;
    assert!(fits(&ledger, "a", 1, next("a", 1000, false)).await);
    // It may have begun by now: that it is left does not make it free.
    ledger.free(&model).await.unwrap();
    assert!(!fits(&ledger, "c", 1, next("c", 1000, false)).await);
    settles(&ledger, "a", 30).await;
    ledger.free(&model).await.unwrap();
    settles(&ledger, "a", 30).await;
    let sums = sums(&ledger, "ws", Scope::Workspace).await;
    assert_eq!(sums, [(String::new(), 40)]);
}
