//! What runs have streamed, who asked for them, and what has happened in them.

use super::*;

fn told(first: u64, parts: &[&str], keep: u64) -> Told {
    Told {
        workspace: "ws#3".into(),
        first,
        parts: parts.iter().map(|part| (*part).to_owned()).collect(),
        keep,
    }
}

async fn tell(ledger: &Store, run: &str, told: Told, now_ms: i64) {
    let seen = Observation::failed("x");
    ledger
        .observe(&of(run), 1, &seen, told, &[], now_ms)
        .await
        .unwrap();
}

pub(super) async fn what_runs_have_told_is_kept_without_a_gap_or_repeat(ledger: Store) {
    let from = async |from: u64, bytes: usize| ledger.told("r", from, bytes).await.unwrap();
    assert_eq!(from(0, 99).await, None);
    tell(&ledger, "r", told(0, &["a", "b"], 99), 1).await;
    // A step that is taken up again tells the same again, and more.
    tell(&ledger, "r", told(1, &["b", "c"], 99), 1).await;
    tell(&ledger, "r", told(0, &["a"], 99), 1).await;
    let end = end("ws#3", "d", "r", "h");
    let rest = told(3, &["d"], 99);
    ledger.finish_run(&of("r"), 2, &end, rest, 1).await.unwrap();
    let parts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    for at in 0..4 {
        let (first, rest) = from(at as u64, 99).await.unwrap();
        assert_eq!(
            (first, Some(rest)),
            (at as u64, parts(&["a", "b", "c", "d"][at..]))
        );
    }
    assert_eq!(from(4, 99).await, None);
    let (first, some) = from(1, 1).await.unwrap();
    assert_eq!((first, Some(some)), (1, parts(&["b"])), "one at least");
    // Behind a gap it is said where it goes on.
    tell(&ledger, "g", told(5, &["x"], 99), 1).await;
    let (first, _) = ledger.told("g", 2, 9).await.unwrap().unwrap();
    assert_eq!(first, 5);
}

pub(super) async fn what_is_kept_of_a_workspace_is_bounded(ledger: Store) {
    for (n, run) in ["r0", "r1", "r2"].iter().enumerate() {
        let begun = ledger.begin(asked("ws#3", run, "t"), began(run), 1);
        begun.await.unwrap();
        tell(&ledger, run, told(0, &["abcd"], 8), n as i64).await;
    }
    let kept = async |run: &str| ledger.told(run, 0, 9).await.unwrap().is_some();
    assert!(!kept("r0").await && kept("r1").await && kept("r2").await);
    // Another workspace has its own.
    let other = Told {
        workspace: "other".into(),
        ..told(0, &["abcdefgh"], 8)
    };
    tell(&ledger, "o", other, 9).await;
    assert!(kept("r1").await && kept("o").await);
    // What is too much alone is not kept, and takes no place.
    tell(&ledger, "r3", told(0, &["123456789"], 8), 9).await;
    assert!(kept("r1").await && !kept("r3").await);
    while ledger.purge_some("ws#3").await.unwrap() {}
    assert!(!kept("r1").await && kept("o").await);
    while ledger.forget(KEEP_MS + 10).await.unwrap() {}
    assert!(!kept("o").await);
}

pub(super) async fn who_asked_for_a_run_is_known(ledger: Store) {
    for (n, goes_on) in [(0, false), (1, true)] {
        let mut one = detached("ann", &format!("q{n}"), 9);
        if let Some(caller) = &mut one.asker {
            caller.goes_on = goes_on;
            caller.grace_ms = 5;
        }
        let begun = ledger.begin(one, began(&format!("r{n}")), 1).await;
        begun.unwrap();
    }
    let [ann, bob] = ["ann", "bob"].map(|user| Whose::User(user.into()));
    // One of the same name is another workspace.
    let [ws, other] = ["ws#3", "ws#4"].map(|name| Whose::Workspace(name.into()));
    let ids = async |whose: &Whose, after: &str| {
        let runs = ledger.known(whose, after, 9).await.unwrap();
        let ids = runs.into_iter().map(|run| run.caller.question);
        ids.collect::<Vec<_>>()
    };
    assert_eq!(ids(&ann, "").await, ["q0", "q1"]);
    assert_eq!(ids(&ws, "q0").await, ["q1"]);
    assert!(ids(&bob, "").await.is_empty() && ids(&other, "").await.is_empty());
    let waiting = ledger.detached("ann", "", 9, 1).await.unwrap();
    assert_eq!(waiting.len(), 1, "one ends with its caller");
    for (whose, known) in [(&ann, true), (&ws, true), (&bob, false), (&other, false)] {
        let run = ledger.of_question(whose, "q0").await.unwrap();
        assert_eq!(run.is_some_and(|run| run.run == "r0"), known, "{whose:?}");
        let cancelled = ledger.cancel(whose, "q1", 1).await.unwrap();
        assert_eq!(
            cancelled,
            *whose == ann,
            "once, and of one's own: {whose:?}"
        );
    }
    assert!(
        ids(&Whose::Workspace("ws".into()), "").await.is_empty(),
        "the name alone is the first of that name"
    );
    let end = end("ws#3", "d", "r0", "h");
    ledger
        .finish_run(&of("r0"), 1, &end, Told::default(), 1)
        .await
        .unwrap();
    assert!(ledger.asker("r0").await.unwrap().unwrap().over);
}

pub(super) async fn a_run_that_nobody_listens_to_is_cancelled_unless_somebody_joined(
    ledger: Store,
) {
    let begun = ledger.begin(detached("ann", "q", 9), began("r"), 1).await;
    begun.unwrap();
    let known = async || {
        let known = ledger.asker("r").await.unwrap().unwrap();
        (known.left_ms, known.asker_gone, known.cancelled)
    };
    let cancel = async |since: i64, now: i64| ledger.cancel_left("r", since, now).await.unwrap();
    assert_eq!(known().await, (None, false, false));
    assert!(!cancel(7, 1).await, "somebody listens");
    ledger.left("r", Some(7), true).await.unwrap();
    assert_eq!(known().await, (Some(7), true, false));
    // Who joins it is not who asked.
    ledger.left("r", None, false).await.unwrap();
    assert_eq!(known().await, (None, true, false));
    assert!(!cancel(7, 1).await, "somebody joined it");
    ledger.left("r", Some(8), false).await.unwrap();
    assert!(!cancel(7, 1).await, "it was left later");
    assert!(!cancel(8, 9).await, "its time is over");
    assert!(cancel(8, 1).await && !cancel(8, 1).await);
    assert_eq!(known().await, (Some(8), true, true));
}

pub(super) async fn it_is_known_where_a_run_ended(ledger: Store) {
    for run in ["r", "s"] {
        let begun = ledger.begin(detached("ann", run, 9), began(run), 1);
        begun.await.unwrap();
    }
    let ends = async |run: &str| ledger.asker(run).await.unwrap().unwrap().ends;
    tell(&ledger, "r", told(0, &["a", "b"], 99), 1).await;
    assert_eq!(ends("r").await, None);
    let finish = async |run: &str, told: Told| {
        let end = end("ws#3", "d", run, "h");
        let finished = ledger.finish_run(&of(run), 2, &end, told, 1).await;
        finished.unwrap();
    };
    // The last is too long to be kept, and is known to be missing.
    finish("r", told(2, &["too long"], 4)).await;
    finish("r", told(0, &["a"], 99)).await;
    assert_eq!(ends("r").await, Some(3), "the first end stands");
    assert_eq!(ledger.told("r", 2, 9).await.unwrap(), None);
    finish("s", Told::default()).await;
    assert_eq!(ends("s").await, None, "where nothing is counted");
}

pub(super) async fn what_happened_in_subagents_is_known_with_their_run(ledger: Store) {
    let used = |tokens: i64| Usage {
        in_token: tokens,
        ..Usage::default()
    };
    let act = Taken::Action {
        name: "t".into(),
        arguments: serde_json::Map::new(),
    };
    let goals = Taken::Goals { goals: Vec::new() };
    for (key, run, taken, tokens) in [
        ("k", "r", goals, 1),
        ("subagent/r/0", "a", act.clone(), 10),
        ("subagent/r/1", "b", act.clone(), 20),
        ("subagent/b/256", "deep", act.clone(), 5),
        ("subagent/rr/0", "other", act, 40),
    ] {
        let begun = ledger.begin(asked("ws#3", key, "t"), began(run), 1);
        begun.await.unwrap();
        let decision = Decision {
            taken,
            usage: used(tokens),
            ..decision("")
        };
        ledger.decide(&of(run), 1, &decision, &[], 1).await.unwrap();
    }
    let happened = ledger.happened("r").await.unwrap();
    assert_eq!((happened.steps, happened.in_token), (4, 36));
    assert_eq!(happened.calls.len(), 3);
    // What one used that is back is counted by its run, with what is below it; of the others by themselves.
    let seen = Observation {
        usage: used(25),
        findings: vec![Finding {
            run: "b".into(),
            ..Finding::default()
        }],
        ..Observation::failed("x")
    };
    let seen = ledger
        .observe(&of("r"), 1, &seen, Told::default(), &[], 1)
        .await;
    seen.unwrap();
    let happened = ledger.happened("r").await.unwrap();
    assert_eq!((happened.steps, happened.in_token), (4, 36));
}

pub(super) async fn what_has_happened_in_a_run_is_known(ledger: Store) {
    let used = Usage {
        in_token: 2,
        out_token: 1,
        ..Usage::default()
    };
    for step in 1..4 {
        let taken = Taken::Action {
            name: format!("t{step}"),
            arguments: serde_json::Map::new(),
        };
        let decision = Decision {
            taken,
            usage: used.clone(),
            ..decision("")
        };
        ledger
            .decide(&of("r"), step, &decision, &[], 1)
            .await
            .unwrap();
    }
    for (step, called) in [(1, true), (2, false)] {
        let seen = Observation {
            called,
            ..Observation::failed("x")
        };
        ledger
            .observe(&of("r"), step, &seen, Told::default(), &[], 1)
            .await
            .unwrap();
    }
    let call = |tool: &str, returned| ToolCall {
        tool: tool.into(),
        returned,
        failed: returned,
    };
    let happened = ledger.happened("r").await.unwrap();
    let expected = Happened {
        steps: 3,
        // The second was refused before it was made; of the third it is not known.
        calls: vec![call("t1", true), call("t3", false)],
        in_token: 6,
        out_token: 3,
    };
    assert_eq!(happened, expected);
    assert_eq!(ledger.happened("other").await.unwrap(), Happened::default());
}
