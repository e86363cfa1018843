//! What calls use: reserved before, counted once.

use super::{Store, asked, began, decision, end, of, of_ended};
use crate::engine::decision::Observation;
use crate::engine::guards::Budget;
use crate::engine::usage::{Amount, Scope};
use crate::store::{
    Account, Bound, Call, CallKind, Counted, Days, Decided, Reservation, Told, Used,
};

pub(super) fn call(run: &str, step: u32, kind: CallKind) -> Call {
    Call {
        run: run.into(),
        step,
        kind,
        nth: 0,
    }
}

fn account(run: &str) -> Account {
    Account {
        workspace: "ws".into(),
        run: run.into(),
        session: "s".into(),
        key: "key:k".into(),
        agent: "maven".into(),
    }
}

pub(super) fn bound(scope: Scope, tokens: u64) -> Bound {
    Bound {
        scope,
        since: "2026-11-27".into(),
        budget: Budget {
            tokens,
            ..Budget::default()
        },
        seconds: None,
        whose: "a budget".into(),
    }
}

fn tokens(count: u64) -> Amount {
    Amount {
        model_calls: 1,
        in_token: count,
        ..Amount::default()
    }
}

pub(super) fn reservation(run: &str, count: u64, bounds: Vec<Bound>) -> Reservation {
    Reservation {
        account: account(run),
        amount: tokens(count),
        like: (Scope::Model, "m".into()),
        bounds,
        expires_ms: 1000,
        day: "2026-11-27".into(),
        waits: false,
        ahead: false,
    }
}

pub(super) fn took(run: &str, count: u64) -> Used {
    Used {
        account: account(run),
        by: (Scope::Model, "m".into()),
        amount: tokens(count),
        day: "2026-11-27".into(),
        unreported: None,
    }
}

pub(super) async fn sums(ledger: &Store, workspace: &str, scope: Scope) -> Vec<(String, u64)> {
    let days = Days {
        scope,
        since: String::new(),
        until: "2026-11-30".into(),
        daily: false,
    };
    let sums = ledger.usage(workspace, &days, "", 100).await.unwrap();
    let sums = sums.into_iter();
    sums.map(|(name, amount)| (name, amount.tokens())).collect()
}

pub(super) async fn a_run_that_ends_before_anything_was_decided_is_over(ledger: Store) {
    let question = "ws/f/inbox/q";
    let begun = ledger.begin(asked("ws", question, "why"), began("r1"), 1);
    assert_eq!(begun.await.unwrap(), Some(began("r1")));
    let next = reservation("r1", 100, vec![bound(Scope::Workspace, 1000)]);
    let model = call("r1", 1, CallKind::Model);
    assert!(ledger.reserve(&model, &next, 1).await.unwrap().is_none());
    // Twice: what is told of an end is told once.
    for _ in 0..2 {
        let ended = end("ws", "", "r1", "");
        ledger
            .finish_run(&of("r1"), 1, &ended, Told::default(), 1)
            .await
            .unwrap();
        assert!(!ledger.is_open(question.into()).await.unwrap());
        // It was left: nobody will tell what it took.
        let sums = sums(&ledger, "ws", Scope::Workspace).await;
        assert_eq!(sums, [(String::new(), 100)]);
    }
}

pub(super) async fn what_is_reserved_binds_until_it_is_settled_or_over(ledger: Store) {
    let asks = (0..64).map(|n| {
        let ledger = ledger.clone();
        async move {
            let run = format!("r{n}");
            let bounds = vec![bound(Scope::Workspace, 1000)];
            let next = reservation(&run, 100, bounds);
            let call = call(&run, 1, CallKind::Model);
            let over = ledger.reserve(&call, &next, 1).await.unwrap();
            // A step that is taken up again.
            let again = ledger.reserve(&call, &next, 1).await.unwrap();
            assert_eq!(over, again);
            (run, over.is_none())
        }
    });
    let let_in = futures::future::join_all(asks).await;
    let let_in: Vec<String> = let_in
        .into_iter()
        .filter_map(|(run, fits)| fits.then_some(run))
        .collect();
    assert_eq!(let_in.len(), 10);
    let one_more = |step: u32, now_ms: i64| {
        let next = reservation("r", 100, vec![bound(Scope::Workspace, 1000)]);
        let ledger = ledger.clone();
        async move {
            let call = call("r", step, CallKind::Model);
            ledger.reserve(&call, &next, now_ms).await.unwrap()
        }
    };
    let why = one_more(1, 1).await.unwrap().why;
    assert!(why.starts_with("Stopped by a budget (tokens): "), "{why}");
    // Less than was reserved for it; nothing is counted twice.
    for _ in 0..2 {
        let settled = call(&let_in[0], 1, CallKind::Model);
        let used = took(&let_in[0], 40);
        ledger
            .settle(&of(&let_in[0]), &settled, &used, 1)
            .await
            .unwrap();
    }
    assert!(one_more(2, 1).await.is_some());
    ledger
        .finish_run(
            &of(&let_in[1]),
            1,
            &end("ws", "d", &let_in[1], ""),
            Told::default(),
            1,
        )
        .await
        .unwrap();
    assert!(one_more(2, 1).await.is_some(), "what was said stands");
    assert_eq!(one_more(3, 1).await, None);
    // Nobody comes back for these.
    let next = reservation("late", 900, vec![bound(Scope::Workspace, 1000)]);
    let late = |step| call("late", step, CallKind::Model);
    let over = ledger.reserve(&late(1), &next, 1).await.unwrap();
    assert!(over.is_some());
    assert_eq!(ledger.reserve(&late(2), &next, 2000).await.unwrap(), None);
}

/// What only reservations of others stand in the way of is told from what does not fit any more.
pub(super) async fn a_refusal_says_whether_it_is_for_what_others_reserved(ledger: Store) {
    let ask = async |id: &str, waits: bool| {
        let next = reservation(id, 600, vec![bound(Scope::Workspace, 1000)]);
        let next = Reservation { waits, ..next };
        let call = call(id, 1, CallKind::Model);
        ledger.reserve(&call, &next, 1).await.unwrap()
    };
    assert_eq!(ask("first", false).await, None);
    assert!(ask("second", false).await.unwrap().reserved);
    assert!(ask("waits", true).await.unwrap().reserved);
    let settled = call("first", 1, CallKind::Model);
    let (of, used) = (of("first"), took("first", 600));
    ledger.settle(&of, &settled, &used, 1).await.unwrap();
    assert!(!ask("third", false).await.unwrap().reserved);
    assert!(ask("second", false).await.unwrap().reserved, "it stands");
    assert!(!ask("waits", true).await.unwrap().reserved, "asked anew");
}

/// Nobody tells of a call that no run makes once its process is gone; the end of a run tells of those of the run.
pub(super) async fn a_call_of_no_run_that_lapses_counts_as_reserved(ledger: Store) {
    for run in ["call/ws/q", "r"] {
        let next = reservation(run, 100, vec![bound(Scope::Workspace, 1000)]);
        let call = call(run, 0, CallKind::Model);
        assert_eq!(ledger.reserve(&call, &next, 1).await.unwrap(), None);
    }
    ledger.forget(999).await.unwrap();
    assert!(sums(&ledger, "ws", Scope::Workspace).await.is_empty());
    for _ in 0..2 {
        ledger.forget(1000).await.unwrap();
        let counted = sums(&ledger, "ws", Scope::Workspace).await;
        assert_eq!(counted, [(String::new(), 100)]);
    }
}

/// The row of a call that no run made goes two hours after its deadline, when nobody reports the call any more.
pub(super) async fn counted_calls_of_no_run_go_soon(ledger: Store) {
    const HOUR_MS: i64 = 3600 * 1000;
    let count = async |run: &str, now_ms: i64| {
        let call = call(run, 0, CallKind::Model);
        let used = took(run, 100);
        ledger.settle(&of(run), &call, &used, now_ms).await.unwrap();
        sums(&ledger, "ws", Scope::Workspace).await[0].1
    };
    assert_eq!(count("call/ws/q", 1).await, 100);
    assert_eq!(count("r", 1).await, 200);
    while ledger.forget(2 * HOUR_MS).await.unwrap() {}
    assert_eq!(count("call/ws/q", 2 * HOUR_MS).await, 200);
    while ledger.forget(2 * HOUR_MS + 2).await.unwrap() {}
    assert_eq!(count("r", 2 * HOUR_MS + 2).await, 200);
    assert_eq!(count("call/ws/q", 2 * HOUR_MS + 2).await, 300);
}

/// Of 64 runs at once, as many call a tool as may; and none begins a call once the time of all is over.
pub(super) async fn calls_and_time_bind_runs_at_once(ledger: Store) {
    let bounded = |budget: Budget| Bound {
        budget,
        ..bound(Scope::Workspace, 0)
    };
    let asks =
        |budget: Budget, step: u32| (0..64).map(move |n| (format!("r{n}"), bounded(budget), step));
    let reserve = |(run, bound, step): (String, Bound, u32)| {
        let ledger = ledger.clone();
        async move {
            let next = Reservation {
                amount: Amount {
                    tool_calls: 1,
                    ..Amount::default()
                },
                ..reservation(&run, 0, vec![bound])
            };
            let call = call(&run, step, CallKind::Tool);
            let over = ledger.reserve(&call, &next, 1).await.unwrap();
            (run, over)
        }
    };
    let calls = Budget {
        tool_calls: 10,
        ..Budget::default()
    };
    let let_in = futures::future::join_all(asks(calls, 1).map(reserve)).await;
    let fits = let_in.iter().filter(|(_, over)| over.is_none());
    assert_eq!(fits.count(), 10);
    let seconds = Budget {
        seconds: 10,
        ..Budget::default()
    };
    // Ten of them take a second each: the eleventh begins no more.
    for (run, _) in let_in.iter().filter(|(_, over)| over.is_none()) {
        let used = Used {
            amount: Amount {
                tool_calls: 1,
                duration_ms: 1000,
                ..Amount::default()
            },
            ..took(run, 0)
        };
        let settled = call(run, 1, CallKind::Tool);
        ledger.settle(&of(run), &settled, &used, 1).await.unwrap();
    }
    let late = futures::future::join_all(asks(seconds, 2).map(reserve)).await;
    for (_, over) in late {
        let why = over.expect("the time is over").why;
        assert!(why.starts_with("Stopped by a budget (time): "), "{why}");
    }
}

pub(super) async fn bounds_are_of_their_own(ledger: Store) {
    let fits = |run: &str, scope: Scope, count: u64, most: u64| {
        let (ledger, run) = (ledger.clone(), run.to_owned());
        async move {
            let next = reservation(&run, count, vec![bound(scope, most)]);
            let call = call(&format!("{run}{scope:?}{count}"), 1, CallKind::Tool);
            ledger.reserve(&call, &next, 1).await.unwrap().is_none()
        }
    };
    let used = took("r", 50);
    let settled = call("r", 1, CallKind::Model);
    ledger.settle(&of("r"), &settled, &used, 1).await.unwrap();
    // A run knows how large its calls are; of several runs each may be as large as the largest.
    assert!(fits("r", Scope::Run, 10, 60).await);
    assert!(!fits("r", Scope::Run, 11, 70).await);
    assert!(fits("other", Scope::Run, 10, 10).await);
    for scope in [Scope::Session, Scope::Key, Scope::Workspace] {
        assert!(!fits("new", scope, 1, 99).await, "{scope:?}");
    }
}

pub(super) async fn a_bound_of_a_day_or_month_begins_anew(ledger: Store) {
    let settled = call("r", 1, CallKind::Model);
    let used = took("r", 950);
    ledger.settle(&of("r"), &settled, &used, 1).await.unwrap();
    let fits = async |since: &str| {
        let next = Bound {
            since: since.into(),
            ..bound(Scope::Workspace, 1000)
        };
        let next = reservation("next", 100, vec![next]);
        // A refusal is remembered by its call.
        let call = call(since, 1, CallKind::Model);
        ledger.reserve(&call, &next, 1).await.unwrap().is_none()
    };
    assert!(!fits("2026-11-27").await, "the same day");
    assert!(!fits("2026-11-01").await, "the same month");
    assert!(fits("2026-11-28").await, "the next day");
}

/// What calls of the days before took is reserved for those of a first burst, too; one call is let in whatever they took.
pub(super) async fn a_bound_that_begins_anew_knows_how_large_calls_are(ledger: Store) {
    let of_day = |model: &str, day: &str, count: u64| Used {
        by: (Scope::Model, model.into()),
        day: day.into(),
        ..took("r", count)
    };
    for (step, model, day, count, fit) in [
        (1, "lately", "2026-11-26", 300, 3),
        (2, "long ago", "2026-11-25", 300, 64),
        (3, "large", "2026-11-26", 2000, 1),
    ] {
        let before = call("r", step, CallKind::Model);
        let used = of_day(model, day, count);
        ledger.settle(&of("r"), &before, &used, 1).await.unwrap();
        let asks = (0..64).map(|n| {
            let (ledger, run) = (ledger.clone(), format!("{model} {n}"));
            async move {
                let mut next = reservation(&run, 10, vec![bound(Scope::Key, 1000)]);
                next.account.key = format!("key:{model}");
                next.like = (Scope::Model, model.into());
                let call = call(&run, 1, CallKind::Model);
                ledger.reserve(&call, &next, 1).await.unwrap().is_none()
            }
        });
        let let_in = futures::future::join_all(asks).await;
        let let_in = let_in.into_iter().filter(|fits| *fits).count();
        assert_eq!(let_in, fit, "{model}");
    }
}

/// Other keys still have their calls. A second one at a time waits for the end of the first, not for the next day.
pub(super) async fn a_large_call_of_one_key_leaves_other_keys_their_budgets(ledger: Store) {
    let settle = async |key: &str, run: &str, count: u64| {
        let mut used = took(run, count);
        used.account.key = key.into();
        let settled = call(run, 1, CallKind::Model);
        ledger.settle(&of(run), &settled, &used, 1).await.unwrap();
    };
    settle("key:large", "large", 5000).await;
    let ask = async |run: &str| {
        let mut next = reservation(run, 10, vec![bound(Scope::Key, 1000)]);
        next.account.key = "key:small".into();
        let call = call(run, 1, CallKind::Model);
        ledger.reserve(&call, &next, 1).await.unwrap()
    };
    for run in ["a", "b", "c"] {
        assert_eq!(ask(run).await, None, "{run}");
        let second = ask(&format!("beside {run}")).await.unwrap();
        assert!(second.reserved, "{}", second.why);
        settle("key:small", run, 10).await;
    }
}

/// A step's rows and what its calls took are there together or not at all, and count once however often they come.
pub(super) async fn what_the_calls_of_a_step_took_is_counted_with_its_rows(ledger: Store) {
    let counted = |kind: CallKind, count: u64| Counted {
        call: call("r", 1, kind),
        used: took("r", count),
    };
    let summed = async || sums(&ledger, "ws", Scope::Workspace).await;
    let next = reservation("r", 100, vec![bound(Scope::Workspace, 100)]);
    let model = call("r", 1, CallKind::Model);
    assert_eq!(ledger.reserve(&model, &next, 1).await.unwrap(), None);
    let (key, ended) = (of("r"), of_ended("r"));
    let decided = decision("x");
    let asked = [counted(CallKind::Model, 7)];
    let late = ledger.decide(&ended, 1, &decided, &asked, 1);
    assert!(!late.await.unwrap());
    assert!(summed().await.is_empty());
    for _ in 0..2 {
        let kept = ledger.decide(&key, 1, &decided, &asked, 1);
        assert!(kept.await.unwrap());
        // Whoever takes the step up counts it by itself.
        let again = ledger.settle(&key, &asked[0].call, &asked[0].used, 1);
        again.await.unwrap();
        assert_eq!(summed().await, [(String::new(), 7)]);
    }
    // Nothing is reserved for it any more.
    let other = call("other", 1, CallKind::Model);
    let next = reservation("other", 93, vec![bound(Scope::Workspace, 100)]);
    assert_eq!(ledger.reserve(&other, &next, 1).await.unwrap(), None);
    let seen = Observation::default();
    let used = [counted(CallKind::Tool, 5), counted(CallKind::Summary, 3)];
    let late = ledger.observe(&ended, 1, &seen, Told::default(), &used, 1);
    late.await.unwrap();
    assert_eq!(summed().await, [(String::new(), 7)]);
    for _ in 0..2 {
        let kept = ledger.observe(&key, 1, &seen, Told::default(), &used, 1);
        kept.await.unwrap();
        assert_eq!(summed().await, [(String::new(), 15)]);
    }
}

/// What was used for it is counted before: the call must fit what is left.
pub(super) async fn a_decision_reserves_for_the_call_that_it_chose(ledger: Store) {
    let decide = async |run: &str, used: u64, ended: bool| {
        let key = if ended { of_ended(run) } else { of(run) };
        let counted = [Counted {
            call: call(run, 1, CallKind::Model),
            used: took(run, used),
        }];
        let next = reservation(run, 40, vec![bound(Scope::Workspace, 100)]);
        let next = (call(run, 1, CallKind::Tool), next);
        let decided = decision("x");
        let decided = ledger.decide_and_reserve(&key, 1, &decided, &counted, &next, 1);
        decided.await.unwrap()
    };
    assert_eq!(decide("a", 50, true).await, Decided::WorkspaceEnded);
    let row = ledger.load("a".into(), 1).await.unwrap();
    assert_eq!(row.decision, None);
    // What was said of a call stands.
    for _ in 0..2 {
        assert_eq!(decide("a", 50, false).await, Decided::Fits);
    }
    let row = ledger.load("a".into(), 1).await.unwrap();
    assert_eq!(row.decision, Some(decision("x")));
    for _ in 0..2 {
        let refused = decide("b", 5, false).await;
        let Decided::Refused(over) = refused else {
            panic!("{refused:?}");
        };
        assert!(over.why.starts_with("Stopped by a budget (tokens): "));
    }
    // It is decided all the same, and what was used for that is counted.
    let row = ledger.load("b".into(), 1).await.unwrap();
    assert_eq!(row.decision, Some(decision("x")));
    assert_eq!(
        sums(&ledger, "ws", Scope::Workspace).await,
        [(String::new(), 55)]
    );
}

pub(super) async fn usage_is_summed_up_by_name_and_day(ledger: Store) {
    for (run, day, count) in [
        ("a", "2026-11-26", 3),
        ("a", "2026-11-27", 4),
        ("b", "2026-11-27", 5),
    ] {
        let used = Used {
            day: day.into(),
            ..took(run, count)
        };
        let call = call(run, u32::try_from(count).unwrap(), CallKind::Model);
        ledger.settle(&of(run), &call, &used, 1).await.unwrap();
    }
    let named = |name: &str, count| (name.to_owned(), count);
    assert_eq!(
        sums(&ledger, "ws", Scope::Run).await,
        [named("a", 7), named("b", 5)]
    );
    for (scope, name) in [
        (Scope::Workspace, ""),
        (Scope::Key, "key:k"),
        (Scope::Session, "s"),
        (Scope::Model, "m"),
    ] {
        assert_eq!(sums(&ledger, "ws", scope).await, [named(name, 12)]);
    }
    let days = Days {
        scope: Scope::Run,
        since: "2026-11-27".into(),
        until: "2026-11-27".into(),
        daily: false,
    };
    let some = ledger.usage("ws", &days, "a", 1).await.unwrap();
    assert_eq!(some, [("b".to_owned(), tokens(5))]);
    let some = ledger.usage("ws", &days, "", 1).await.unwrap();
    assert_eq!(some, [("a".to_owned(), tokens(4))]);
    let daily = Days {
        scope: Scope::Workspace,
        since: "2026-11-26".into(),
        daily: true,
        ..days
    };
    let by_day = ledger.usage("ws", &daily, "", 9).await.unwrap();
    let by_day: Vec<_> = by_day
        .iter()
        .map(|(day, sum)| (&**day, sum.tokens()))
        .collect();
    assert_eq!(by_day, [("2026-11-26", 3), ("2026-11-27", 9)]);
    let rest = ledger.usage("ws", &daily, "2026-11-26", 9).await.unwrap();
    assert_eq!(rest.len(), 1, "a page goes on behind a day");
    // Of a workspace that has ended nothing is counted, and what was is purged with it.
    let late = call("z", 1, CallKind::Model);
    let used = took("z", 9);
    ledger
        .settle(&of_ended("z"), &late, &used, 1)
        .await
        .unwrap();
    assert_eq!(sums(&ledger, "ws", Scope::Key).await, [named("key:k", 12)]);
    assert_eq!(ledger.workspaces().await.unwrap(), ["ws"]);
    while ledger.purge_some("ws").await.unwrap() {}
    assert!(sums(&ledger, "ws", Scope::Key).await.is_empty());
}

/// Line 106: what many tasks count at the same time on two sessions is summed up exactly.
pub(super) async fn line_106_sessions_are_summed_up_exactly(ledger: Store) {
    let tasks = (0..50_u32).map(|task| {
        let ledger = ledger.clone();
        tokio::spawn(async move {
            let run = format!("r{task}");
            for nth in 0..3 {
                let one = Call {
                    nth,
                    ..call(&run, 1, CallKind::Model)
                };
                let mut used = took(&run, 10 + u64::from(nth));
                used.account.session = format!("s{}", task % 2);
                // One that is told twice counts once.
                for _ in 0..2 {
                    let key = of(&run);
                    ledger.settle(&key, &one, &used, 1).await.unwrap();
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let exact = ["s0", "s1"].map(|session| (session.to_owned(), 25 * (10 + 11 + 12)));
    assert_eq!(sums(&ledger, "ws", Scope::Session).await, exact);
    let together = [(String::new(), 50 * (10 + 11 + 12))];
    assert_eq!(sums(&ledger, "ws", Scope::Workspace).await, together);
    // One that is cleared is counted anew; the other, and what all used, stay.
    let session = |name| (Scope::Session, name);
    let cleared = ledger.clear_usage("ws", session("s0")).await.unwrap();
    let cleared = cleared.expect("something was counted");
    assert_eq!((cleared.tokens(), cleared.model_calls), (825, 75));
    assert_eq!(ledger.clear_usage("ws", session("s0")).await.unwrap(), None);
    assert_eq!(
        ledger.clear_usage("other", session("s1")).await.unwrap(),
        None
    );
    assert_eq!(sums(&ledger, "ws", Scope::Session).await, exact[1..]);
    assert_eq!(sums(&ledger, "ws", Scope::Workspace).await, together);
}

/// Line 151, C.12: usage counts for the agent by its name, also of calls that were left, and is counted anew by itself.
pub(super) async fn line_151_usage_counts_for_the_agent(ledger: Store) {
    let key = of("r");
    let model = call("r", 1, CallKind::Model);
    ledger.settle(&key, &model, &took("r", 7), 1).await.unwrap();
    let mut nameless = took("r", 5);
    nameless.account.agent = String::new();
    let other = call("r", 2, CallKind::Model);
    ledger.settle(&key, &other, &nameless, 1).await.unwrap();
    assert_eq!(
        sums(&ledger, "ws", Scope::Agent).await,
        [("maven".to_owned(), 7)]
    );
    let agent = (Scope::Agent, "maven");
    let cleared = ledger.clear_usage("ws", agent).await.unwrap();
    assert_eq!(cleared.map(|amount| amount.tokens()), Some(7));
    assert_eq!(ledger.clear_usage("ws", agent).await.unwrap(), None);
    assert!(sums(&ledger, "ws", Scope::Agent).await.is_empty());
    let session = [("s".to_owned(), 12)];
    assert_eq!(sums(&ledger, "ws", Scope::Session).await, session);
}

pub(super) async fn old_usage_goes_when_its_time_is_over(ledger: Store) {
    const DAY_MS: i64 = 24 * 3600 * 1000;
    // 1970-01-02.
    let used = Used {
        day: "1970-01-02".into(),
        ..took("a", 3)
    };
    let settled = call("a", 1, CallKind::Model);
    ledger
        .settle(&of("a"), &settled, &used, DAY_MS)
        .await
        .unwrap();
    for (days, by_run, by_key) in [(30, 1, 1), (40, 0, 1), (410, 0, 0)] {
        while ledger.forget(days * DAY_MS).await.unwrap() {}
        assert_eq!(
            sums(&ledger, "ws", Scope::Run).await.len(),
            by_run,
            "{days}"
        );
        assert_eq!(
            sums(&ledger, "ws", Scope::Key).await.len(),
            by_key,
            "{days}"
        );
    }
}
