//! The exact search: every row's product with the query, but for rows that are certain not to be among the
//! best (see [`crate::engine::fixed`]). With rows and query of length one that is the cosine. Pure.

use crate::engine::fixed::Probe;
use crate::engine::matrix::{Matrix, Rows};
use crate::engine::top::{Candidate, Top};

/// Rows that all queries of a pass look at before the next ones: they stay in the nearest cache.
const PORTION: usize = 32;
/// Stack of the threads that scan, in bytes: the process may say another default.
const STACK: usize = 2 << 20;

/// Scales to length one; `false` if there is no direction to keep.
pub fn normalise(vector: &mut [f32]) -> bool {
    let length = vector
        .iter()
        .map(|part| f64::from(*part) * f64::from(*part))
        .sum::<f64>()
        .sqrt();
    if length <= f64::MIN_POSITIVE {
        vector.fill(0.0);
        return false;
    }
    for part in vector {
        *part = (f64::from(*part) / length) as f32;
    }
    true
}

/// What belongs to the rows of a matrix, position by position.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    /// Numbers that break ties.
    pub numbers: &'a [u32],
    /// Groups of which one is returned once.
    pub groups: &'a [u32],
    /// Facet sets; 0 is none.
    pub facets: &'a [u32],
}

/// Which facet sets a search allows.
#[derive(Debug, Clone)]
pub enum Allowed {
    /// All.
    All,
    /// Those whose bit is set.
    Some(Bits),
}

/// A set of small numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bits(Vec<u64>);

impl Bits {
    /// Adds a number.
    pub fn insert(&mut self, number: u32) {
        let at = number as usize / 64;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << (number % 64);
    }

    /// Whether it is there.
    pub fn contains(&self, number: u32) -> bool {
        self.0
            .get(number as usize / 64)
            .is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Keeps what the other has too.
    pub fn intersect(&mut self, other: &Self) {
        self.0.truncate(other.0.len());
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine &= theirs;
        }
    }
}

/// One of the questions that a pass answers.
#[derive(Debug, Clone)]
pub struct Query {
    /// Where to look: of length one and of the matrix's dimension.
    pub vector: Vec<f32>,
    /// Most groups to return.
    pub limit: usize,
    /// Which rows count.
    pub allowed: Allowed,
}

/// Answers queries in one pass: reading the rows costs more than the sums, so several queries cost little
/// more than one. The matrix is searched in `parts` equal parts side by side, the first on this thread.
pub fn search(
    matrix: &Matrix,
    labels: Labels<'_>,
    queries: &[Query],
    parts: usize,
) -> Vec<Vec<Candidate>> {
    let portions: Vec<Rows<'_>> = matrix.portions(PORTION).collect();
    let probes: Vec<Probe> = queries.iter().map(|q| Probe::new(&q.vector)).collect();
    let share = portions.len().div_ceil(parts.max(1)).max(1);
    let over = |portions: &[Rows<'_>]| {
        let mut tops: Vec<Top> = queries.iter().map(|query| Top::new(query.limit)).collect();
        for rows in portions {
            for ((query, probe), top) in queries.iter().zip(&probes).zip(&mut tops) {
                scan(rows, labels, &query.allowed, probe, top);
            }
        }
        tops
    };
    let mut shares = portions.chunks(share);
    let Some(first) = shares.next() else {
        return queries.iter().map(|_| Vec::new()).collect();
    };
    let tops = std::thread::scope(|scope| {
        let others: Vec<_> = shares
            .map(|portions| {
                let thread = std::thread::Builder::new()
                    .name("vector-scan".to_owned())
                    .stack_size(STACK);
                (portions, thread.spawn_scoped(scope, || over(portions)))
            })
            .collect();
        let mut tops = over(first);
        for (portions, other) in others {
            // A thread that died, or could not be had, did nothing that cannot be done here.
            let found = other.ok().and_then(|thread| thread.join().ok());
            let found = found.unwrap_or_else(|| over(portions));
            for (top, found) in tops.iter_mut().zip(found) {
                top.merge(found);
            }
        }
        tops
    });
    tops.into_iter().map(Top::finish).collect()
}

fn scan(rows: &Rows<'_>, labels: Labels<'_>, allowed: &Allowed, probe: &Probe, top: &mut Top) {
    let mut least = top.least();
    for place in 0..rows.len() {
        let at = rows.start + place;
        if let Allowed::Some(bits) = allowed
            && !bits.contains(labels.facets[at])
        {
            continue;
        }
        if let Some(score) = rows.score(place, probe, least) {
            top.push(Candidate {
                score,
                number: labels.numbers[at],
                group: labels.groups[at],
                facet: labels.facets[at],
            });
            least = top.least();
        }
    }
}

#[cfg(test)]
mod tests;
