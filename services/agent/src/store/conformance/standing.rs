//! Where runs stand that are under way.

use super::*;
use crate::engine::guards::{Budget, Climbed, Detector, Rung};
use crate::engine::usage::{Amount, Scope};

fn acts(tool: &str) -> Decision {
    Decision {
        taken: Taken::Action {
            name: tool.into(),
            arguments: Default::default(),
        },
        ..decision("")
    }
}

async fn stands(store: &Store, run: &str) -> Vec<RunProgress> {
    store.standing(run, 5).await.unwrap()
}

pub(super) async fn it_is_known_what_a_run_waits_for_and_since_when(store: Store) {
    let begun = store.begin(detached("u", "q", 1_000_000), began("r"), 5);
    begun.await.unwrap();
    let first = RunProgress {
        run: "r".into(),
        step: 1,
        since_ms: 5,
        ..RunProgress::default()
    };
    assert_eq!(stands(&store, "r").await, std::slice::from_ref(&first));
    store
        .decide(&of("r"), 1, &acts("mail"), &[], 20)
        .await
        .unwrap();
    let decided = RunProgress {
        since_ms: 20,
        decision: Some(acts("mail")),
        ..first
    };
    assert_eq!(stands(&store, "r").await, std::slice::from_ref(&decided));
    let asking = Asking {
        workspace: "ws#3".into(),
        user: "u".into(),
        id: "m".into(),
        until_ms: 900,
    };
    store.ask_user(&of("r"), (1, 0), &asking, 30).await.unwrap();
    let asks = RunProgress {
        asked: Some(("m".into(), 900)),
        ..decided.clone()
    };
    assert_eq!(stands(&store, "r").await, [asks]);
    let said = (Answer::Yes, "u");
    let whose = Whose::User("u".into());
    let answered = store.answer_user(&whose, ("q", "m"), said, 40);
    assert_eq!(answered.await.unwrap(), Replied::Noted);
    assert_eq!(stands(&store, "r").await, std::slice::from_ref(&decided));
    let seen = Observation {
        duration_ms: 7,
        ..Observation::default()
    };
    let told = Told::default();
    store
        .observe(&of("r"), 1, &seen, told, &[], 50)
        .await
        .unwrap();
    let second = RunProgress {
        step: 2,
        since_ms: 27,
        decision: None,
        ..decided
    };
    assert_eq!(stands(&store, "r").await, std::slice::from_ref(&second));
    store.finish_step("r", 1).await.unwrap();
    assert_eq!(stands(&store, "r").await, [second]);
    let error = crate::error::AgentError::Iterations.into();
    let ending = Ending::new(tg_provenance::Reason::MaxIterations, &error);
    store.end(&of("r"), 2, &ending, 60).await.unwrap();
    let end = end("ws#3", "d", "r", "h");
    let key = of("r");
    let finished = store.finish_run(&key, 2, &end, Told::default(), 70);
    finished.await.unwrap();
    let [over] = stands(&store, "r").await.try_into().unwrap();
    assert_eq!((over.over, over.step), (true, 2));
    assert_eq!(over.ended, Some(ending.message));
}

pub(super) async fn the_end_of_a_run_is_that_of_its_earlier_steps_if_it_says_so(store: Store) {
    for (run, earlier_done) in [("r", true), ("s", false)] {
        for step in 1..3 {
            let kept = store.decide(&of(run), step, &acts("mail"), &[], 20).await;
            assert!(kept.unwrap());
        }
        let key = of(run);
        let end = RunEnd {
            earlier_done,
            ..end("ws#3", "d", run, "h")
        };
        let finished = store.finish_run(&key, 2, &end, Told::default(), 70);
        finished.await.unwrap();
        let earlier = store.load(run.into(), 1).await.unwrap();
        assert_eq!((earlier.done, earlier.later), (earlier_done, true));
        assert!(store.load(run.into(), 2).await.unwrap().done);
    }
}

/// Ends a run in its first step, and says why it ended, as far as that is known.
async fn ended(store: &Store, run: &str) -> Option<String> {
    let end = end("ws#3", "d", run, "h");
    let key = of(run);
    let finished = store.finish_run(&key, 1, &end, Told::default(), 70);
    finished.await.unwrap();
    stands(store, run).await.pop().unwrap().ended
}

fn stop() -> Climbed {
    Climbed {
        rung: Rung::Stop,
        detector: Detector::GenericRepeat,
        tool: "mail".into(),
        count: 20,
        message: "'mail' was called 20 times with the same arguments".into(),
        key: "k".into(),
    }
}

pub(super) async fn why_a_run_was_stopped_is_known(store: Store) {
    let guard = stop();
    let decided = Decision {
        guard: Some(guard.clone()),
        ..acts("mail")
    };
    let begun = store.begin(detached("u", "q", 1_000_000), began("r"), 5);
    begun.await.unwrap();
    store.decide(&of("r"), 1, &decided, &[], 20).await.unwrap();
    assert_eq!(ended(&store, "r").await, Some(guard.sentence()));
    let begun = store.begin(detached("u", "q2", 1_000_000), began("s"), 5);
    begun.await.unwrap();
    store
        .decide(&of("s"), 1, &acts("mail"), &[], 20)
        .await
        .unwrap();
    assert_eq!(ended(&store, "s").await, None, "it answered");
}

/// What a guard did about a result stops a run as what it did about a call does; a warning stops none.
pub(super) async fn why_a_result_stopped_a_run_is_known(store: Store) {
    for (run, rung, stops) in [("r", Rung::Stop, true), ("s", Rung::Warn, false)] {
        let begun = store.begin(detached("u", run, 1_000_000), began(run), 5);
        begun.await.unwrap();
        let (key, decided) = (of(run), acts("mail"));
        let kept = store.decide(&key, 1, &decided, &[], 20);
        kept.await.unwrap();
        let guard = Climbed { rung, ..stop() };
        let seen = Observation {
            guard: Some(guard.clone()),
            ..Observation::default()
        };
        let observed = store.observe(&key, 1, &seen, Told::default(), &[], 30);
        observed.await.unwrap();
        let why = stops.then(|| guard.sentence());
        assert_eq!(ended(&store, run).await, why, "{run}");
    }
}

/// A run whose next call did not fit its budget ended for what the ledger said of that call; one whose call fit, did not.
pub(super) async fn why_a_budget_stopped_a_run_is_known(store: Store) {
    for (run, tokens, fits) in [("r", 100, false), ("s", 5, true)] {
        let begun = store.begin(detached("u", run, 1_000_000), began(run), 5);
        begun.await.unwrap();
        let next = Reservation {
            account: Account {
                workspace: "ws#3".into(),
                run: run.into(),
                ..Account::default()
            },
            amount: Amount {
                model_calls: 1,
                in_token: tokens,
                ..Amount::default()
            },
            like: (Scope::Model, "m".into()),
            bounds: vec![Bound {
                scope: Scope::Run,
                since: String::new(),
                budget: Budget {
                    tokens: 10,
                    ..Budget::default()
                },
                seconds: None,
                whose: "its budget".into(),
            }],
            expires_ms: 1_000_000,
            day: "2026-11-27".into(),
            waits: false,
            ahead: false,
        };
        let call = Call {
            run: run.into(),
            step: 1,
            kind: CallKind::Model,
            nth: 0,
        };
        let over = store.reserve(&call, &next, 10).await.unwrap();
        assert_eq!(over.is_none(), fits, "{run}");
        let why = over.map(|over| over.why);
        assert_eq!(ended(&store, run).await, why, "{run}");
    }
}

pub(super) async fn subagents_that_are_not_over_stand_behind_their_run(store: Store) {
    let begun = store.begin(detached("u", "q", 1_000_000), began("r"), 5);
    begun.await.unwrap();
    for (number, run, at) in [(1, "late", 30), (0, "early", 20), (2, "done", 25)] {
        let key = format!("subagent/r/{number}");
        let begun = store.begin(asked("ws#3", &key, "t"), began(run), at);
        begun.await.unwrap();
    }
    let below = store.begin(asked("ws#3", "subagent/late/0", "t"), began("below"), 40);
    below.await.unwrap();
    let other = store.begin(asked("ws#3", "subagent/r0/0", "t"), began("other"), 40);
    other.await.unwrap();
    let end = end("ws#3", "d", "done", "h");
    let key = of("done");
    let finished = store.finish_run(&key, 1, &end, Told::default(), 70);
    finished.await.unwrap();
    let all = stands(&store, "r").await;
    let all: Vec<_> = all
        .iter()
        .map(|one| (one.run.as_str(), one.since_ms))
        .collect();
    assert_eq!(all, [("r", 5), ("early", 20), ("late", 30), ("below", 40)]);
    for number in 3..40 {
        let (key, run) = (format!("subagent/r/{number}"), format!("s{number}"));
        store
            .begin(asked("ws#3", &key, "t"), began(&run), 50)
            .await
            .unwrap();
    }
    assert_eq!(stands(&store, "r").await.len(), 17);
}
