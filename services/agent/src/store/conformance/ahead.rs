//! What is reserved for the next step of a run.

use super::usage::{bound, call, reservation, sums, took};
use super::{Store, decides, end, of, of_ended};
use crate::engine::decision::Observation;
use crate::engine::usage::Scope;
use crate::store::{CallKind, Counted, Told};

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
        let next = reservation(run, 40, vec![bound(Scope::Workspace, 100)]);
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
        assert_eq!(sums, [(String::new(), used)], "{run}");
    }
}
