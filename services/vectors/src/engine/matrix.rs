//! Rows of numbers in memory, all of one length, in blocks of about four megabytes: growing copies at most
//! a block and wastes at most one. Knows nothing of what the rows mean.

use crate::engine::fixed::{self, Measure, Probe};

/// Bytes of a block, about.
const BLOCK_BYTES: usize = 4 << 20;
/// Bytes of a number, in both planes.
const NUMBER: usize = size_of::<i8>() + size_of::<i16>();
/// A block's first allocation, in rows; doubles from there.
const FIRST_ROWS: usize = 16;

/// A dense matrix that grows and shrinks at its end.
#[derive(Debug, Clone)]
pub struct Matrix {
    dimension: usize,
    block_rows: usize,
    rows: usize,
    blocks: Vec<Block>,
}

/// Some rows: their two planes and their measures, in the same order.
#[derive(Debug, Clone, Default)]
struct Block {
    coarse: Vec<i8>,
    fine: Vec<i16>,
    measures: Vec<Measure>,
}

/// Consecutive rows.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// Number of the first.
    pub start: usize,
    dimension: usize,
    coarse: &'a [i8],
    fine: &'a [i16],
    measures: &'a [Measure],
}

impl Matrix {
    /// Bytes of the numbers of a row.
    pub fn row_bytes(dimension: usize) -> usize {
        dimension * NUMBER
    }
}

impl Rows<'_> {
    /// The product of a query with the row at a place here, unless it is certain to be less than `least`.
    pub fn score(&self, at: usize, probe: &Probe, least: f32) -> Option<f32> {
        let numbers = at * self.dimension..(at + 1) * self.dimension;
        let (coarse, measure) = (&self.coarse[numbers.clone()], self.measures[at]);
        if probe.most(coarse, measure) < least {
            return None;
        }
        let score = probe.score(coarse, &self.fine[numbers], measure);
        (score >= least).then_some(score)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.measures.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.measures.is_empty()
    }
}

impl Matrix {
    /// An empty matrix with rows of `dimension` numbers (at least 1).
    pub fn new(dimension: usize) -> Self {
        let dimension = dimension.max(1);
        Self {
            dimension,
            block_rows: (BLOCK_BYTES / (dimension * NUMBER)).max(FIRST_ROWS),
            rows: 0,
            blocks: Vec::new(),
        }
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Numbers of a row.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Bytes allocated for rows.
    pub fn bytes(&self) -> usize {
        self.blocks.iter().map(Block::bytes).sum()
    }

    /// A row, as it is kept.
    pub fn row(&self, at: usize) -> Vec<f32> {
        let (block, numbers, row) = self.place(at);
        let block = &self.blocks[block];
        let (coarse, fine) = (&block.coarse[numbers.clone()], &block.fine[numbers]);
        fixed::join(coarse, fine, block.measures[row])
    }

    /// Replaces a row.
    pub fn set(&mut self, at: usize, row: &[f32]) {
        let (mut coarse, mut fine) = (Vec::new(), Vec::new());
        let measure = fixed::split(row, &mut coarse, &mut fine);
        self.put(at, &coarse, &fine, measure);
    }

    /// Adds a row at the end.
    pub fn push(&mut self, row: &[f32]) {
        debug_assert_eq!(row.len(), self.dimension);
        if self.rows == self.blocks.len() * self.block_rows {
            self.blocks.push(Block::default());
        }
        if let Some(block) = self.blocks.last_mut() {
            block.grow(self.dimension, self.block_rows);
            let measure = fixed::split(row, &mut block.coarse, &mut block.fine);
            block.measures.push(measure);
            self.rows += 1;
        }
    }

    /// Removes a row; the last one takes its place.
    pub fn swap_remove(&mut self, at: usize) {
        let last = self.rows - 1;
        if at != last {
            let (block, numbers, row) = self.place(last);
            let block = &self.blocks[block];
            let coarse = block.coarse[numbers.clone()].to_vec();
            let fine = block.fine[numbers].to_vec();
            let measure = block.measures[row];
            self.put(at, &coarse, &fine, measure);
        }
        if let Some(block) = self.blocks.last_mut() {
            block.measures.pop();
            let left = block.measures.len() * self.dimension;
            block.coarse.truncate(left);
            block.fine.truncate(left);
            if block.measures.is_empty() {
                self.blocks.pop();
            }
        }
        self.rows = last;
    }

    /// All rows in order, at most `most` (at least 1) at a time.
    pub fn portions(&self, most: usize) -> impl Iterator<Item = Rows<'_>> {
        let most = most.max(1);
        let starts = (0..).step_by(self.block_rows);
        starts.zip(&self.blocks).flat_map(move |(start, block)| {
            let coarse = block.coarse.chunks(most * self.dimension);
            let fine = block.fine.chunks(most * self.dimension);
            let planes = coarse.zip(fine).zip(block.measures.chunks(most));
            let portions = (start..).step_by(most).zip(planes);
            portions.map(|(start, ((coarse, fine), measures))| Rows {
                start,
                dimension: self.dimension,
                coarse,
                fine,
                measures,
            })
        })
    }

    fn put(&mut self, at: usize, coarse: &[i8], fine: &[i16], measure: Measure) {
        let (block, numbers, row) = self.place(at);
        let block = &mut self.blocks[block];
        block.coarse[numbers.clone()].copy_from_slice(coarse);
        block.fine[numbers].copy_from_slice(fine);
        block.measures[row] = measure;
    }

    /// A row's block, where its numbers are in there, and its place among the block's rows.
    fn place(&self, at: usize) -> (usize, std::ops::Range<usize>, usize) {
        let row = at % self.block_rows;
        let start = row * self.dimension;
        (at / self.block_rows, start..start + self.dimension, row)
    }
}

impl Block {
    /// Makes room for one more row: doubles, up to what a block holds.
    fn grow(&mut self, dimension: usize, most: usize) {
        let rows = self.measures.len();
        if rows < self.measures.capacity() {
            return;
        }
        let more = (rows * 2).clamp(FIRST_ROWS, most) - rows;
        self.measures.reserve_exact(more);
        self.coarse.reserve_exact(more * dimension);
        self.fine.reserve_exact(more * dimension);
    }

    fn bytes(&self) -> usize {
        self.coarse.capacity() * size_of::<i8>()
            + self.fine.capacity() * size_of::<i16>()
            + self.measures.capacity() * size_of::<Measure>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_and_go_across_blocks() {
        let mut matrix = Matrix::new(4_096);
        let row = |n: usize| vec![n as f32; 4_096];
        (0..1_200).for_each(|n| matrix.push(&row(n)));
        assert_eq!(matrix.blocks.len(), 4);
        matrix.swap_remove(0);
        assert_eq!(matrix.row(0)[0], 1_199.0);
        matrix.set(1, &row(7));
        matrix.swap_remove(1_198);
        assert_eq!(matrix.len(), 1_198);
        let portions: Vec<_> = matrix.portions(100).collect();
        assert_eq!(portions.iter().map(Rows::len).sum::<usize>(), 1_198);
        let probe = Probe::new(&[1.0 / 4_096.0; 4_096]);
        let score = |at: usize| {
            let all = portions.iter().filter(|rows| rows.start <= at);
            let rows = all.max_by_key(|rows| rows.start).unwrap();
            rows.score(at - rows.start, &probe, f32::NEG_INFINITY)
                .unwrap()
        };
        for (at, wanted) in [(0, 1_199.0), (1, 7.0), (500, 500.0), (1_197, 1_197.0)] {
            assert!((score(at) - wanted).abs() < 0.01, "{at}: {}", score(at));
        }
        (0..1_198).for_each(|_| matrix.swap_remove(0));
        assert!(matrix.is_empty() && matrix.blocks.is_empty());
    }

    #[test]
    fn little_is_wasted() {
        let mut small = Matrix::new(1_024);
        small.push(&[0.0; 1_024]);
        assert!(small.bytes() <= 16 * 4_096);
        let mut large = Matrix::new(256);
        (0..50_000).for_each(|_| large.push(&[0.0; 256]));
        assert!(large.bytes() as f64 <= 0.82 * 50_000.0 * 1_024.0);
    }
}
