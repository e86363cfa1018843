//! The best of what a scan meets: at most `limit` distinct groups, each with its best score, in bounded
//! memory. Ties are broken by the lower number, so the outcome does not depend on the order of the scan.

use std::cmp::Ordering;
use std::collections::HashSet;

/// Least candidates kept between two cuts.
const SLACK: usize = 1_024;

/// A scored row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Nearness; higher is better.
    pub score: f32,
    /// Number of the row; lower wins a tie.
    pub number: u32,
    /// What it belongs to.
    pub group: u32,
    /// Where its facets are.
    pub facet: u32,
}

impl Candidate {
    /// Better first.
    fn order(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(self.number.cmp(&other.number))
    }
}

/// Collects candidates.
#[derive(Debug)]
pub struct Top {
    limit: usize,
    kept: Vec<Candidate>,
    /// The worst of a full set: who is not better cannot get in any more.
    floor: Option<Candidate>,
}

impl Top {
    /// Keeps the best of `limit` groups.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            kept: Vec::new(),
            floor: None,
        }
    }

    /// The score below which nothing gets in.
    pub fn least(&self) -> f32 {
        self.floor.map_or(f32::NEG_INFINITY, |floor| floor.score)
    }

    /// Offers a candidate.
    pub fn push(&mut self, candidate: Candidate) {
        let worse = |floor: Candidate| candidate.order(&floor) == Ordering::Greater;
        if self.floor.is_some_and(worse) {
            return;
        }
        self.kept.push(candidate);
        if self.kept.len() >= SLACK.max(self.limit.saturating_mul(4)) {
            self.cut();
        }
    }

    /// Takes what another collector kept.
    pub fn merge(&mut self, other: Self) {
        other.kept.into_iter().for_each(|one| self.push(one));
    }

    /// The best, best first.
    pub fn finish(mut self) -> Vec<Candidate> {
        self.cut();
        self.kept
    }

    fn cut(&mut self) {
        self.kept.sort_unstable_by(Candidate::order);
        let mut seen = HashSet::with_capacity(self.limit.min(self.kept.len()));
        let limit = self.limit;
        self.kept
            .retain(|one| seen.len() < limit && seen.insert(one.group));
        if self.kept.len() == self.limit {
            self.floor = self.kept.last().copied();
        }
    }
}
