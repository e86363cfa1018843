//! How soon a poll may be made again: sooner than that, its last result stands. The clock is given from outside.

use tg_schemas::msg::PollRecord;

use super::bounds::{MAX_SHOWN, shorten};
use super::guards::calls;

/// Seconds to wait after a poll that brought nothing new, by how many of them came one behind the other; the last for ever.
const WAITS: [u64; 4] = [5, 10, 30, 60];
/// A poll that was not made for so long is forgotten, in milliseconds.
const FORGET_MS: u64 = 60 * 60 * 1000;
/// Polls that a run remembers; the one that was made longest ago goes.
const MAX_POLLS: usize = 8;

/// A poll before it is known what it returns.
pub fn asked(tool: &str, arguments: &str, now: u64) -> PollRecord {
    PollRecord {
        t: tool.to_owned(),
        a: calls::args_hash(arguments),
        at: i64::try_from(now).unwrap_or(i64::MAX),
        ..PollRecord::default()
    }
}

/// Whether it was asked and has not returned yet.
pub fn is_open(poll: &PollRecord) -> bool {
    poll.r.is_empty()
}

/// What is known of a poll that may not be made yet.
pub fn held<'a>(known: &'a [PollRecord], asked: &PollRecord) -> Option<&'a PollRecord> {
    find(known, asked).filter(|poll| wait(poll, clock(asked.at)) > 0)
}

/// Whole seconds until a poll may be made again.
pub fn wait(poll: &PollRecord, now: u64) -> u64 {
    let waits = match usize::try_from(poll.n).unwrap_or(0) {
        0 => 0,
        n => WAITS[n.min(WAITS.len()) - 1],
    };
    let until = clock(poll.at) + waits * 1000;
    // A clock that went back makes nobody wait longer than that.
    until.saturating_sub(now).div_ceil(1000).min(waits)
}

/// The poll with what it returned so many milliseconds after it was asked.
pub fn returned(known: &[PollRecord], asked: PollRecord, text: &str, took: u64) -> PollRecord {
    let shown = shorten(text, MAX_SHOWN);
    let hash = calls::result_hash(&shown);
    let before = find(known, &asked);
    let fresh = !text.is_empty() && before.is_none_or(|poll| poll.r != hash);
    PollRecord {
        n: match fresh {
            true => 0,
            false => before.map_or(0, |poll| poll.n).saturating_add(1),
        },
        at: asked.at.saturating_add(i64::try_from(took).unwrap_or(0)),
        r: hash,
        text: shown,
        ..asked
    }
}

/// What a run remembers with a poll that it made.
pub fn remember(known: Vec<PollRecord>, poll: &PollRecord) -> Vec<PollRecord> {
    let now = clock(poll.at);
    let stays = |one: &PollRecord| !same(one, poll) && !forgotten(one, now);
    let mut polls: Vec<_> = known.into_iter().filter(stays).collect();
    polls.push(poll.clone());
    polls.drain(..polls.len().saturating_sub(MAX_POLLS));
    polls
}

/// A text with how long to wait before it; in front, so that it stays where the text is shortened.
pub fn told(text: &str, seconds: u64, held: bool) -> String {
    match held {
        true => format!(
            "retry_after_seconds: {seconds}\nThe tool was not used, as it was asked too soon. It returned before:\n{text}"
        ),
        false => format!("retry_after_seconds: {seconds}\n{text}"),
    }
}

fn find<'a>(known: &'a [PollRecord], asked: &PollRecord) -> Option<&'a PollRecord> {
    let now = clock(asked.at);
    known
        .iter()
        .find(|poll| same(poll, asked) && !forgotten(poll, now))
}

fn same(one: &PollRecord, other: &PollRecord) -> bool {
    one.t == other.t && one.a == other.a
}

fn forgotten(poll: &PollRecord, now: u64) -> bool {
    now.saturating_sub(clock(poll.at)) > FORGET_MS
}

fn clock(at: i64) -> u64 {
    u64::try_from(at).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a poll, which returns at once; gives how long to wait.
    fn poll(known: &mut Vec<PollRecord>, arguments: &str, text: &str, now: u64) -> u64 {
        let made = returned(known, asked("job", arguments, now), text, 0);
        *known = remember(std::mem::take(known), &made);
        wait(&made, now)
    }

    /// 107
    #[test]
    fn line_107_a_poll_without_output_waits_longer_each_time() {
        let (mut known, mut now) = (Vec::new(), 1_000_000);
        for expected in [5, 10, 30, 60, 60] {
            assert_eq!(poll(&mut known, "{}", "", now), expected);
            let sooner = asked("job", "{ }", now + expected * 1000 - 1);
            assert_eq!(wait(held(&known, &sooner).unwrap(), clock(sooner.at)), 1);
            now += expected * 1000;
            assert_eq!(held(&known, &asked("job", "{}", now)), None);
        }
        // Output resets, and the same output again is none.
        assert_eq!(poll(&mut known, "{}", "half", now), 0);
        assert_eq!(poll(&mut known, "{}", "half", now), 5);
        assert_eq!(poll(&mut known, "{}", "half", now), 10);
        assert_eq!(poll(&mut known, "{}", "done", now), 0);
        // Other arguments are another poll.
        assert_eq!(poll(&mut known, "{}", "done", now), 5);
        assert_eq!(poll(&mut known, r#"{"x": 1}"#, "", now), 5);
        assert_eq!(poll(&mut known, "{}", "done", now), 10);
        // An hour later it is as if it had never been made.
        let hour = now + FORGET_MS;
        assert_eq!(poll(&mut known.clone(), "{}", "", hour), 30);
        assert_eq!(poll(&mut known, "{}", "", now + 61 * 60 * 1000), 5);
        assert_eq!(known.len(), 1, "the other is forgotten, too");
    }

    #[test]
    fn so_many_polls_are_remembered_and_a_clock_may_go_back() {
        let mut known = Vec::new();
        for n in 0..20 {
            poll(&mut known, &n.to_string(), "", 1_000_000);
        }
        assert_eq!(known.len(), MAX_POLLS);
        assert_eq!(held(&known, &asked("job", "0", 1_000_000)), None);
        let early = asked("job", "19", 10);
        assert_eq!(wait(held(&known, &early).unwrap(), 10), 5);
        let long = "x".repeat(2 * MAX_SHOWN);
        let made = returned(&known, asked("job", "l", 5), &long, 7);
        assert!(made.text.len() < MAX_SHOWN + 100 && made.at == 12);
    }
}
