//! Rows of numbers in memory, all of one length, in blocks of about four megabytes: growing copies at most
//! a block and wastes at most one. Knows nothing of what the rows mean.

/// Bytes of a block, about.
const BLOCK_BYTES: usize = 4 << 20;
/// A block's first allocation, in rows; doubles from there.
const FIRST_ROWS: usize = 16;

/// A dense matrix that grows and shrinks at its end.
#[derive(Debug, Clone)]
pub struct Matrix {
    dimension: usize,
    block_rows: usize,
    rows: usize,
    blocks: Vec<Vec<f32>>,
}

impl Matrix {
    /// An empty matrix with rows of `dimension` numbers (at least 1).
    pub fn new(dimension: usize) -> Self {
        let dimension = dimension.max(1);
        Self {
            dimension,
            block_rows: (BLOCK_BYTES / (dimension * size_of::<f32>())).max(FIRST_ROWS),
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

    /// Bytes allocated for numbers.
    pub fn bytes(&self) -> usize {
        let numbers: usize = self.blocks.iter().map(Vec::capacity).sum();
        numbers * size_of::<f32>()
    }

    /// A row.
    pub fn row(&self, at: usize) -> &[f32] {
        let (block, start) = self.place(at);
        &self.blocks[block][start..start + self.dimension]
    }

    /// Replaces a row.
    pub fn set(&mut self, at: usize, row: &[f32]) {
        let (block, start) = self.place(at);
        self.blocks[block][start..start + self.dimension].copy_from_slice(row);
    }

    /// Adds a row at the end.
    pub fn push(&mut self, row: &[f32]) {
        debug_assert_eq!(row.len(), self.dimension);
        if self.rows == self.blocks.len() * self.block_rows {
            self.blocks.push(Vec::new());
        }
        let full = self.block_rows * self.dimension;
        let first = FIRST_ROWS * self.dimension;
        if let Some(block) = self.blocks.last_mut() {
            if block.len() == block.capacity() {
                let wanted = (block.capacity() * 2).clamp(first, full);
                block.reserve_exact(wanted - block.len());
            }
            block.extend_from_slice(row);
            self.rows += 1;
        }
    }

    /// Removes a row; the last one takes its place.
    pub fn swap_remove(&mut self, at: usize) {
        let last = self.rows - 1;
        if at != last {
            let row = self.row(last).to_vec();
            self.set(at, &row);
        }
        if let Some(block) = self.blocks.last_mut() {
            block.truncate(block.len() - self.dimension);
            if block.is_empty() {
                self.blocks.pop();
            }
        }
        self.rows = last;
    }

    /// Blocks in order, each with the number of its first row.
    pub fn blocks(&self) -> impl Iterator<Item = (usize, &[f32])> {
        let starts = (0..).step_by(self.block_rows);
        starts.zip(self.blocks.iter().map(Vec::as_slice))
    }

    fn place(&self, at: usize) -> (usize, usize) {
        (at / self.block_rows, at % self.block_rows * self.dimension)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_and_go_across_blocks() {
        let mut matrix = Matrix::new(4_096);
        let row = |n: usize| vec![n as f32; 4_096];
        (0..800).for_each(|n| matrix.push(&row(n)));
        assert_eq!(matrix.blocks.len(), 4);
        matrix.swap_remove(0);
        assert_eq!(matrix.row(0)[0], 799.0);
        matrix.swap_remove(798);
        assert_eq!(matrix.len(), 798);
        let seen: Vec<f32> = matrix
            .blocks()
            .flat_map(|(_, block)| block.chunks_exact(4_096).map(|row| row[0]))
            .collect();
        assert_eq!(seen.len(), 798);
        assert_eq!((seen[1], seen[797]), (1.0, 797.0));
        (0..798).for_each(|_| matrix.swap_remove(0));
        assert!(matrix.is_empty() && matrix.blocks.is_empty());
    }

    #[test]
    fn little_is_wasted() {
        let mut small = Matrix::new(1_024);
        small.push(&[0.0; 1_024]);
        assert!(small.bytes() <= 16 * 4_096);
        let mut large = Matrix::new(256);
        (0..50_000).for_each(|_| large.push(&[0.0; 256]));
        assert!(large.bytes() as f64 <= 1.08 * 50_000.0 * 1_024.0);
    }
}
