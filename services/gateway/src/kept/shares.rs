//! Workspaces share what a gateway keeps. When it is full, the workspace that holds the most makes room, and one that holds no more
//! than its share loses nothing to another one. In that workspace the same holds between its users.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What each workspace, or each user of one, holds of a resource, as running sums: each part that comes is held to them.
#[derive(Default)]
pub(crate) struct Held {
    all: usize,
    /// Only of workspaces that hold something.
    by_owner: BTreeMap<Arc<str>, usize>,
}

/// The workspace that makes room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Victim {
    pub(crate) owner: Arc<str>,
    /// By how much it exceeds its share.
    pub(crate) excess: usize,
}

impl Held {
    pub(crate) fn all(&self) -> usize {
        self.all
    }

    pub(crate) fn of(&self, owner: &str) -> usize {
        self.by_owner.get(owner).copied().unwrap_or_default()
    }

    pub(crate) fn more(&mut self, owner: &Arc<str>, units: usize) {
        if units > 0 {
            self.all += units;
            *self.by_owner.entry(owner.clone()).or_default() += units;
        }
    }

    pub(crate) fn less(&mut self, owner: &str, units: usize) {
        let Some(held) = self.by_owner.get_mut(owner) else {
            return;
        };
        let units = units.min(*held);
        self.all -= units;
        *held -= units;
        if *held == 0 {
            self.by_owner.remove(owner);
        }
    }

    /// An equal part of `most` for each workspace that holds something.
    fn share(&self, most: usize) -> usize {
        most / self.by_owner.len().max(1)
    }

    /// The workspace that makes room when all hold more than `most`; what `taker` took is counted already. `taker` itself if it holds
    /// more than its share, else the workspace that holds the most: all hold more than `most`, so that one exceeds its share.
    pub(crate) fn victim(&self, taker: &Arc<str>, most: usize) -> Victim {
        let share = self.share(most);
        let own = self.of(taker);
        let largest = self.by_owner.iter().max_by_key(|(_, held)| **held);
        let (owner, held) = match largest {
            Some((owner, held)) if own <= share && *held > share => (owner, *held),
            _ => (taker, own),
        };
        Victim {
            owner: owner.clone(),
            excess: held.saturating_sub(share),
        }
    }

    /// The user of one workspace who makes room there when it is to hold so much less; `taker`: the one who took, if that is one of
    /// its users.
    pub(crate) fn user_victim(&self, taker: Option<&Arc<str>>, less: usize) -> Victim {
        let nobody: Arc<str> = Arc::from("");
        self.victim(taker.unwrap_or(&nobody), self.all.saturating_sub(less))
    }
}

#[cfg(test)]
mod tests {
    use tg_testkit::chance::Chance;

    use super::*;

    fn held(all: &[(&str, usize)]) -> Held {
        let mut held = Held::default();
        for (owner, units) in all {
            held.more(&(*owner).into(), *units);
        }
        held
    }

    #[test]
    fn the_workspace_that_holds_the_most_makes_room_for_one_within_its_share() {
        let held = held(&[("a", 60), ("b", 30), ("c", 11)]);
        let victim = |taker: &str| held.victim(&taker.into(), 100);
        let largest = Victim {
            owner: "a".into(),
            excess: 27,
        };
        assert_eq!(victim("c"), largest);
        assert_eq!(victim("b"), largest);
        assert_eq!(victim("a"), largest);
    }

    #[test]
    fn a_workspace_beyond_its_share_makes_room_itself() {
        let held = held(&[("a", 60), ("b", 34), ("c", 7)]);
        let victim = held.victim(&"b".into(), 100);
        assert_eq!((&*victim.owner, victim.excess), ("b", 1));
    }

    #[test]
    fn of_a_workspace_the_user_who_holds_the_most_makes_room() {
        let held = held(&[("ann", 60), ("bob", 30), ("eve", 10)]);
        let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
        for taker in [None, Some(&bob), Some(&ann)] {
            let victim = held.user_victim(taker, 10);
            assert_eq!((&*victim.owner, victim.excess), ("ann", 30));
        }
        let victim = held.user_victim(Some(&bob), 16);
        assert_eq!((&*victim.owner, victim.excess), ("bob", 2));
    }

    #[test]
    fn whoever_holds_nothing_any_more_has_no_share() {
        let mut held = held(&[("a", 6), ("b", 0), ("c", 2)]);
        assert_eq!((held.all(), held.share(10)), (8, 5));
        held.less("c", 9);
        held.less("c", 1);
        assert_eq!((held.all(), held.of("c"), held.share(10)), (6, 0, 10));
    }

    #[test]
    fn a_workspace_within_its_share_never_makes_room_for_another() {
        const MOST: usize = 1_000;
        let mut chance = Chance::of_this_run();
        for _ in 0..200 {
            let owners: Vec<Arc<str>> = (0..=chance.below(20))
                .map(|owner| owner.to_string().into())
                .collect();
            let mut held = Held::default();
            for _ in 0..500 {
                let taker = &owners[chance.below(owners.len())];
                held.more(taker, chance.below(MOST / 2));
                while held.all() > MOST {
                    let share = held.share(MOST);
                    let victim = held.victim(taker, MOST);
                    assert!(victim.excess > 0 && held.of(&victim.owner) == share + victim.excess);
                    assert!(victim.owner == *taker || held.of(taker) <= share);
                    held.less(&victim.owner, 1 + chance.below(victim.excess));
                }
            }
        }
    }
}
