//! How slow the machine is at this moment: what a test allows of time is multiplied by it where the product promises that
//! time on a machine as fast as the one that the promise was measured on.
//!
//! It is measured by work that has nothing to do with the product, so that a product that became slower gains nothing by it.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::Instant;

/// What the work took at best of a few hundred times, built for debugging, on the machine that the promises were measured on:
/// two virtual processors of an AMD EPYC.
const REFERENCE: Duration = Duration::from_micros(20_600);
/// The fastest of so many counts: what else a machine does only adds.
const ROUNDS: usize = 15;
/// Numbers that are written out and sorted, and how often: few enough to stay in the caches of one processor.
const NUMBERS: u64 = 10_000;
const TIMES: u64 = 4;
/// A measurement of something promised is taken so often at most.
const MEASUREMENTS: usize = 3;

/// The machine as it is now.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    slower: f64,
}

impl Machine {
    /// Measures it, for about a third of a second.
    pub fn measured() -> Self {
        let slower = fastest(ROUNDS).as_secs_f64() / REFERENCE.as_secs_f64();
        Self {
            slower: slower.max(1.0),
        }
    }

    /// How many times slower than the machine of the promises; at least 1.
    pub fn slower(self) -> f64 {
        self.slower
    }

    /// What a promise comes to here.
    pub fn allows(self, promise: Duration) -> Duration {
        promise.mul_f64(self.slower)
    }
}

/// Holds a measurement against what is promised: the best of up to three, as what else a machine does only adds. Each is
/// printed with what it was allowed.
///
/// # Errors
/// None was within what is allowed here, or a measurement failed.
pub async fn keeps(
    what: &str,
    promise: Duration,
    mut measure: impl AsyncFnMut() -> Result<Duration>,
) -> Result<()> {
    let mut all = Vec::new();
    for _ in 0..MEASUREMENTS {
        let machine = Machine::measured();
        let (took, allowed) = (measure().await?, machine.allows(promise));
        let slower = machine.slower();
        println!("{what}: took {took:.3?} of {allowed:.3?} allowed, machine x{slower:.1}");
        if took <= allowed {
            return Ok(());
        }
        all.push((took, allowed));
    }
    ensure!(
        all.is_empty(),
        "{what}: each time more than allowed: {all:?}"
    );
    Ok(())
}

/// What a measurement says of where it was made.
pub fn described() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = line_of("/proc/cpuinfo", "model name");
    let memory = line_of("/proc/meminfo", "MemTotal");
    format!("{cores} cores, {cpu}, memory {memory}")
}

fn line_of(file: &str, name: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':'));
    value.map_or("?".to_owned(), |(_, value)| value.trim().to_owned())
}

/// What else the machine does: the averages of one, five and fifteen minutes.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Time that this thread has had a processor; nothing where the system does not say.
pub(crate) fn worked() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = stat.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// Time that a processor works for something on the calling thread, whoever else has it meanwhile.
pub fn worked_for(work: impl FnOnce()) -> Duration {
    let (began, before) = (Instant::now(), worked());
    work();
    match (before, worked()) {
        (Some(before), Some(now)) => now.saturating_sub(before),
        _ => began.elapsed(),
    }
}

/// The shortest time of so many.
fn fastest(rounds: usize) -> Duration {
    let took = |_| {
        let began = Instant::now();
        for _ in 0..TIMES {
            black_box(work(black_box(NUMBERS)));
        }
        began.elapsed()
    };
    (0..rounds).map(took).min().unwrap_or(REFERENCE)
}

/// What programs mostly do: small pieces of memory, numbers, texts, comparisons.
fn work(numbers: u64) -> u64 {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005);
        state = state.wrapping_add(1_442_695_040_888_963_407);
        state
    };
    let mut words: Vec<String> = (0..numbers).map(|_| next().to_string()).collect();
    words.sort_unstable();
    let sum = |sum: u64, byte: u8| sum.wrapping_mul(31).wrapping_add(u64::from(byte));
    words.iter().flat_map(|word| word.bytes()).fold(0, sum)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_machine_is_never_faster_than_the_promises() {
        let machine = Machine::measured();
        println!("machine x{:.3}, {:?}", machine.slower(), fastest(100));
        assert!(machine.slower() >= 1.0);
        let second = Duration::from_secs(1);
        assert!(machine.allows(second) >= second);
    }

    #[test]
    fn it_is_described_in_one_line() {
        let (machine, load) = (described(), load());
        assert!(
            machine.contains(" cores, ") && !machine.contains('\n'),
            "{machine}"
        );
        assert!(!machine.contains('?'), "{machine}");
        assert_eq!(load.split(' ').count(), 3, "{load}");
    }

    #[tokio::test]
    async fn the_best_of_three_counts_and_what_fails_is_told() {
        let (second, count) = (Duration::from_secs(1), Cell::new(0));
        let takes = async |takes: [u32; 3]| {
            count.set(0);
            let next = async || {
                let nth = count.replace(count.get() + 1);
                Ok(second * takes[nth])
            };
            keeps("it", second, next).await
        };
        assert!(takes([0, 9_999, 9_999]).await.is_ok());
        assert_eq!(count.get(), 1);
        assert!(takes([9_999, 9_999, 1]).await.is_ok());
        let told = takes([9_999, 9_999, 9_999]).await.unwrap_err().to_string();
        assert!(told.starts_with("it: each time more"), "{told}");
        assert_eq!(count.get(), 3);
        let failed = keeps("it", second, async || anyhow::bail!("away")).await;
        assert_eq!(failed.unwrap_err().to_string(), "away");
    }
}
