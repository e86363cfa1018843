//! How much of a dialog is summed up at once.

use std::ops::Range;

use crate::rows::{Role, Row, tokens};

/// Tokens that a summary and its instruction take.
const OVERHEAD: u64 = 4096;
/// An estimate of tokens is too low by this factor at most, in tenths.
const MARGIN: u64 = 12;
/// Part of the budget that a chunk has, and the least of it.
const RATIO: f64 = 0.4;
const LEAST_RATIO: f64 = 0.15;
/// Tokens that a chunk has at least.
const LEAST: u64 = 500;

/// Tokens of a window that there are for what is summed up. `None`: none.
pub fn budget(window: u64) -> Option<u64> {
    let whole = window.saturating_mul(10) / MARGIN;
    whole.checked_sub(OVERHEAD).filter(|budget| *budget > 0)
}

/// Part of the budget that a chunk has: the longer rows are, the less.
pub fn ratio(rows: &[Row], window: u64) -> f64 {
    if rows.is_empty() || window == 0 {
        return RATIO;
    }
    let average = tokens(rows) as f64 / rows.len() as f64;
    (RATIO - 0.5 * average / window as f64).clamp(LEAST_RATIO, RATIO)
}

/// Tokens of a chunk.
pub fn chunk_budget(rows: &[Row], window: u64) -> Option<u64> {
    let budget = budget(window)?;
    let part = (ratio(rows, window) * budget as f64).floor() as u64;
    Some(part.max(LEAST))
}

/// Rows in chunks of at most so many tokens, in their order. A row that is longer is a chunk of its own, with what tools
/// returned to it: results are in the chunk of their call.
pub fn chunks(rows: &[Row], budget: u64) -> Vec<Range<usize>> {
    let mut chunks: Vec<Range<usize>> = Vec::new();
    let mut sum = 0;
    let mut at = 0;
    while at < rows.len() {
        let results = rows[at + 1..].iter();
        let results = results.take_while(|row| row.role == Role::Tool).count();
        let end = at + 1 + results;
        let more = tokens(&rows[at..end]);
        match chunks.last_mut() {
            Some(chunk) if sum + more <= budget => {
                chunk.end = end;
                sum += more;
            }
            _ => {
                chunks.push(at..end);
                sum = more;
            }
        }
        at = end;
    }
    chunks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 97
    #[test]
    fn line_097_of_a_usual_window_there_is_what_a_summary_leaves() {
        assert_eq!(budget(128_000), Some(102_570));
        let small = vec![Row::text(Role::User, "a short message"); 40];
        let part = ratio(&small, 128_000);
        assert!(part < 0.4 && part > 0.399, "{part}");
        let vast = [Row::text(Role::User, "x".repeat(4 * 128_000))];
        assert!((ratio(&vast, 128_000) - 0.15).abs() < f64::EPSILON);
        assert!((ratio(&[], 128_000) - 0.4).abs() < f64::EPSILON);
    }

    /// 98
    #[test]
    fn of_a_small_window_there_is_nothing() {
        assert_eq!((budget(4_900), budget(0)), (None, None));
        assert_eq!(chunk_budget(&[], 5_000), Some(LEAST));
    }

    #[test]
    fn results_are_in_the_chunk_of_their_call() {
        let text = "x".repeat(4 * 96);
        let rows = [
            Row::text(Role::User, &*text),
            Row::call(&*text, "", ""),
            Row::result(&*text, "search"),
            Row::result(&*text, "search"),
            Row::text(Role::Assistant, &*text),
        ];
        assert_eq!(chunks(&rows, 200), [0..1, 1..4, 4..5]);
        assert_eq!(chunks(&rows, 400), [0..4, 4..5]);
        assert_eq!(chunks(&rows, 500), vec![Range { start: 0, end: 5 }]);
    }

    proptest! {
        #[test]
        fn chunks_are_all_rows_in_their_order(
            rows in prop::collection::vec((0..3_u8, 0..3_000_usize), 0..40), budget in 1..2_000_u64
        ) {
            let rows: Vec<Row> = rows.into_iter().map(|(role, length)| {
                let role = [Role::User, Role::Assistant, Role::Tool][usize::from(role)];
                Row::text(role, "x".repeat(length))
            }).collect();
            let chunks = chunks(&rows, budget);
            let mut next = 0;
            for chunk in &chunks {
                prop_assert_eq!(chunk.start, next);
                next = chunk.end;
                let first = &rows[chunk.start];
                prop_assert!(chunk.start == 0 || first.role != Role::Tool);
                let heads = rows[chunk.clone()].iter().skip(1).filter(|row| row.role != Role::Tool).count();
                prop_assert!(heads == 0 || tokens(&rows[chunk.clone()]) <= budget);
            }
            prop_assert_eq!(next, rows.len());
        }
    }
}
