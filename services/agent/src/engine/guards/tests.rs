//! The acceptance lines of loop detection, by number.

use tg_schemas::msg::{AgentRun, AgentRunStep};

use super::detectors::{after, before, is_poll};
use super::ladder::{Ladder, told};
use super::{Climbed, Detector, Finding, Level, Rung, Thresholds, Window};

const MOST: usize = 30;

/// A call that returned.
fn called(window: Window, tool: &str, arguments: &str, result: &str) -> Window {
    window.calling(tool, arguments, MOST).returned(result)
}

/// So many calls in turn of those given, all of which returned.
fn turns(calls: &[(&str, &str)], count: usize) -> Window {
    let calls = calls.iter().cycle().take(count);
    calls.fold(Window::default(), |window, (tool, result)| {
        called(window, tool, "{}", result)
    })
}

fn repeated(count: usize) -> Window {
    turns(&[("find", "r")], count)
}

fn is(found: Option<Finding>) -> Option<(Level, Detector, usize)> {
    found.map(|found| (found.level, found.detector, found.count))
}

/// 85
#[test]
fn line_085_the_tenth_repeat_is_a_warning_and_the_twentieth_is_critical() {
    let limits = Thresholds::default();
    let at = |count: usize| {
        is(before(
            &repeated(count - 1).calling("find", "{}", MOST),
            &limits,
        ))
    };
    for count in 1..10 {
        assert_eq!(at(count), None, "{count}");
    }
    for count in 10..20 {
        let warned = (Level::Warning, Detector::GenericRepeat, count);
        assert_eq!(at(count), Some(warned));
    }
    assert_eq!(at(20), Some((Level::Critical, Detector::GenericRepeat, 20)));
}

/// 87
#[test]
fn line_087_what_slid_out_of_the_window_does_not_count() {
    let limits = Thresholds::default();
    let mut window = repeated(10);
    for number in 0..30 {
        window = called(window, "find", &format!("[{number}]"), "r");
    }
    assert_eq!(window.records().len(), 30);
    assert_eq!(before(&window.calling("find", "{}", MOST), &limits), None);
}

/// 88
#[test]
fn line_088_a_poll_that_returns_the_same_ten_times_is_a_warning_and_a_change_resets() {
    let limits = Thresholds::default();
    let poll = |window: &Window| is(after(window, &limits, true));
    let window = turns(&[("job_status", "waiting")], 9);
    assert_eq!(poll(&window), None);
    let window = called(window, "job_status", "{}", "waiting");
    let warned = (Level::Warning, Detector::KnownPollNoProgress, 10);
    assert_eq!(poll(&window), Some(warned));
    assert_eq!(is(after(&window, &limits, false)), None);
    let window = called(window, "job_status", "{}", "done");
    assert_eq!(poll(&window), None);
    assert!(is_poll("Job_Status", false) && is_poll("x", true) && !is_poll("find", false));
}

/// 89
#[test]
fn line_089_two_calls_in_turn_are_a_warning_unless_their_results_change() {
    let limits = Thresholds::default();
    let same = turns(&[("a", "1"), ("b", "2")], 10);
    assert_eq!(
        is(after(&same, &limits, false)),
        Some((Level::Warning, Detector::PingPong, 10))
    );
    assert_eq!(
        after(&turns(&[("a", "1"), ("b", "2")], 9), &limits, false),
        None
    );
    let changing = turns(&[("a", "1"), ("b", "2"), ("a", "3"), ("b", "2")], 10);
    assert_eq!(after(&changing, &limits, false), None);
    assert_eq!(after(&repeated(10), &limits, false), None);
    // Before the call is made its result is not known, which changes nothing.
    let window = turns(&[("a", "1"), ("b", "2")], 19).calling("b", "{}", MOST);
    assert_eq!(
        is(before(&window, &limits)),
        Some((Level::Critical, Detector::PingPong, 20))
    );
}

/// 90
#[test]
fn line_090_the_breaker_stands_alone() {
    let limits = Thresholds {
        generic_repeat: false,
        known_poll_no_progress: false,
        ping_pong: false,
        ..Thresholds::default()
    };
    assert_eq!(before(&repeated(29), &limits), None);
    let broken = (Level::Critical, Detector::GlobalCircuitBreaker, 30);
    assert_eq!(is(before(&repeated(30), &limits)), Some(broken));
}

/// 91
#[test]
fn line_091_nothing_is_found_where_nothing_is_looked_for() {
    let limits = Thresholds {
        enabled: false,
        ..Thresholds::default()
    };
    assert_eq!(before(&repeated(40), &limits), None);
    assert_eq!(after(&repeated(40), &limits, true), None);
}

/// 92: the window goes on in the next turn.
#[test]
fn a_window_that_is_carried_counts_over_turns() {
    let limits = Thresholds::default();
    let run = AgentRun {
        loop_window: repeated(8).into_records(),
        ..AgentRun::default()
    };
    let mut window = Window::of(&run, MOST);
    for _ in 0..11 {
        window = window.calling("find", "{}", MOST);
        assert_ne!(
            before(&window, &limits).map(|found| found.level),
            Some(Level::Critical)
        );
        window = window.returned("r");
    }
    let found = before(&window.calling("find", "{}", MOST), &limits).unwrap();
    assert_eq!((found.level, found.count), (Level::Critical, 20));
    assert_eq!(
        found.message(),
        "'find' was called 20 times with the same arguments; the loop is broken"
    );
}

#[test]
fn a_run_without_a_window_has_that_of_its_steps() {
    let step = |action: &str| AgentRunStep {
        action: action.into(),
        arguments: "{ }".into(),
        observation: "r".into(),
        ..AgentRunStep::default()
    };
    let run = AgentRun {
        history: vec![
            step("find"),
            step("find"),
            step(crate::engine::bounds::PARSE_ERROR),
            step("look"),
        ],
        prior: 1,
        ..AgentRun::default()
    };
    let window = Window::of(&run, MOST);
    let tools: Vec<_> = window
        .records()
        .iter()
        .map(|call| call.t.as_str())
        .collect();
    assert_eq!(tools, ["find", "look"]);
    let again = window.calling("find", "{}", MOST);
    assert_eq!(
        again.known_result(),
        Some(super::calls::result_hash("r").as_str())
    );
}

/// The rungs of one call that is made again and again.
fn climb(tool: &str, poll: bool, count: usize) -> Vec<[Option<Rung>; 2]> {
    let limits = Thresholds::default();
    let mut given: Vec<String> = Vec::new();
    let mut window = Window::default();
    let mut rungs = Vec::new();
    let rung = |climbed: &Option<Climbed>| climbed.as_ref().map(|climbed| climbed.rung);
    for _ in 0..count {
        window = window.calling(tool, "{}", MOST);
        let ladder = Ladder {
            limits: &limits,
            told: &given,
            poll,
        };
        let first = ladder.before(&window);
        window = window.returned("r");
        let second = match first {
            Some(Climbed {
                rung: Rung::Block | Rung::Stop,
                ..
            }) => None,
            _ => ladder.after(&window, first.as_ref()),
        };
        rungs.push([rung(&first), rung(&second)]);
        given = told(given.clone(), [first.as_ref(), second.as_ref()]);
    }
    rungs
}

/// 94, and what follows: warned and told once, then blocked, then stopped.
#[test]
fn line_094_the_ladder_is_climbed_rung_by_rung() {
    let rungs = climb("find", false, 20);
    assert!(rungs[..9].iter().all(|rungs| *rungs == [None, None]));
    assert_eq!(rungs[9], [Some(Rung::Warn), Some(Rung::Tell)]);
    assert!(
        rungs[10..19]
            .iter()
            .all(|rungs| *rungs == [Some(Rung::Block), None])
    );
    assert_eq!(rungs[19], [Some(Rung::Stop), None]);
}

/// Only what a poll returns says whether it is in vain, so it is made until the run stops.
#[test]
fn a_poll_is_never_blocked() {
    let rungs = climb("job_status", true, 20);
    assert_eq!(rungs[9], [Some(Rung::Warn), Some(Rung::Tell)]);
    assert!(rungs[10..19].iter().all(|rungs| *rungs == [None, None]));
    assert_eq!(rungs[19][0], Some(Rung::Stop));
}
