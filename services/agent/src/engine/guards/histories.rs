//! The detectors and the ladder over histories of calls, held against what the rules say, written out plainly.

use proptest::prelude::*;
use tg_schemas::msg::LoopRecord;

use super::detectors::{after, before};
use super::ladder::{Ladder, told};
use super::{Climbed, Detector, Level, Rung, Thresholds, Window};

/// Histories that are looked at.
const HISTORIES: u32 = 10_000;

/// A call and its result, of few, so that loops come about.
fn history() -> impl Strategy<Value = Vec<(u8, u8)>> {
    let call = (0..3_u8, 0..2_u8);
    let free = prop::collection::vec(call.clone(), 0..60);
    let looping = (prop::collection::vec(call, 1..4), 1..30_usize).prop_map(|(calls, times)| {
        let all = calls.len() * times;
        calls.into_iter().cycle().take(all).collect()
    });
    prop::collection::vec(prop_oneof![free, looping], 1..4).prop_map(|parts| parts.concat())
}

fn limits() -> impl Strategy<Value = Thresholds> {
    let counts = (1..40_usize, 1..15_usize, 1..25_usize, 1..40_usize);
    (counts, any::<[bool; 3]>(), prop::bool::weighted(0.95)).prop_map(
        |((history, warning, critical, breaker), [repeat, poll, ping], enabled)| Thresholds {
            enabled,
            history,
            warning,
            critical,
            breaker,
            generic_repeat: repeat,
            known_poll_no_progress: poll,
            ping_pong: ping,
        },
    )
}

fn window(history: &[(u8, u8)], limits: &Thresholds) -> Window {
    history.iter().fold(Window::default(), |window, call| {
        let window = window.calling("t", &call.0.to_string(), limits.window());
        window.returned(&call.1.to_string())
    })
}

/// Counts of the detectors, as the rules are worded, over `(arguments, result)`.
fn counts(records: &[LoopRecord]) -> [usize; 4] {
    let call = |at: usize| (&records[at].t, &records[at].a);
    let Some(last) = records.len().checked_sub(1) else {
        return [0; 4];
    };
    let repeats = (0..=last).filter(|at| call(*at) == call(last)).count();
    let mut unchanged = 0;
    while unchanged <= last && !records[last].r.is_empty() && {
        let at = last - unchanged;
        call(at) == call(last) && records[at].r == records[last].r
    } {
        unchanged += 1;
    }
    let mut turns = 0;
    if records.len() >= 4 && call(last) != call(last - 1) {
        while turns <= last && call(last - turns) == call(last - turns % 2) {
            turns += 1;
        }
        let results = |parity: usize| {
            let at = (0..turns).filter(move |back| back % 2 == parity);
            let mut known: Vec<_> = at.map(|back| records[last - back].r.as_str()).collect();
            known.retain(|result| !result.is_empty());
            known.sort_unstable();
            known.dedup();
            known.len()
        };
        turns = if results(0) > 1 || results(1) > 1 {
            0
        } else {
            turns - turns % 2
        };
    }
    let most = (0..=last).map(|one| (0..=last).filter(|at| call(*at) == call(one)).count());
    [repeats, unchanged, turns, most.max().unwrap_or(0)]
}

fn expected(
    limits: &Thresholds,
    counted: impl IntoIterator<Item = (Detector, usize)>,
) -> Option<(Level, Detector, usize)> {
    let level = |count: usize| match count {
        count if count >= limits.critical => Some(Level::Critical),
        count if count >= limits.warning => Some(Level::Warning),
        _ => None,
    };
    let found = counted
        .into_iter()
        .filter_map(|(detector, count)| Some((level(count)?, detector, count)));
    found.max().filter(|_| limits.enabled)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: HISTORIES, ..ProptestConfig::default() })]

    #[test]
    fn the_detectors_find_what_the_rules_say(history in history(), limits in limits(), poll: bool) {
        let known = window(&history, &limits);
        prop_assert!(known.records().len() <= limits.window());
        let [_, unchanged, turns, _] = counts(known.records());
        let wanted = expected(&limits, [
            (Detector::KnownPollNoProgress, if poll && limits.known_poll_no_progress { unchanged } else { 0 }),
            (Detector::PingPong, if limits.ping_pong { turns } else { 0 }),
        ].into_iter().filter(|(_, count)| *count > 0));
        let found = after(&known, &limits, poll);
        prop_assert_eq!(found.map(|found| (found.level, found.detector, found.count)), wanted);

        let next = known.calling("t", "0", limits.window());
        let [repeats, _, turns, most] = counts(next.records());
        let mut wanted = expected(&limits, [
            (Detector::GenericRepeat, if limits.generic_repeat { repeats } else { 0 }),
            (Detector::PingPong, if limits.ping_pong { turns } else { 0 }),
        ].into_iter().filter(|(_, count)| *count > 0));
        if limits.enabled && most >= limits.breaker {
            wanted = Some((Level::Critical, Detector::GlobalCircuitBreaker, most));
        }
        let found = before(&next, &limits);
        prop_assert_eq!(found.map(|found| (found.level, found.detector, found.count)), wanted);
    }

    /// A call is blocked only after the model was told of it, told once, and a run whose calls go on climbing stops; what
    /// is remembered is bounded, and travels without a loss.
    #[test]
    fn the_ladder_never_skips_a_rung(history in history(), limits in limits(), poll: bool) {
        let mut given: Vec<String> = Vec::new();
        let mut known = Window::default();
        for (call, result) in history {
            // What travels between steps is all that the next one knows.
            known = Window::new(known.into_records(), limits.window());
            known = known.calling("t", &call.to_string(), limits.window());
            let ladder = Ladder { limits: &limits, told: &given, poll };
            let first = ladder.before(&known);
            match &first {
                Some(Climbed { rung: Rung::Stop, .. }) => {
                    let [repeats, _, turns, most] = counts(known.records());
                    prop_assert!(repeats.max(turns) >= limits.critical || most >= limits.breaker);
                    break;
                }
                Some(Climbed { rung: Rung::Block, key, .. }) => {
                    prop_assert!(!poll && given.contains(key));
                    let same = known.known_result().unwrap_or_default().to_owned();
                    known = known.returned(&same);
                    continue;
                }
                Some(Climbed { rung, key, .. }) => {
                    prop_assert_eq!(*rung, Rung::Warn);
                    prop_assert!(!given.contains(key));
                }
                None => {}
            }
            known = known.returned(&result.to_string());
            let second = ladder.after(&known, first.as_ref());
            match &second {
                Some(Climbed { rung: Rung::Tell, key, .. }) => prop_assert!(!given.contains(key)),
                Some(Climbed { rung: Rung::Stop, .. }) => break,
                Some(_) => prop_assert!(false, "neither told nor stopped"),
                // Who was warned is told.
                None => prop_assert!(first.is_none()),
            }
            given = told(given.clone(), [first.as_ref(), second.as_ref()]);
            prop_assert!(given.len() <= 64 && known.records().len() <= limits.window());
        }
    }
}
