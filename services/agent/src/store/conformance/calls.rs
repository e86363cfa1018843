//! Several calls of a step.

use super::*;
use crate::engine::decision::Chosen;

fn both() -> Decision {
    let call = |name: &str| Chosen {
        name: name.into(),
        ..Chosen::default()
    };
    Decision {
        taken: Taken::Actions {
            calls: vec![call("a"), call("b")],
        },
        ..decision("")
    }
}

fn seen(text: &str, duration_ms: u64) -> Observation {
    Observation {
        text: text.into(),
        called: true,
        duration_ms,
        ..Observation::default()
    }
}

pub(super) async fn what_came_of_a_call_stands_until_its_step_has_seen_all(ledger: Store) {
    ledger.decide(&of("r"), 1, &both(), &[], 1).await.unwrap();
    let observe = async |run: RunKey, at: CallAt, text: &str| {
        let kept = ledger.observe_call(&run, at, &seen(text, 7), 1).await;
        kept.unwrap()
    };
    assert!(!observe(of_ended("r"), (1, 1), "late").await);
    assert!(observe(of("r"), (1, 1), "first").await);
    assert!(observe(of("r"), (1, 1), "again").await);
    assert!(observe(of("r"), (2, 0), "other step").await);
    assert!(observe(of("s"), (1, 0), "other run").await);
    let known = async || ledger.observed_calls("r", 1).await.unwrap();
    assert_eq!(known().await, [(1, seen("first", 7))]);
    let call = |tool: &str, returned| ToolCall {
        tool: tool.into(),
        returned,
        failed: false,
    };
    let happened = async || ledger.happened("r").await.unwrap().calls;
    assert_eq!(happened().await, [call("a", false), call("b", true)]);

    let all = Observation {
        calls: vec![seen("x", 3), seen("first", 7)],
        ..seen("both", 7)
    };
    let told = Told::default();
    ledger
        .observe(&of("r"), 1, &all, told, &[], 1)
        .await
        .unwrap();
    assert_eq!(known().await, []);
    assert_eq!(happened().await, [call("a", true), call("b", true)]);
}

pub(super) async fn a_record_knows_each_call_of_a_step(ledger: Store) {
    let first = Noted {
        run: "r".into(),
        step: 1,
        name: Some(Noted::FIRST.into()),
        text: "a".into(),
    };
    let added = Added {
        root: "r".into(),
        workspace: "ws#3".into(),
        entries: vec![first],
        most: 10,
        keep: 16,
    };
    assert!(ledger.keep_record(&of("r"), added, 1).await.unwrap());
    let key = of("r");
    for step in 1..=2 {
        ledger.decide(&key, step, &both(), &[], 1).await.unwrap();
        let asking = Asking {
            workspace: "ws#3".into(),
            id: format!("of {step}"),
            until_ms: 90,
        };
        let asked = ledger.ask_user(&key, (step, 1), &asking, 1);
        assert!(asked.await.unwrap().is_some());
    }
    let all = Observation {
        calls: vec![seen("x", 3), seen("y", 7)],
        ..seen("both", 7)
    };
    let told = Told::default();
    ledger
        .observe(&of("r"), 1, &all, told, &[], 1)
        .await
        .unwrap();
    let seen = seen("z", 9);
    ledger
        .observe_call(&of("r"), (2, 1), &seen, 1)
        .await
        .unwrap();
    let steps = ledger.record("r").await.unwrap().unwrap().steps;
    let of = |step: u32| &steps[&("r".to_owned(), step)];
    assert_eq!(of(1).calls_took, [(0, 3), (1, 7)].into());
    assert_eq!(of(2).calls_took, [(1, 9)].into());
    for step in 1..=2 {
        let asked: Vec<u32> = of(step).confirmations.keys().copied().collect();
        assert_eq!(asked, [1]);
    }
}
