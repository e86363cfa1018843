//! Several calls of a step.

use super::usage::{bound, reservation};
use super::*;
use crate::engine::decision::Chosen;
use crate::engine::usage::{Amount, Scope};
use crate::store::{Account, Call, CallKind, Counted, Days, Reservation, Used};

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
            user: "u".into(),
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

pub(super) async fn calls_that_are_counted_together_are_summed_up_as_one_by_one(ledger: Store) {
    let counted = |nth: u32, key: &str, tokens: u64| Counted {
        call: Call {
            run: format!("call/{nth}"),
            step: 0,
            kind: CallKind::Model,
            nth: 0,
        },
        used: Used {
            account: Account {
                workspace: "ws".into(),
                run: "direct".into(),
                key: key.into(),
                ..Account::default()
            },
            by: (Scope::Model, "m".into()),
            amount: Amount {
                model_calls: 1,
                in_token: tokens,
                nanodollars: tokens,
                ..Amount::default()
            },
            day: "2026-11-27".into(),
            unreported: None,
        },
    };
    let first = counted(1, "key:a", 5);
    let over = of_ended("z");
    let ended = ledger.settle_all(&over, std::slice::from_ref(&first), 1);
    ended.await.unwrap();
    ledger
        .settle(&of(""), &first.call, &first.used, 1)
        .await
        .unwrap();
    // One of them was counted before, and one stands there twice.
    let more = [
        first,
        counted(2, "key:a", 7),
        counted(3, "key:b", 11),
        counted(3, "key:b", 11),
    ];
    for _ in 0..2 {
        ledger.settle_all(&of(""), &more, 1).await.unwrap();
    }
    let sums = async |scope: Scope| {
        let days = Days {
            scope,
            since: String::new(),
            until: "2026-11-30".into(),
            daily: false,
        };
        let sums = ledger.usage("ws", &days, "", 10).await.unwrap();
        let sums = sums.into_iter();
        sums.map(|(name, amount)| {
            (
                name,
                amount.model_calls,
                amount.in_token,
                amount.nanodollars,
            )
        })
        .collect::<Vec<_>>()
    };
    let all = |name: &str| vec![(name.to_owned(), 3, 23, 23)];
    assert_eq!(sums(Scope::Model).await, all("m"));
    assert_eq!(sums(Scope::Run).await, all("direct"));
    let keys = [
        ("key:a".to_owned(), 2, 12, 12),
        ("key:b".to_owned(), 1, 11, 11),
    ];
    assert_eq!(sums(Scope::Key).await, keys);
    // Calls that are under way are taken for as large as the largest of them, not for as large as all.
    let next = |tokens| Reservation {
        account: Account {
            workspace: "ws".into(),
            key: "key:b".into(),
            ..Account::default()
        },
        amount: Amount::default(),
        ..reservation("direct", 0, vec![bound(Scope::Key, tokens)])
    };
    let fits = async |nth: u32, tokens| {
        let call = counted(nth, "key:b", 0).call;
        ledger
            .reserve(&call, &next(tokens), 2)
            .await
            .unwrap()
            .is_none()
    };
    assert!(fits(4, 1_000).await);
    assert!(!fits(5, 32).await && fits(6, 33).await);
}
