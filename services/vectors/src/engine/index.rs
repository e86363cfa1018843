//! A space in memory: its matrix of directions with what belongs to each row. The store's rows are the
//! truth; this can be thrown away and loaded again at any time.

use std::collections::HashMap;

use crate::engine::matrix::Matrix;
use crate::engine::scan::{self, Labels, Query};
use crate::engine::top::Candidate;

/// A change of a space, as committed.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A point is there, with this content.
    Put {
        /// Number of the point in its space.
        number: u32,
        /// Number of its subject.
        subject: u32,
        /// Number of its facet set; 0 is none.
        facet: u32,
        /// The vector as stored.
        vector: Vec<f32>,
    },
    /// A point is gone.
    Remove(u32),
}

/// Bytes of a point beside its numbers: its measure, labels, and place in the map.
const POINT: usize = 64;

/// The directions of a space.
#[derive(Debug, Clone)]
pub struct Index {
    matrix: Matrix,
    numbers: Vec<u32>,
    subjects: Vec<u32>,
    facets: Vec<u32>,
    rows: HashMap<u32, u32>,
}

impl Index {
    /// An empty index with room for `capacity` rows' labels.
    pub fn new(dimension: usize, capacity: usize) -> Self {
        Self {
            matrix: Matrix::new(dimension),
            numbers: Vec::with_capacity(capacity),
            subjects: Vec::with_capacity(capacity),
            facets: Vec::with_capacity(capacity),
            rows: HashMap::with_capacity(capacity),
        }
    }

    /// Points.
    pub fn len(&self) -> usize {
        self.matrix.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.matrix.is_empty()
    }

    /// Bytes in memory, about.
    pub fn bytes(&self) -> usize {
        let labels = self.numbers.capacity() + self.subjects.capacity() + self.facets.capacity();
        // A slot of the map is a pair and a control byte; it keeps an eighth free.
        let map = self.rows.capacity() * 8 / 7 * 9;
        self.matrix.bytes() + labels * size_of::<u32>() + map
    }

    /// Bytes that so many points will take, about.
    pub fn estimate(dimension: usize, points: usize) -> usize {
        points.saturating_mul(Matrix::row_bytes(dimension) + POINT)
    }

    /// Applies a change. Doing it again changes nothing.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Put {
                number,
                subject,
                facet,
                mut vector,
            } => self.put(number, subject, facet, &mut vector),
            Change::Remove(number) => self.remove(number),
        }
    }

    /// Puts a point; `vector` is scaled to length one. One of another dimension is left out.
    pub fn put(&mut self, number: u32, subject: u32, facet: u32, vector: &mut [f32]) {
        if vector.len() != self.matrix.dimension() {
            return;
        }
        scan::normalise(vector);
        match self.rows.get(&number) {
            Some(&row) => {
                let row = row as usize;
                self.matrix.set(row, vector);
                self.subjects[row] = subject;
                self.facets[row] = facet;
            }
            None => {
                self.rows.insert(number, self.matrix.len() as u32);
                self.matrix.push(vector);
                self.numbers.push(number);
                self.subjects.push(subject);
                self.facets.push(facet);
            }
        }
    }

    fn remove(&mut self, number: u32) {
        let Some(row) = self.rows.remove(&number) else {
            return;
        };
        let at = row as usize;
        self.matrix.swap_remove(at);
        self.numbers.swap_remove(at);
        self.subjects.swap_remove(at);
        self.facets.swap_remove(at);
        if let Some(moved) = self.numbers.get(at) {
            self.rows.insert(*moved, row);
        }
    }

    /// The nearest distinct subjects for each query, all in one pass on `parts` threads. A query of another
    /// dimension than the index finds nothing.
    pub fn search(&self, mut queries: Vec<Query>, parts: usize) -> Vec<Vec<Candidate>> {
        for query in &mut queries {
            if query.vector.len() != self.matrix.dimension() {
                query.vector = vec![0.0; self.matrix.dimension()];
                query.limit = 0;
            }
        }
        let labels = Labels {
            numbers: &self.numbers,
            groups: &self.subjects,
            facets: &self.facets,
        };
        scan::search(&self.matrix, labels, &queries, parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::scan::Allowed;

    fn put(number: u32, subject: u32, vector: [f32; 2]) -> Change {
        Change::Put {
            number,
            subject,
            facet: 0,
            vector: vector.to_vec(),
        }
    }

    fn found(index: &Index) -> Vec<u32> {
        let query = |vector: &[f32]| Query {
            vector: vector.to_vec(),
            limit: 10,
            allowed: Allowed::All,
        };
        let queries = vec![query(&[1.0, 0.0, 0.0]), query(&[1.0, 0.0])];
        let found = index.search(queries, 1);
        assert!(found[0].is_empty(), "of another dimension");
        found[1].iter().map(|one| one.group).collect()
    }

    #[test]
    fn changes_are_seen_and_may_come_twice() {
        let mut index = Index::new(2, 0);
        let changes = [
            put(1, 10, [1.0, 0.0]),
            put(2, 20, [1.0, 1.0]),
            put(3, 30, [0.0, 9.0]),
            put(2, 20, [-1.0, 0.0]),
            Change::Remove(1),
        ];
        for _ in 0..2 {
            changes
                .iter()
                .for_each(|change| index.apply(change.clone()));
            assert_eq!(found(&index), [30, 20]);
        }
        index.apply(put(1, 10, [5.0, 0.0]));
        assert_eq!(found(&index), [10, 30, 20]);
        [1, 2, 3, 4]
            .into_iter()
            .for_each(|number| index.apply(Change::Remove(number)));
        assert!(index.is_empty());
    }

    #[test]
    fn memory_is_the_vectors_and_a_tenth_at_most() {
        let count = 20_000;
        let mut index = Index::new(256, count);
        for n in 0..count as u32 {
            index.apply(Change::Put {
                number: n,
                subject: n,
                facet: 0,
                vector: vec![1.0; 256],
            });
        }
        let raw = count * 256 * 4;
        assert!(
            index.bytes() as f64 <= 1.1 * raw as f64,
            "{}",
            index.bytes()
        );
    }
}
