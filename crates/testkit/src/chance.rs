//! Numbers that differ with each run of a test, and follow from a seed that the test prints.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The variable that gives the seed of an earlier run.
const SEED: &str = "TG_SEED";

/// Draws numbers.
pub struct Chance(StdRng);

impl Chance {
    /// From a new seed, or from that of an earlier run. Prints it, so that whoever reads a failure can draw the same again.
    pub fn of_this_run() -> Self {
        let given = std::env::var(SEED).ok();
        let given = given.map(|text| text.parse().expect("a seed is a number"));
        let seed: u64 = given.unwrap_or_else(rand::random);
        println!("{SEED}={seed}");
        Self(StdRng::seed_from_u64(seed))
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }
}
