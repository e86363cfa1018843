//! Feeds a parser what nobody would write: seeds that are cut, spliced, repeated and flipped, a fixed number of times.
//!
//! A parser of outside bytes may refuse everything and do nothing else: a panic or an input that takes more memory than
//! [`LARGE`] fails the test. The inputs follow from the name of the target, so that a failure comes back. For longer runs
//! `TG_FUZZ_SEED` starts elsewhere, and with `TG_FUZZ_MS` a target reads for that time instead; then an input that works for
//! longer than [`SLOW`] fails too. Without it no time is compared: the machine may be busy.
//!
//! What reads frames of the gateway, bodies of requests or messages of a queue is a [`door`]: what it would say of an input
//! is looked at for words of the topology, and `TG_FUZZ_INPUTS` says how many inputs all doors read together, whatever time
//! that takes. With `TG_FUZZ_COUNTS` each door adds a line to that file: its number of inputs and its name.

use std::cell::Cell;
use std::fmt::Display;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::machine::worked;
use crate::topology;

/// Time that one input may take of a processor; it is given twice more before it fails.
pub const SLOW: Duration = Duration::from_secs(1);
/// Time that it may take in all: the machine may be busy, and some targets wait for threads of theirs.
const LATE: Duration = Duration::from_secs(10);
/// Bytes by which one batch of inputs may raise what the process held at most.
pub const LARGE: u64 = 512 << 20;
/// The longest input.
const LONGEST: usize = 64 << 10;
/// Inputs that a target reads where nothing else is set.
const USUAL: u64 = 1_000;
/// Inputs between two looks at the process's memory.
const BATCH: u64 = 64;

/// Whether a door has anything to say to who sent what it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    /// An error.
    Something,
    /// What it cannot read is left out, or so rarely an error that none may come.
    Nothing,
}

use Says::{Nothing, Something};

/// The doors and what each reads of every thousand inputs: more of what is read fast, so that a million take about a minute.
pub const DOORS: &[(&str, u64, Says)] = &[
    ("frames of the socket", 150, Something),
    ("heads of frames", 140, Nothing),
    ("lines of imports", 100, Something),
    ("uploads of cores", 4, Something),
    ("bodies of requests", 40, Something),
    ("bodies of chats", 10, Something),
    ("messages of the model context protocol", 10, Something),
    ("frames of imports", 110, Something),
    ("errors of others", 4, Something),
    ("bodies of JSON", 100, Something),
    ("bodies of Avro", 100, Something),
    ("headers", 50, Nothing),
    ("tables of headers", 140, Nothing),
    ("parts of answers", 42, Nothing),
];

/// When a target is done.
#[derive(Debug, Clone, Copy)]
enum Until {
    Inputs(u64),
    Time(Instant),
}

impl Until {
    /// `TG_FUZZ_MS` from now, else so many inputs.
    fn set(inputs: u64) -> Self {
        let given = std::env::var("TG_FUZZ_MS").ok();
        let given = given.and_then(|text| text.parse().ok());
        given.map_or(Self::Inputs(inputs), |time| {
            Self::Time(Instant::now() + Duration::from_millis(time))
        })
    }

    fn is_reached(self, count: u64) -> bool {
        match self {
            Self::Inputs(inputs) => count >= inputs,
            Self::Time(end) => Instant::now() >= end,
        }
    }
}

/// Inputs that a door reads at least: its share of `TG_FUZZ_INPUTS`, else none beyond the usual.
fn least(share: u64) -> u64 {
    let all = std::env::var("TG_FUZZ_INPUTS").ok();
    let all = all.and_then(|text| text.parse::<u64>().ok());
    all.map_or(0, |all| (all * share).div_ceil(1_000))
}

/// Feeds `target` a thousand inputs: first the seeds as they are, then what becomes of them.
///
/// # Panics
///
/// If the target panics, takes much memory or is slow while times are compared; the input is printed before.
pub fn run(name: &str, seeds: &[&[u8]], target: impl Fn(&[u8])) {
    fed(name, seeds, 0, &target);
}

/// [`run`] with fewer inputs than usual: for a parser that takes milliseconds for each.
///
/// # Panics
///
/// As [`run`].
pub fn run_few(name: &str, seeds: &[&[u8]], inputs: u64, target: impl Fn(&[u8])) {
    fed_until(name, seeds, (0, Until::set(inputs)), &target);
}

/// [`run`], for what strangers write that is no frame, body or message: what is said of it is looked at as at a [`door`],
/// and it is not counted among those.
///
/// # Panics
///
/// As [`run`], and if a text that is said has a word of the topology.
pub fn beside_doors(name: &str, seeds: &[&[u8]], target: impl Fn(&[u8], &Sayings<'_>)) {
    let said = Cell::new(0);
    run(name, seeds, |input| {
        let said = &said;
        target(input, &Sayings { name, input, said });
    });
}

/// What a door would say of an input.
pub struct Sayings<'a> {
    name: &'a str,
    input: &'a [u8],
    said: &'a Cell<u64>,
}

impl Sayings<'_> {
    /// Takes a text that whoever sent the input would read.
    ///
    /// # Panics
    ///
    /// If it has a word of the topology that the input has not.
    pub fn say(&self, text: impl Display) {
        self.said.set(self.said.get() + 1);
        let text = text.to_string();
        if let Some(word) = topology::told(&text, self.input) {
            panic!("{} tells {word:?}: {text}", self.name);
        }
    }

    /// The same for the error of an outcome.
    pub fn of<T, E: Display>(&self, outcome: Result<T, E>) -> Option<T> {
        outcome.map_err(|error| self.say(error)).ok()
    }
}

/// Feeds one of [`DOORS`], as [`run`] does, and at least its share of `TG_FUZZ_INPUTS`.
///
/// # Panics
///
/// As [`run`], if a text that is said has a word of the topology, and if it never said anything, unless it is one that does not.
pub fn door(name: &str, seeds: &[&[u8]], target: impl Fn(&[u8], &Sayings<'_>)) {
    let found = DOORS.iter().find(|(door, _, _)| *door == name);
    let (_, share, says) = *found.unwrap_or_else(|| panic!("{name} is none of the doors"));
    let least = least(share);
    let said = Cell::new(0);
    let count = fed(name, seeds, least, &|input: &[u8]| {
        let (name, said) = (name, &said);
        target(input, &Sayings { name, input, said });
    });
    assert!(count >= least, "{name}: {count} inputs of {least}");
    assert!(
        least == 0 || said.get() > 0 || says == Nothing,
        "{name}: no text was looked at"
    );
    if let Some(path) = std::env::var_os("TG_FUZZ_COUNTS") {
        let file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(path);
        // One write, so that the lines of several processes do not mix.
        let line = format!("{count} {name}\n");
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.expect("the count is written");
    }
}

/// Feeds until [`Until::set`] is reached and at least so many inputs. Returns how many there were.
fn fed(name: &str, seeds: &[&[u8]], least: u64, target: &impl Fn(&[u8])) -> u64 {
    fed_until(name, seeds, (least, Until::set(USUAL)), target)
}

fn fed_until(
    name: &str,
    seeds: &[&[u8]],
    (least, until): (u64, Until),
    target: &impl Fn(&[u8]),
) -> u64 {
    let start = std::env::var("TG_FUZZ_SEED").ok();
    let start = start.and_then(|text| text.parse().ok());
    let seed = start.unwrap_or_else(|| {
        name.bytes().fold(7_u64, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(u64::from(byte))
        })
    });
    let mut random = StdRng::seed_from_u64(seed);
    let mut peak = memory();
    let mut count = 0_u64;
    for seed in seeds {
        feed(name, seed, target);
    }
    while count < least || !until.is_reached(count) {
        let input = mutated(seeds, &mut random);
        feed(name, &input, target);
        count += 1;
        if count.is_multiple_of(BATCH) {
            let now = memory();
            assert!(
                now < peak + LARGE,
                "{name}: one of the inputs {}..{count} took {} bytes",
                count - BATCH,
                now - peak
            );
            peak = now;
        }
    }
    println!("{name}: {count} inputs from seed {seed}");
    count
}

fn feed(name: &str, input: &[u8], target: &impl Fn(&[u8])) {
    if std::env::var_os("TG_FUZZ_MS").is_some() {
        feed_in_time(name, input, target);
    } else {
        feed_once(name, input, target);
    }
}

fn feed_once(name: &str, input: &[u8], target: &impl Fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        eprintln!("{name}: panics at {}", shown(input));
        resume_unwind(panic);
    }
}

fn feed_in_time(name: &str, input: &[u8], target: &impl Fn(&[u8])) {
    let mut took = Duration::ZERO;
    for again in 0..3 {
        // What the processor says is asked only of what was slow once: it takes longer than most inputs.
        let before = if again > 0 { worked() } else { None };
        let began = Instant::now();
        feed_once(name, input, target);
        let elapsed = began.elapsed();
        took = match before {
            Some(before) if elapsed <= LATE => {
                worked().map_or(elapsed, |now| now.saturating_sub(before))
            }
            _ => elapsed,
        };
        if took <= SLOW {
            return;
        }
    }
    panic!("{name}: takes {took:?} at {}", shown(input));
}

fn shown(input: &[u8]) -> String {
    let hex = hex::encode(input);
    format!(
        "{} bytes: {hex}\n{}",
        input.len(),
        String::from_utf8_lossy(input)
    )
}

/// A seed with one to eight changes.
fn mutated(seeds: &[&[u8]], random: &mut StdRng) -> Vec<u8> {
    let pick = |random: &mut StdRng| match seeds.is_empty() {
        true => &[][..],
        false => seeds[random.random_range(0..seeds.len())],
    };
    let mut input = pick(random).to_vec();
    for _ in 0..random.random_range(1..=8) {
        let other = pick(random);
        change(&mut input, other, random);
    }
    input.truncate(LONGEST);
    input
}

fn change(input: &mut Vec<u8>, other: &[u8], random: &mut StdRng) {
    let at = random.random_range(0..=input.len());
    let left = input.len() - at;
    match random.random_range(0..9) {
        // A bit.
        0 if left > 0 => input[at] ^= 1 << random.random_range(0..8),
        // A byte: anything, or what parsers look for.
        1 if left > 0 => {
            let telling = b"\0\x01\x7f\x80\xff\"'{}[]()<>\\/:;,.&#@-+=\n\r\t {%e";
            input[at] = match random.random_bool(0.5) {
                true => random.random(),
                false => telling[random.random_range(0..telling.len())],
            };
        }
        // A length that is none.
        2 if left > 0 => {
            let width = [1, 2, 4, 8, 10][random.random_range(0..5)].min(left);
            let fill = [0x00, 0xff, 0x7f, 0x80][random.random_range(0..4)];
            input[at..at + width].fill(fill);
        }
        // The end is missing.
        3 => input.truncate(at),
        // A part is missing.
        4 if left > 0 => {
            let end = at + random.random_range(1..=left.min(32));
            input.drain(at..end);
        }
        // Bytes too many.
        5 => {
            let more: Vec<u8> = (0..random.random_range(1..8))
                .map(|_| random.random())
                .collect();
            input.splice(at..at, more);
        }
        // The end of another one.
        6 => {
            let from = random.random_range(0..=other.len());
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        // A part of another one.
        7 if !other.is_empty() => {
            let from = random.random_range(0..other.len());
            let to = (from + random.random_range(1..64)).min(other.len());
            input.splice(at..at, other[from..to].iter().copied());
        }
        // The same again and again: nesting, long lists.
        8 if left > 0 => {
            let part = input[at..at + random.random_range(1..=left.min(12))].to_vec();
            let times = [2, 16, 300, 4_000][random.random_range(0..4)];
            let times = times.min(LONGEST / part.len());
            input.splice(at..at, part.repeat(times));
        }
        _ => input.push(random.random()),
    }
    input.truncate(LONGEST);
}

/// What this process held at most, in bytes; zero where the system does not say.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or_default() << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_follow_from_the_seed_and_differ() {
        let seeds: [&[u8]; 2] = [b"{\"a\": 1}", b"[1, 2]"];
        let inputs = |seed| {
            let mut random = StdRng::seed_from_u64(seed);
            (0..100)
                .map(|_| mutated(&seeds, &mut random))
                .collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        assert!(inputs(3).iter().all(|input| input.len() <= LONGEST));
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn a_panic_is_found() {
        run("a panic", &[b"abc"], |bytes| {
            assert!(bytes.first() != Some(&b'['), "out of range");
        });
    }

    #[test]
    fn the_doors_share_a_thousand() {
        let shares: u64 = DOORS.iter().map(|(_, share, _)| share).sum();
        assert_eq!(shares, 1_000);
        assert!(DOORS.iter().all(|(_, share, _)| *share > 0));
    }

    #[test]
    fn a_count_is_reached_whatever_the_time() {
        let least = 3 * BATCH;
        let read = Cell::new(0);
        let count = fed("a count", &[b"abc"], least, &|_| {
            read.set(read.get() + 1);
        });
        assert!(count >= least && read.get() == count + 1);
    }

    #[test]
    fn what_a_door_says_is_looked_at() {
        let said = Cell::new(0);
        let of = |input, text: &str| {
            let (name, said) = ("a door", &said);
            catch_unwind(AssertUnwindSafe(|| Sayings { name, input, said }.say(text))).is_ok()
        };
        assert!(of(b"x", "query: is required"));
        assert!(!of(b"x", "connect to amqp://localhost"));
        assert!(of(b"see amqp://b", "query: no such thing: amqp://b"));
        assert_eq!(said.get(), 3);
    }

    #[test]
    #[should_panic(expected = "takes")]
    fn what_is_slow_is_found() {
        feed_in_time("slow", b"x", &|_: &[u8]| {
            let (began, before) = (Instant::now(), worked().unwrap_or_default());
            let more = SLOW + Duration::from_millis(50);
            while worked().map_or(began.elapsed(), |now| now - before) < more {}
        });
    }
}
