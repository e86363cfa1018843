//! What is timed, and the times of it: pure.

use std::cmp::Ordering;
use std::time::Duration;

use super::body::Request;
use super::doors::{Effect, Trial};
use super::probe::Answer;
use super::verdict::{bound, gap, is_told};

/// Times of pairs of requests: about what is there, and about what is not, one right after the other.
#[derive(Debug, Default)]
pub struct Times(Vec<(Duration, Duration)>);

impl Times {
    /// Adds those of a pair.
    pub fn push(&mut self, pair: (Duration, Duration)) {
        self.0.push(pair);
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The middle of the differences within pairs: what a machine does meanwhile meets both of one.
    pub fn median(&self) -> Duration {
        let signed = |one: &(Duration, Duration)| {
            let (there, never) = (one.0.as_nanos() as i128, one.1.as_nanos() as i128);
            there - never
        };
        let mut all: Vec<i128> = self.0.iter().map(signed).collect();
        all.sort_unstable();
        let middle = all.get(all.len() / 2).copied().unwrap_or_default();
        Duration::from_nanos(u64::try_from(middle.unsigned_abs()).unwrap_or(u64::MAX))
    }

    /// What the middle of the differences may be before it counts as one that tells.
    pub fn bound(&self) -> Duration {
        let (mut there, mut never) = self.series();
        bound(&mut there, &mut never)
    }

    fn series(&self) -> (Vec<Duration>, Vec<Duration>) {
        self.0.iter().copied().unzip()
    }

    /// See [`gap`].
    pub fn gap(&self) -> Duration {
        let (mut there, mut never) = self.series();
        gap(&mut there, &mut never)
    }

    /// Which takes longer, where times tell it: their medians are apart, and three of four pairs say the same. What else a
    /// machine does meets either of a pair as often.
    pub fn told(&self) -> Option<Ordering> {
        let (mut there, mut never) = self.series();
        [Ordering::Less, Ordering::Greater]
            .into_iter()
            .find(|way| {
                let same = self
                    .0
                    .iter()
                    .filter(|(there, never)| there.cmp(never) == *way);
                same.count() * 4 >= self.0.len() * 3
            })
            .filter(|_| is_told(&mut there, &mut never))
    }
}

/// Whether the time of a pair may tell what is there: the other workspace is named, or something in it is by an id. What is
/// written into one's own workspace under a name of the other looks nothing up.
pub fn is_timed(trial: &Trial, named: bool, pair: (&Request, &Request), there: &Answer) -> bool {
    let is_done = trial.effect == Effect::Write && there.status < 400 && there.error.is_none();
    named || (pair.0 != pair.1 && !is_done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::iam::isolation::body::{Things, request};
    use crate::commands::iam::isolation::doors::{Gate, Way};

    fn trial(service: &str, operation: &str, effect: Effect) -> Trial {
        Trial {
            door: String::new(),
            operation: operation.to_owned(),
            effect,
            gate: Gate::Needs("any".into()),
            way: Way::Service(service.into(), operation.into()),
            example: serde_json::Map::new(),
        }
    }

    fn things(name: &str) -> Things {
        Things {
            workspace: format!("w-{name}"),
            name: format!("n-{name}"),
            user: format!("u-{name}"),
            username: format!("m-{name}"),
            key: format!("k-{name}"),
            upload: format!("l-{name}"),
            run: format!("r-{name}"),
            thread: format!("t-{name}"),
        }
    }

    #[test]
    fn a_difference_shows_in_most_pairs_and_one_way() {
        let of = |pairs: &[(u64, u64)]| {
            let mut times = Times::default();
            for (there, never) in pairs {
                times.push((Duration::from_millis(*there), Duration::from_millis(*never)));
            }
            times.told()
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(9, 1)]), Some(Ordering::Greater));
        assert_eq!(of(&[(1, 9), (1, 8), (50, 9), (1, 9)]), Some(Ordering::Less));
        // Medians that are far apart, of pairs that do not agree.
        assert_eq!(of(&[(9, 1), (9, 30), (1, 1), (9, 1), (1, 2)]), None);
        assert_eq!(of(&[(2, 1), (2, 1), (2, 1)]), None, "too near");
    }

    #[test]
    fn the_median_is_of_the_differences_within_pairs() {
        let mut times = Times::default();
        assert_eq!((times.len(), times.median()), (0, Duration::ZERO));
        for (there, never) in [(10, 1), (101, 100), (1, 2), (51, 50), (8, 9)] {
            times.push((Duration::from_millis(there), Duration::from_millis(never)));
        }
        assert_eq!((times.len(), times.median()), (5, Duration::from_millis(1)));
        // Half of the lesser median (9), or 2 ms where that is less.
        assert_eq!(times.bound(), Duration::from_micros(4_500));
        let mut quick = Times::default();
        quick.push((Duration::from_millis(1), Duration::from_millis(1)));
        assert_eq!(quick.bound(), Duration::from_millis(2));
    }

    #[test]
    fn what_is_looked_up_by_an_id_is_timed_too() {
        let said = |status, text: &str| Answer::of_rest(status, text.to_owned(), Duration::ZERO);
        let done = said(200, "{}");
        let timed = |trial: &Trial, named, answer: &Answer| {
            let of = |name| request(trial, &things(name), named, "f");
            is_timed(trial, named, (&of("b"), &of("none")), answer)
        };
        let get = trial("iam", "get-user", Effect::Read);
        assert!(timed(&get, false, &done) && timed(&get, true, &done));
        let page = Trial {
            way: Way::Page("/".to_owned()),
            ..trial("", "", Effect::Read)
        };
        assert!(!timed(&page, false, &done), "names nothing");
        let update = trial("iam", "update-user", Effect::Write);
        assert!(!timed(&update, false, &done), "it was done");
        for refused in [said(404, ""), said(200, r#"{"error": {"message": "no"}}"#)] {
            assert!(timed(&update, false, &refused));
        }
    }
}
