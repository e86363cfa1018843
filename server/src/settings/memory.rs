//! The one table of memory: which part of what the process may take each of its consumers has. A setting that is given
//! counts as it is; the others share what it leaves. Reads nothing and sets nothing but settings.
//!
//! Shares are by role, whatever the process hosts: all processes of a system on one machine take together what one
//! process with every service would.

use tg_settings::Filled;
use tg_storage::memory::Memory;

use super::{Given, Settings, Source};
use crate::compose::SERVICES;

/// What all shares are together, in hundredths. The rest is for programs and threads, pages of stores, what is on its way.
const ALL: u64 = 90;

/// A consumer of memory.
pub(super) struct Share {
    /// The setting that says in MiB how much it has.
    pub(super) key: &'static str,
    /// Hundredths of the whole.
    percent: u64,
    /// MiB that are enough for it.
    most: u64,
    /// Processes that have it, each an equal part.
    processes: u64,
    of: fn(&Settings) -> u64,
    set: fn(&mut Settings, u64),
}

macro_rules! shares {
    ($($key:literal $($field:ident).+: $percent:literal, $most:expr, $processes:expr;)+) => {
        [$(Share {
            key: $key,
            percent: $percent,
            most: $most,
            processes: $processes,
            of: |settings| settings.$($field).+ as u64,
            set: |settings, mb| settings.$($field).+ = mb as _,
        }),+]
    };
}

/// Processes that hold much of questions at once: one that waits for a model is in progress where it is made, and where the
/// model is asked.
const QUESTIONED: u64 = 2;

/// Every consumer. What more would be of no use to it is its bound: the rest of its share stays free.
pub(super) const SHARES: [Share; 12] = shares! {
    "graph.memory_mb" graph.memory_mb: 46, u64::MAX, 1;
    "graph.queries_memory_mb" graph.queries_memory_mb: 8, 2_048, 1;
    "vectors.memory_mb" vectors.memory_mb: 9, 4_096, 1;
    "gateway.parsing_mb" gateway.parsing_mb: 4, 1_024, 1;
    "gateway.receiving_mb" gateway.receiving_mb: 4, 1_024, 1;
    "gateway.sending_mb" gateway.sending_mb: 1, 256, 1;
    "ingest.memory_mb" ingest.memory_mb: 9, 6_144, 1;
    "embeddings.cache_mb" embeddings.cache_mb: 1, 64, 1;
    "bus_memory_mb" bus_memory_mb: 1, 128, 1;
    "exports_mb" exports_mb: 1, 256, 1;
    "answers_mb" answers_mb: 2, 32, SERVICES.len() as u64;
    "questions_mb" questions_mb: 4, 1_024, QUESTIONED;
};

/// The whole.
pub(super) const WHOLE: &str = "memory_mb";

const _: () = {
    let (mut sum, mut at) = (0, 0);
    while at < SHARES.len() {
        sum += SHARES[at].percent;
        at += 1;
    }
    assert!(sum <= ALL);
};

impl Share {
    /// The share in words, as a default.
    pub(super) fn usual(&self) -> String {
        let part = format!("{} % of `{WHOLE}`", self.percent);
        match (self.processes, self.most) {
            (1, u64::MAX) => part,
            (1, most) => format!("{part}, at most {most}"),
            (processes, most) => {
                let which = match processes {
                    2 => "half".to_owned(),
                    more @ (8 | 11 | 18) => format!("an {more}th"),
                    more => format!("a {more}th"),
                };
                format!("{which} of {part}, at most {most}")
            }
        }
    }

    /// Whether nobody says how much it is.
    fn is_open(&self, settings: &Settings, given: &Given) -> bool {
        // Of some 0 has always meant that; of others it means none.
        let zero = (self.of)(settings) == 0 && (self.of)(&Settings::default()) == 0;
        given.source(self.key) == Source::Default || zero
    }
}

/// MiB of each share where the process may take so many, and some are given.
fn divide(whole: u64, given: [Option<u64>; SHARES.len()]) -> [u64; SHARES.len()] {
    let shares = || SHARES.iter().zip(given);
    let taken = shares().fold(0_u64, |sum, (share, given)| {
        sum.saturating_add(given.unwrap_or(0).saturating_mul(share.processes))
    });
    let left = (whole / 100 * ALL).saturating_sub(taken);
    let open = shares().filter(|(_, given)| given.is_none());
    let wanted: u64 = open.map(|(share, _)| share.percent).sum();
    let mut parts = [0; SHARES.len()];
    for (part, (share, given)) in parts.iter_mut().zip(shares()) {
        // Where less is left than the shares of those are that nobody says, each has its part of that.
        let own = (whole / 100 * share.percent).min(left / wanted.max(1) * share.percent);
        *part = given.unwrap_or((own / share.processes).clamp(1, share.most));
    }
    parts
}

/// Sets the shares that nobody says. `machine`: what the process may take, if it is known; a given whole only makes it
/// less. Without either every consumer keeps its default.
///
/// Returns what was filled in, for the listing.
pub(super) fn share_out(
    settings: &mut Settings,
    given: &Given,
    machine: Option<Memory>,
) -> Vec<Filled> {
    let told = Some(settings.memory_mb).filter(|mb| *mb > 0);
    let machine = machine.map(|machine| (machine.bytes >> 20, machine.by));
    let (whole, by) = match (told, machine) {
        (Some(told), Some((there, _))) if told <= there => (told, None),
        (Some(told), None) => (told, None),
        (_, Some((there, by))) => (there, Some(by)),
        (None, None) => return Vec::new(),
    };
    settings.memory_mb = whole;
    let filled = |name, value: u64, by| Filled {
        name,
        value: value.to_string(),
        by: Some(by),
    };
    let mut all: Vec<Filled> = by.map(|by| filled(WHOLE, whole, by)).into_iter().collect();
    let open = SHARES
        .each_ref()
        .map(|share| share.is_open(settings, given));
    let own = std::array::from_fn(|at| (!open[at]).then(|| (SHARES[at].of)(settings)));
    for ((share, part), open) in SHARES.iter().zip(divide(whole, own)).zip(open) {
        if open {
            (share.set)(settings, part);
            all.push(filled(share.key, part, WHOLE));
        }
    }
    all
}

/// What is more than there is, in words, if settings give so much away.
pub fn overdrawn(settings: &Settings) -> Option<String> {
    let whole = settings.memory_mb;
    let sum = SHARES.iter().fold(0_u64, |sum, share| {
        sum.saturating_add((share.of)(settings).saturating_mul(share.processes))
    });
    (whole > 0 && sum > whole).then(|| {
        format!(
            "the settings of memory give {sum} MiB away, and the process may take {whole} MiB \
             (`threadgraph settings` shows both)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that a share is, over the processes that have it.
    fn sum(parts: [u64; SHARES.len()]) -> u64 {
        let all = SHARES.iter().zip(parts);
        all.map(|(share, part)| share.processes * part).sum()
    }

    #[test]
    fn shares_are_never_more_than_the_whole_whichever_settings_are_given() {
        // From half a gigabyte to a petabyte.
        for whole in [512_u64, 1_000, 2_048, 4_095, 24_103, 262_144, 1 << 30] {
            let own = divide(whole, [None; SHARES.len()]);
            assert!(sum(own) <= whole * ALL / 100, "{whole}: {own:?}");
            assert!(own.iter().all(|part| *part > 0), "{whole}: {own:?}");
            for some in 0_u32..1 << SHARES.len() {
                // As much as the share, half as much again, and little.
                for (times, parts) in [(2, 2), (3, 2), (1, 9)] {
                    let mut given = [None; SHARES.len()];
                    for (at, part) in given.iter_mut().enumerate() {
                        *part = (some >> at & 1 == 1).then_some((own[at] * times / parts).max(1));
                    }
                    let said: u64 = given.iter().zip(&SHARES).fold(0, |sum, (part, share)| {
                        sum + part.unwrap_or(0) * share.processes
                    });
                    let parts = divide(whole, given);
                    // What was given away beyond the whole is theirs who said so; the others have a MiB at least.
                    let least = (SHARES.len() + SERVICES.len()) as u64;
                    let most = (whole * ALL / 100).max(said) + least;
                    assert!(most <= whole || said + least > whole * ALL / 100);
                    assert!(sum(parts) <= most, "{whole} {given:?}: {parts:?}");
                    for (given, part) in given.iter().zip(parts) {
                        assert!(
                            given.is_none_or(|given| given == part),
                            "what is given counts"
                        );
                    }
                }
            }
        }
    }

    fn settings(pairs: &[(&str, &str)]) -> (Settings, Given) {
        let own = |(key, text): &(&str, &str)| ((*key).to_owned(), (*text).to_owned());
        let env = pairs.iter().map(own).collect();
        let given = super::super::sources::collect(&Default::default(), env).unwrap();
        let (settings, faults) = tg_settings::read(given.texts());
        assert_eq!(faults, []);
        (settings, given)
    }

    fn shared(pairs: &[(&str, &str)], machine: Option<u64>) -> (Settings, Vec<Filled>) {
        let (mut settings, given) = settings(pairs);
        let machine = machine.map(|bytes| Memory {
            bytes,
            by: "machine",
        });
        let filled = share_out(&mut settings, &given, machine);
        (settings, filled)
    }

    #[test]
    fn what_is_given_counts_and_the_others_share_the_rest() {
        let (all, filled) = shared(&[], Some(10_000 << 20));
        assert_eq!((all.memory_mb, all.graph.memory_mb), (10_000, 4_600));
        assert_eq!((all.vectors.memory_mb, all.gateway.parsing_mb), (900, 400));
        assert_eq!((all.answers_mb, all.embeddings.cache_mb), (10, 64));
        assert_eq!(filled.len(), SHARES.len() + 1);
        assert_eq!(filled[0].by, Some("machine"));
        assert!(overdrawn(&all).is_none());

        let given = [
            ("THREADGRAPH_GRAPH__MEMORY_MB", "6000"),
            ("THREADGRAPH_VECTORS__MEMORY_MB", "0"),
            ("THREADGRAPH_EMBEDDINGS__CACHE_MB", "0"),
        ];
        let (some, filled) = shared(&given, Some(10_000 << 20));
        assert_eq!((some.graph.memory_mb, some.embeddings.cache_mb), (6_000, 0));
        assert!(
            (500..900).contains(&some.vectors.memory_mb),
            "{}",
            some.vectors.memory_mb
        );
        assert_eq!(filled.len(), SHARES.len() - 1);
        assert!(overdrawn(&some).is_none());

        let (most, _) = shared(
            &[("THREADGRAPH_GRAPH__MEMORY_MB", "11000")],
            Some(10_000 << 20),
        );
        assert!(overdrawn(&most).unwrap().contains("may take 10000 MiB"));
    }

    #[test]
    fn the_whole_is_the_least_of_what_is_given_and_what_there_is() {
        let with = |mb: &str, machine| shared(&[("THREADGRAPH_MEMORY_MB", mb)], machine).0;
        assert_eq!(with("4000", Some(10_000 << 20)).graph.memory_mb, 1_840);
        assert_eq!(with("40000", Some(10_000 << 20)).memory_mb, 10_000);
        assert_eq!(with("4000", None).graph.memory_mb, 1_840);
        let (unknown, filled) = shared(&[], None);
        assert_eq!((unknown, filled), (Settings::default(), vec![]));
    }
}
