//! What whoever starts the service decides.

use std::path::PathBuf;

use crate::decode::Limits;

/// A child that has so much memory takes most documents apart; there are more at once rather than that one has more.
const COMFORT: u64 = 768 << 20;

tg_settings::options! {
    /// What is set of it.
    pub struct Settings {
        /// Memory of all document-parsing worker processes, in MiB. There are four where that leaves 768 MiB to each,
        /// else fewer, and two at least. The address space of each is its part and 1,280 MiB, which are mostly only
        /// mapped, and 1,536 MiB at most.
        memory_mb: u64 = 6_144, Whole(64..=1 << 20);
    }
}

/// How documents are taken apart.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program that runs as the child: [`crate::decode::run`] behind `args` and the format's name.
    pub program: PathBuf,
    /// Arguments before the format's name, which is followed by the limits.
    pub args: Vec<String>,
    /// Bounds of one document.
    pub limits: Limits,
    /// Most children at once that one workspace may have.
    pub children: usize,
    /// Children besides, for workspaces that have none: one that reads slow documents does not stop the others.
    pub kept: usize,
}

impl Options {
    /// This program again, with a hidden subcommand.
    pub fn of_this_program(subcommand: &str) -> Self {
        Self {
            program: this_program(),
            args: vec![subcommand.to_owned()],
            limits: Limits::default(),
            children: 2,
            kept: 2,
        }
    }

    /// With so much memory for all children; so many bytes of the address space of each are only mapped.
    pub fn within(mut self, settings: &Settings, mapped: u64) -> Self {
        let all = settings.memory_mb << 20;
        let places = (all / COMFORT).clamp(2, (self.children + self.kept).max(2) as u64);
        self.kept = (places / 2) as usize;
        self.children = places as usize - self.kept;
        self.limits.memory_bytes = self.limits.memory_bytes.min(all / places + mapped);
        self
    }
}

/// On Linux by the name that stays right when the file was replaced.
fn this_program() -> PathBuf {
    let itself = PathBuf::from("/proc/self/exe");
    if itself.exists() {
        return itself;
    }
    std::env::current_exe().unwrap_or(itself)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_share_the_memory_and_are_fewer_before_each_has_little() {
        for (memory_mb, places, each) in [
            (6_144, (2, 2), 1_536),
            (100_000, (2, 2), 1_536),
            (3_200, (2, 2), 1_536),
            (2_400, (2, 1), 1_536),
            (1_600, (1, 1), 1_536),
            (400, (1, 1), 1_480),
        ] {
            let options = Options::of_this_program("").within(&Settings { memory_mb }, 1_280 << 20);
            assert_eq!((options.children, options.kept), places, "{memory_mb}");
            assert_eq!(options.limits.memory_bytes >> 20, each, "{memory_mb}");
        }
    }
}
