//! What every adapter of [`LedgerStore`] does: one run for a question, one decision for a step. A new one is added by
//! one line at the end.

use std::sync::Arc;

use tg_provenance::Ended;

use self::ahead::*;
use self::calls::*;
use self::config::*;
use self::confirmations::*;
use self::heads::*;
use self::records::*;
use self::standing::*;
use self::summaries::*;
use self::tasks::*;
use self::told::*;
use self::unreported::*;
use self::usage::*;
use super::sqlite::SqliteLedger;
use super::*;
use crate::engine::decision::{Taken, Usage};

mod ahead;
mod calls;
mod config;
mod confirmations;
mod heads;
mod records;
mod standing;
mod summaries;
mod tasks;
mod told;
mod unreported;
mod usage;

type Store = Arc<dyn LedgerStore>;

fn decision(text: &str) -> Decision {
    Decision {
        thought: vec!["hm".into(), String::new()],
        candidates: vec!["a".into()],
        ..Decision::of(Taken::Answer { text: text.into() })
    }
}

fn began(run: &str) -> Began {
    Began {
        run: run.into(),
        started_at: "t".into(),
        route: None,
    }
}

fn asked(workspace: &str, key: &str, text: &str) -> Asked {
    Asked {
        workspace: workspace.into(),
        is_over: IsOver::when(|| false),
        key: key.into(),
        text: text.into(),
        asker: None,
    }
}

fn detached(user: &str, question: &str, deadline_ms: i64) -> Asked {
    let caller = Caller {
        user: user.into(),
        question: question.into(),
        flow: "f".into(),
        request: "x".into(),
        deadline_ms,
        goes_on: true,
        grace_ms: 0,
    };
    Asked {
        asker: Some(caller),
        ..asked("ws#3", &format!("key of {question}"), "t")
    }
}

fn of(run: &str) -> RunKey {
    RunKey {
        run: run.into(),
        is_over: IsOver::when(|| false),
    }
}

/// The same where its workspace was deleted.
fn of_ended(run: &str) -> RunKey {
    RunKey {
        is_over: IsOver::when(|| true),
        ..of(run)
    }
}

/// Decides a step whose calls took nothing.
async fn decides(ledger: &Store, run: &str, step: u32, text: &str) {
    let kept = ledger.decide(&of(run), step, &decision(text), &[], 1).await;
    kept.unwrap();
}

/// The end of a run's trace.
fn end(workspace: &str, day: &str, run: &str, hash: &str) -> RunEnd {
    RunEnd {
        workspace: workspace.into(),
        day: day.into(),
        ended: Ended {
            run: run.into(),
            collection: "c".into(),
            hash: hash.into(),
        },
        earlier_done: false,
    }
}

async fn the_first_route_of_a_run_stands(ledger: Store) {
    let begin = async || {
        let run = ledger.begin(asked("ws#1", "q", "t"), began("a"), 1).await;
        run.unwrap().unwrap()
    };
    let route = |pattern: &str| Route {
        pattern: pattern.into(),
        ..Route::default()
    };
    let settle =
        async |run: RunKey, pattern: &str| ledger.route("q", &run, &route(pattern)).await.unwrap();
    assert_eq!(begin().await.route, None);
    assert_eq!(settle(of_ended("a"), "late").await, None);
    assert_eq!(settle(of("other"), "odd").await, None);
    assert_eq!(settle(of("a"), "react").await, Some(route("react")));
    assert_eq!(settle(of("a"), "second").await, Some(route("react")));
    assert_eq!(begin().await.route, Some(route("react")));
}

async fn findings_stand_in_the_order_of_arrival(ledger: Store) {
    let finding = |subagent: u32, text: &str| Finding {
        subagent,
        text: text.into(),
        ..Finding::default()
    };
    let enter = async |run: RunKey, subagent: u32, text: &str| {
        let found = ledger.found(&run, &finding(subagent, text), 1).await;
        found.unwrap()
    };
    assert_eq!(enter(of("a"), 2, "first").await, Some(0));
    assert_eq!(enter(of("a"), 0, "second").await, Some(1));
    assert_eq!(
        enter(of("a"), 2, "again").await,
        Some(0),
        "the first stands"
    );
    assert_eq!(enter(of("b"), 0, "other").await, Some(0));
    assert_eq!(enter(of_ended("a"), 1, "late").await, None);
    let found = ledger.findings("a").await.unwrap();
    assert_eq!(found, [finding(2, "first"), finding(0, "second")]);
    assert!(ledger.findings("none").await.unwrap().is_empty());
}

async fn what_was_said_of_a_step_is_there_until_it_is_done(ledger: Store) {
    let piece = |text: &str| Piece {
        kind: PieceKind::Part,
        text: text.into(),
    };
    let first = vec![piece("a"), piece("b")];
    ledger.say(&of("a"), 1, 4, first, 1).await.unwrap();
    ledger
        .say(&of("a"), 1, 6, vec![piece("c")], 1)
        .await
        .unwrap();
    let said = ledger.said("a", 1).await.unwrap();
    assert_eq!(said, [piece("a"), piece("b"), piece("c")]);
    assert!(ledger.said("a", 2).await.unwrap().is_empty());
    ledger.finish_step("a", 1).await.unwrap();
    assert!(ledger.said("a", 1).await.unwrap().is_empty());
}

async fn a_question_begins_one_run(ledger: Store) {
    let begin =
        |text: &str, run: &str| ledger.begin(asked("ws", "ws/f/inbox/q", text), began(run), 1);
    for run in ["r1", "r2"] {
        assert_eq!(begin("why", run).await.unwrap(), Some(began("r1")));
    }
    assert!(ledger.is_open("ws/f/inbox/q".into()).await.unwrap());
    assert!(!ledger.is_open("other".into()).await.unwrap());
    decides(&ledger, "r1", 1, "x").await;
    ledger.finish_step("r1", 1).await.unwrap();
    assert!(ledger.is_open("ws/f/inbox/q".into()).await.unwrap());
    for _ in 0..2 {
        ledger
            .finish_run(&of("r1"), 1, &end("ws", "", "r1", ""), Told::default(), 1)
            .await
            .unwrap();
    }
    assert!(!ledger.is_open("ws/f/inbox/q".into()).await.unwrap());
    assert_eq!(
        begin("how", "r3").await.unwrap(),
        Some(began("r3")),
        "another question under the same id"
    );
}

async fn the_first_decision_stands(ledger: Store) {
    decides(&ledger, "r", 1, "one").await;
    decides(&ledger, "r", 1, "two").await;
    let row = ledger.load("r".into(), 1).await.unwrap();
    assert_eq!(row.decision, Some(decision("one")));
    assert!(!row.later && !row.done);
    let (key, seen) = (of("r"), Observation::failed("x"));
    let kept = ledger.observe(&key, 1, &seen, Told::default(), &[], 1);
    kept.await.unwrap();
    decides(&ledger, "r", 2, "end").await;
    assert!(ledger.load("r".into(), 1).await.unwrap().later);
    let last = ledger.load("r".into(), 2).await.unwrap();
    assert!(!last.later && !last.done);
    ledger.finish_step("r", 2).await.unwrap();
    assert!(ledger.load("r".into(), 2).await.unwrap().done);
}

async fn an_ending_needs_no_decision(ledger: Store) {
    let ending = Ending::from_error(&tg_schemas::Error::new(
        tg_schemas::ErrorCode::Cancelled,
        "cancelled",
    ));
    ledger.end(&of("r"), 3, &ending, 1).await.unwrap();
    let row = ledger.load("r".into(), 3).await.unwrap();
    assert_eq!(row.ending, Some(ending));
    assert_eq!(row.decision, None);
}

async fn old_rows_go(ledger: Store) {
    decides(&ledger, "old", 1, "x").await;
    let now = (KEEP_MS / PURGE_EVERY + 2) * PURGE_EVERY;
    let begun = ledger.begin(asked("ws", "q", "t"), began("new"), now);
    begun.await.unwrap();
    assert_eq!(
        ledger.load("old".into(), 1).await.unwrap(),
        StepRow::default()
    );
}

async fn what_is_too_old_goes_also_where_no_run_begins(ledger: Store) {
    let finish = async |run: &str, at: i64| {
        let end = end("ws", "d1", run, "h");
        ledger
            .finish_run(&of(run), 1, &end, Told::default(), at)
            .await
            .unwrap();
    };
    let old = PURGE as usize + 3;
    for at in 0..old {
        finish(&format!("old {at}"), 1).await;
    }
    let now = KEEP_ENDS_MS + 2;
    finish("new", now).await;
    decides(&ledger, "x", 1, "x").await;
    assert!(ledger.forget(now).await.unwrap(), "in pieces");
    assert!(!ledger.forget(now).await.unwrap());
    let left = ledger.ended("ws", "d1", 0, 2 * old).await.unwrap();
    let left: Vec<&str> = left.iter().map(|end| end.run.as_str()).collect();
    assert_eq!(left, ["new"]);
    let step = ledger.load("x".into(), 1).await.unwrap();
    assert_eq!(step, StepRow::default());
}

async fn the_first_observation_of_a_decided_step_stands(ledger: Store) {
    let observe = async |text: &str| {
        let seen = Observation::failed(text);
        let told = Told::default();
        ledger
            .observe(&of("r"), 1, &seen, told, &[], 1)
            .await
            .unwrap();
    };
    observe("early").await;
    assert_eq!(
        ledger.load("r".into(), 1).await.unwrap(),
        StepRow::default()
    );
    decides(&ledger, "r", 1, "x").await;
    observe("one").await;
    observe("two").await;
    let row = ledger.load("r".into(), 1).await.unwrap();
    assert_eq!(row.observation, Some(Observation::failed("one")));
}

async fn detached_runs_of_a_user_are_listed_until_they_end_or_are_cancelled(ledger: Store) {
    for (n, (user, deadline)) in [("ann", 9), ("ann", 9), ("bob", 9), ("ann", 5)]
        .iter()
        .enumerate()
    {
        let asked = detached(user, &format!("q{n}"), *deadline);
        let begun = ledger.begin(asked, began(&format!("r{n}")), 1).await;
        begun.unwrap();
    }
    // One whose caller waits is none.
    let waits = ledger.begin(asked("ws", "k", "t"), began("r9"), 1);
    waits.await.unwrap();
    let listed = async |user: &str, after: &str, most: usize, now: i64| {
        let runs = ledger.detached(user, after, most, now).await.unwrap();
        let ids = runs.iter().map(|run| run.id.clone());
        ids.collect::<Vec<_>>()
    };
    let all = ledger.detached("ann", "", 9, 1).await.unwrap();
    let row = DetachedRun {
        id: "q0".into(),
        workspace: "ws".into(),
        generation: 3,
        flow: "f".into(),
        request_id: "x".into(),
        started_ms: 1,
        ..DetachedRun::default()
    };
    assert_eq!((all.len(), &all[0]), (3, &row));
    assert_eq!(listed("ann", "", 2, 1).await, ["q0", "q1"]);
    assert_eq!(listed("ann", "q1", 2, 1).await, ["q3"]);
    // Its deadline has passed.
    assert_eq!(listed("ann", "", 9, 5).await, ["q0", "q1"]);
    decides(&ledger, "r0", 1, "x").await;
    assert_eq!(listed("ann", "", 9, 5).await, ["q0", "q1"]);
    let end = end("ws#3", "d", "r0", "h");
    ledger
        .finish_run(&of("r0"), 1, &end, Told::default(), 1)
        .await
        .unwrap();
    assert_eq!(listed("ann", "", 9, 5).await, ["q1"]);
    // Of its own user only, and once.
    for (user, question, done) in [
        ("bob", "q1", false),
        ("ann", "q0", false),
        ("ann", "q1", true),
        ("ann", "q1", false),
    ] {
        assert_eq!(
            ledger
                .cancel(&Whose::User(user.into()), question, 5)
                .await
                .unwrap(),
            done,
            "{user} {question}"
        );
    }
    assert!(listed("ann", "", 9, 5).await.is_empty());
    let cancelled = ["r0", "r1", "r2"].map(|run| ledger.asker(run));
    let cancelled = futures::future::join_all(cancelled).await;
    let cancelled: Vec<_> = cancelled
        .into_iter()
        .map(|run| run.unwrap().unwrap().cancelled)
        .collect();
    assert_eq!(cancelled, [false, true, false]);
    while ledger.purge_some("ws#3").await.unwrap() {}
    assert!(listed("bob", "", 9, 1).await.is_empty());
}

async fn nothing_is_written_of_a_workspace_that_has_ended(ledger: Store) {
    let late = Asked {
        is_over: IsOver::when(|| true),
        ..asked("ws", "q", "t")
    };
    assert_eq!(
        ledger.begin(late.clone(), began("r"), 1).await.unwrap(),
        None
    );
    assert!(ledger.workspaces().await.unwrap().is_empty());
    // A run that was under way when its workspace was purged.
    ledger
        .begin(asked("ws", "q", "t"), began("r"), 1)
        .await
        .unwrap();
    decides(&ledger, "r", 1, "x").await;
    while ledger.purge_some("ws").await.unwrap() {}
    let run = of_ended("r");
    let piece = Piece {
        kind: PieceKind::Answer,
        text: "said".into(),
    };
    let ending = Ending::from_error(&tg_schemas::Error::new(
        tg_schemas::ErrorCode::Cancelled,
        "cancelled",
    ));
    assert!(
        !ledger
            .decide(&run, 2, &decision("x"), &[], 1)
            .await
            .unwrap()
    );
    assert!(!ledger.end(&run, 3, &ending, 1).await.unwrap());
    assert!(!ledger.say(&run, 4, 0, vec![piece], 1).await.unwrap());
    for step in 1..4 {
        let row = ledger.load("r".into(), step).await.unwrap();
        assert_eq!(row, StepRow::default(), "{step}");
    }
    assert!(ledger.said("r", 4).await.unwrap().is_empty());
}

async fn a_workspace_is_purged_whole_and_alone(ledger: Store) {
    // More runs than are purged at once, in one generation of a name; one in the next.
    let named =
        |workspace: &str, n: usize| (format!("{workspace}/{n}"), format!("{workspace} {n}"));
    for (workspace, count) in [("ws", 600), ("ws#1", 1)] {
        for n in 0..count {
            let (key, run) = named(workspace, n);
            let begun = ledger.begin(asked(workspace, &key, "t"), began(&run), 1);
            begun.await.unwrap();
            decides(&ledger, &run, 1, "x").await;
            let piece = Piece {
                kind: PieceKind::Answer,
                text: "said".into(),
            };
            ledger.say(&of(&run), 2, 0, vec![piece], 1).await.unwrap();
        }
    }
    let mut known = ledger.workspaces().await.unwrap();
    known.sort();
    assert_eq!(known, ["ws", "ws#1"]);
    while ledger.purge_some("ws").await.unwrap() {}
    assert_eq!(ledger.workspaces().await.unwrap(), ["ws#1"]);
    for (workspace, n, left) in [("ws", 0, false), ("ws", 599, false), ("ws#1", 0, true)] {
        let (key, run) = named(workspace, n);
        assert_eq!(ledger.is_open(key).await.unwrap(), left, "{run}");
        let row = ledger.load(run.clone(), 1).await.unwrap();
        assert_eq!(row.decision.is_some(), left, "{run}");
        let said = ledger.said(&run, 2).await.unwrap();
        assert_eq!(!said.is_empty(), left, "{run}");
    }
    assert!(!ledger.purge_some("ws").await.unwrap());
}

/// Every promise, kept by one adapter.
macro_rules! suite {
    ($adapter:ident, $open:expr) => {
        mod $adapter {
            use super::*;

            suite!(@ $open;
                a_question_begins_one_run,
                the_first_route_of_a_run_stands,
                the_first_decision_stands,
                the_first_observation_of_a_decided_step_stands,
                an_ending_needs_no_decision,
                what_runs_have_told_is_kept_without_a_gap_or_repeat,
                what_is_kept_of_a_workspace_is_bounded,
                who_asked_for_a_run_is_known,
                a_run_that_nobody_listens_to_is_cancelled_unless_somebody_joined,
                it_is_known_where_a_run_ended,
                what_happened_in_subagents_is_known_with_their_run,
                what_has_happened_in_a_run_is_known,
                it_is_known_what_a_run_waits_for_and_since_when,
                why_a_run_was_stopped_is_known,
                why_a_result_stopped_a_run_is_known,
                why_a_budget_stopped_a_run_is_known,
                the_end_of_a_run_is_that_of_its_earlier_steps_if_it_says_so,
                subagents_that_are_not_over_stand_behind_their_run,
                findings_stand_in_the_order_of_arrival,
                what_was_said_of_a_step_is_there_until_it_is_done,
                ends_of_a_day_stand_in_their_order,
                heads_follow_one_another_and_the_key_stays,
                old_rows_go,
                what_is_too_old_goes_also_where_no_run_begins,
                a_workspace_is_purged_whole_and_alone,
                nothing_is_written_of_a_workspace_that_has_ended,
                detached_runs_of_a_user_are_listed_until_they_end_or_are_cancelled,
                what_is_reserved_binds_until_it_is_settled_or_over,
                a_refusal_says_whether_it_is_for_what_others_reserved,
                a_call_of_no_run_that_lapses_counts_as_reserved,
                counted_calls_of_no_run_go_soon,
                a_run_that_ends_before_anything_was_decided_is_over,
                calls_and_time_bind_runs_at_once,
                bounds_are_of_their_own,
                a_bound_of_a_day_or_month_begins_anew,
                a_bound_that_begins_anew_knows_how_large_calls_are,
                a_large_call_of_one_key_leaves_other_keys_their_budgets,
                what_the_calls_of_a_step_took_is_counted_with_its_rows,
                a_decision_reserves_for_the_call_that_it_chose,
                an_observation_reserves_for_the_next_step,
                the_end_of_a_run_frees_what_is_reserved_for_later_steps,
                what_is_reserved_ahead_is_not_held_for_long,
                a_call_that_was_freed_is_reserved_and_counted_anew,
                usage_is_summed_up_by_name_and_day,
                line_106_sessions_are_summed_up_exactly,
                calls_that_are_counted_together_are_summed_up_as_one_by_one,
                line_151_usage_counts_for_the_agent,
                a_call_whose_tokens_nobody_reports_counts_as_reserved,
                an_estimate_raises_no_later_reservation,
                old_usage_goes_when_its_time_is_over,
                a_known_config_store_is_remembered,
                a_user_answers_once_and_in_time,
                questions_of_subagents_are_answered_with_their_run,
                a_bare_answer_is_for_the_first_question_of_a_run,
                open_questions_of_a_workspace_are_bounded,
                a_record_is_kept_in_order_and_what_has_a_name_once,
                a_record_that_grows_too_large_is_not_kept,
                records_of_a_workspace_are_bounded_and_go_with_it,
                a_task_that_is_over_stays_as_it_is,
                tasks_of_a_process_that_is_gone_have_failed,
                runs_of_a_graph_end_with_its_process,
                tasks_of_a_workspace_are_bounded_and_go_with_it,
                tasks_that_are_over_are_kept_for_an_hour,
                what_came_of_a_call_stands_until_its_step_has_seen_all,
                a_record_knows_each_call_of_a_step,
                a_summary_that_is_made_again_stands_beside_its_step,
                it_is_known_where_the_trace_of_a_run_is,
            );
        }
    };
    (@ $open:expr; $($promise:ident,)+) => {
        $(
            #[tokio::test]
            async fn $promise() {
                super::$promise(Arc::new($open)).await;
            }
        )+
    };
}

suite!(sqlite, SqliteLedger::in_memory().unwrap());
