//! Who is next among those that could answer.

/// By what the next one is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// The lowest priority number; the next one where that fails.
    #[default]
    Failover,
    /// Each in turn.
    RoundRobin,
    /// The one with the most room.
    LeastLoaded,
}

impl Strategy {
    /// By its name; `None`: there is none of that name.
    pub fn read(name: &str) -> Option<Self> {
        match name.trim().to_lowercase().as_str() {
            "" | "failover" => Some(Self::Failover),
            "round-robin" => Some(Self::RoundRobin),
            "least-loaded" => Some(Self::LeastLoaded),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Failover => "failover",
            Self::RoundRobin => "round-robin",
            Self::LeastLoaded => "least-loaded",
        }
    }
}

/// One that could answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its place in the settings.
    pub at: usize,
    /// Lower is preferred.
    pub priority: u32,
    /// Questions that it answers now.
    pub active: usize,
    /// Most that it answers at once.
    pub most: usize,
    /// How often it was tried for this question.
    pub tried: u32,
}

impl Candidate {
    /// Whether it is less loaded than another, without a division.
    fn load(&self, other: &Self) -> std::cmp::Ordering {
        (self.active * other.most.max(1)).cmp(&(other.active * self.most.max(1)))
    }
}

/// The place of the next one: of those that were tried least, by the strategy; ties by the order of the settings. `turn`
/// is one more each time.
pub fn choose(strategy: Strategy, candidates: &[Candidate], turn: usize) -> Option<usize> {
    let least = candidates.iter().map(|one| one.tried).min()?;
    let mut left = candidates.iter().filter(|one| one.tried == least);
    let next = match strategy {
        Strategy::Failover => left.min_by_key(|one| (one.priority, one.at)),
        Strategy::LeastLoaded => left.min_by(|one, other| {
            let usual = || (one.priority, one.at).cmp(&(other.priority, other.at));
            one.load(other).then_with(usual)
        }),
        Strategy::RoundRobin => {
            let start = turn % candidates.len();
            let turned = candidates[start..].iter().chain(&candidates[..start]);
            turned
                .into_iter()
                .find(|one| one.tried == least)
                .or(left.next())
        }
    };
    next.map(|one| one.at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(at: usize, priority: u32, active: usize, tried: u32) -> Candidate {
        Candidate {
            at,
            priority,
            active,
            most: 4,
            tried,
        }
    }

    /// 151: who is preferred is tried first, and again when all were.
    #[test]
    fn failover_goes_by_priority_and_starts_again() {
        let next = |tried: [u32; 3]| {
            let all = [
                one(0, 2, 0, tried[0]),
                one(1, 1, 3, tried[1]),
                one(2, 1, 0, tried[2]),
            ];
            choose(Strategy::Failover, &all, 7)
        };
        assert_eq!(next([0, 0, 0]), Some(1));
        assert_eq!(next([0, 1, 0]), Some(2));
        assert_eq!(next([0, 1, 1]), Some(0));
        assert_eq!(next([1, 1, 1]), Some(1));
        assert_eq!(choose(Strategy::Failover, &[], 0), None);
    }

    /// 153
    #[test]
    fn round_robin_alternates_and_least_loaded_finds_the_idle_one() {
        let all = [one(0, 1, 2, 0), one(1, 9, 0, 0)];
        let turns: Vec<_> = (0..4)
            .map(|turn| choose(Strategy::RoundRobin, &all, turn))
            .collect();
        assert_eq!(turns, [Some(0), Some(1), Some(0), Some(1)]);
        assert_eq!(choose(Strategy::LeastLoaded, &all, 0), Some(1));
        let busy = [
            one(0, 1, 2, 0),
            Candidate {
                most: 20,
                ..one(1, 9, 3, 0)
            },
        ];
        assert_eq!(choose(Strategy::LeastLoaded, &busy, 0), Some(1));
        let even = [one(0, 2, 1, 0), one(1, 1, 1, 0)];
        assert_eq!(choose(Strategy::LeastLoaded, &even, 0), Some(1));
        for name in ["failover", "round-robin", "least-loaded"] {
            assert_eq!(Strategy::read(name).map(Strategy::name), Some(name));
        }
        assert_eq!(Strategy::read("fastest"), None);
    }
}
