//! Summaries that were made again.

use tg_compaction::Tier;

use super::*;
use crate::store::summaries::MOST_REMADE;

fn remade(request: &str, text: &str, at_ms: i64) -> Remade {
    Remade {
        request: request.into(),
        model: "m".into(),
        tier: Tier::Full,
        text: text.into(),
        tokens: (9, 4),
        usage: Usage::default(),
        at_ms,
    }
}

pub(super) async fn a_summary_that_is_made_again_stands_beside_its_step(ledger: Store) {
    let keep = async |run: RunKey, step: u32, one: Remade| {
        ledger.keep_remade(&run, step, &one).await.unwrap()
    };
    let of_step = async |step: u32| ledger.remade("r", step).await.unwrap();
    let (first, second) = (remade("b", "first", 1), remade("a", "second", 2));
    assert_eq!(keep(of("r"), 4, first.clone()).await.as_ref(), Some(&first));
    assert_eq!(
        keep(of("r"), 4, remade("b", "other", 3)).await.as_ref(),
        Some(&first)
    );
    assert_eq!(
        keep(of("r"), 4, second.clone()).await.as_ref(),
        Some(&second)
    );
    assert_eq!(keep(of_ended("r"), 4, remade("c", "late", 3)).await, None);
    assert_eq!(of_step(4).await, [first.clone(), second]);
    assert_eq!(of_step(5).await, []);
    // So many; one that is kept is still known.
    for n in 2..MOST_REMADE {
        let one = remade(&format!("more {n}"), "x", 9);
        assert!(keep(of("r"), 4, one).await.is_some());
    }
    assert_eq!(keep(of("r"), 4, remade("beyond", "x", 9)).await, None);
    assert_eq!(keep(of("r"), 4, remade("b", "x", 9)).await, Some(first));
    // They go with the rows of their run.
    let long = KEEP_MS + 10;
    while ledger.forget(long).await.unwrap() {}
    assert_eq!(of_step(4).await, []);
}

pub(super) async fn it_is_known_where_the_trace_of_a_run_is(ledger: Store) {
    let traced = async |run: &str| ledger.traced_in("ws", run).await.unwrap();
    assert_eq!(traced("r").await, None);
    let ended = end("ws", "2026-11-27", "r", "h");
    ledger
        .finish_run(&of("r"), 1, &ended, Told::default(), 1)
        .await
        .unwrap();
    assert_eq!(traced("r").await.as_deref(), Some("c"));
    assert_eq!(traced("s").await, None);
}
