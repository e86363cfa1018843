//! A row as whole numbers in two planes: a coarse one of 8 bits a number, enough to tell how near the row can be
//! at most, and a fine one with the 16 bits below, read only where that matters. Together they keep 24 bits of
//! each number, relative to the row's largest: what a `f32` keeps, in three quarters of its memory; and a scan
//! reads a quarter. Pure.

/// Largest coarse number.
const COARSE: f32 = 127.0;
/// Steps of the fine plane in one of the coarse.
const FINE: i32 = 1 << 16;
/// Numbers whose products are summed side by side.
const LANES: usize = 16;
/// What sums of rounded numbers may be off by, relative to the lengths of both sides; generous.
const ROUNDING: f32 = 1e-4;

/// What belongs to a row beside its two planes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measure {
    /// Size of one step of the fine plane.
    step: f32,
    /// Length of the row as the coarse plane has it.
    coarse: f32,
    /// Length of what it leaves to the fine plane.
    rest: f32,
}

/// Splits a row, adding to both planes.
pub fn split(row: &[f32], coarse: &mut Vec<i8>, fine: &mut Vec<i16>) -> Measure {
    let largest = row.iter().fold(0.0_f32, |most, part| most.max(part.abs()));
    let step = largest / (COARSE * FINE as f32);
    let (mut length, mut rest) = (0.0_f64, 0.0_f64);
    for part in row {
        // A row of zeros has no direction: all is zero.
        let steps = if step > 0.0 {
            (f64::from(*part) / f64::from(step)).round() as i32
        } else {
            0
        };
        let high = (steps + FINE / 2).div_euclid(FINE).clamp(-127, 127);
        let low = (steps - high * FINE).clamp(i32::from(i16::MIN), i32::from(i16::MAX));
        coarse.push(high as i8);
        fine.push(low as i16);
        length += f64::from(high * FINE).powi(2);
        rest += f64::from(low).powi(2);
    }
    Measure {
        step,
        coarse: step * length.sqrt() as f32,
        rest: step * rest.sqrt() as f32,
    }
}

/// Puts a row together again.
pub fn join(coarse: &[i8], fine: &[i16], measure: Measure) -> Vec<f32> {
    let steps = coarse
        .iter()
        .zip(fine)
        .map(|(high, low)| whole(*high, *low));
    steps.map(|steps| steps * measure.step).collect()
}

#[inline]
fn whole(high: i8, low: i16) -> f32 {
    // Less than 24 bits: exact.
    (i32::from(high) * FINE + i32::from(low)) as f32
}

/// A query, ready to be held against rows.
#[derive(Debug, Clone)]
pub struct Probe {
    exact: Vec<f32>,
    coarse: Vec<i16>,
    /// Size of one step of `coarse`, times one of a row's coarse plane.
    step: f32,
    /// Length of the query.
    length: f32,
    /// Length of what `coarse` leaves out.
    lost: f32,
}

impl Probe {
    /// Prepares a query.
    pub fn new(query: &[f32]) -> Self {
        let largest = query
            .iter()
            .fold(0.0_f32, |most, part| most.max(part.abs()));
        // So that no sum over a row leaves 32 bits.
        let most = i32::MAX as f32 / (COARSE * query.len().max(1) as f32);
        let step = largest / most.floor().min(f32::from(i16::MAX));
        let (mut length, mut lost) = (0.0_f64, 0.0_f64);
        let mut coarse = Vec::with_capacity(query.len());
        for part in query {
            let steps = if step > 0.0 {
                (part / step).round()
            } else {
                0.0
            };
            coarse.push(steps as i16);
            length += f64::from(*part).powi(2);
            lost += (f64::from(*part) - f64::from(steps) * f64::from(step)).powi(2);
        }
        Self {
            exact: query.to_vec(),
            coarse,
            step: step * FINE as f32,
            length: length.sqrt() as f32,
            lost: lost.sqrt() as f32,
        }
    }

    /// Numbers of the query.
    pub fn dimension(&self) -> usize {
        self.exact.len()
    }

    /// What the product of query and row is at most (Cauchy and Schwarz on what both coarse sides leave out).
    #[inline]
    pub fn most(&self, coarse: &[i8], measure: Measure) -> f32 {
        let sum = product(coarse, &self.coarse);
        let left_out = measure.coarse * self.lost + measure.rest * self.length;
        let rounding = ROUNDING * (measure.coarse + measure.rest) * self.length;
        sum as f32 * self.step * measure.step + left_out + rounding
    }

    /// The product of query and row. Always summed in the same order, so the same rows score the same.
    #[inline]
    pub fn score(&self, coarse: &[i8], fine: &[i16], measure: Measure) -> f32 {
        let mut lanes = [0.0_f32; LANES];
        let (highs, last_highs) = coarse.as_chunks::<LANES>();
        let (lows, last_lows) = fine.as_chunks::<LANES>();
        let (parts, last_parts) = self.exact.as_chunks::<LANES>();
        for ((high, low), part) in highs.iter().zip(lows).zip(parts) {
            for lane in 0..LANES {
                lanes[lane] += whole(high[lane], low[lane]) * part[lane];
            }
        }
        let last = last_highs.iter().zip(last_lows).zip(last_parts);
        let last: f32 = last
            .map(|((high, low), part)| whole(*high, *low) * part)
            .sum();
        (lanes.iter().sum::<f32>() + last) * measure.step
    }
}

/// The sum of products of whole numbers. Widened to 16 bits first, for which processors have an instruction that
/// multiplies and adds pairs; the compiler uses it only if it sees that step.
#[inline]
fn product(row: &[i8], query: &[i16]) -> i32 {
    let (rows, last_row) = row.as_chunks::<LANES>();
    let (queries, last_query) = query.as_chunks::<LANES>();
    let mut sum = 0;
    for (row, query) in rows.iter().zip(queries) {
        let row = row.map(i16::from);
        let pairs = row.iter().zip(query);
        sum += pairs
            .map(|(a, b)| i32::from(*a) * i32::from(*b))
            .sum::<i32>();
    }
    let last = last_row.iter().zip(last_query);
    sum + last
        .map(|(a, b)| i32::from(*a) * i32::from(*b))
        .sum::<i32>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn length(row: &[f32]) -> f64 {
        let squares = row.iter().map(|part| f64::from(*part).powi(2));
        squares.sum::<f64>().sqrt()
    }

    proptest! {
        #[test]
        fn a_row_keeps_its_numbers_and_its_product_is_bounded(
            pairs in proptest::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0), 1..600),
            scale in prop_oneof![Just(1.0_f32), Just(1e-6), Just(1e6)],
        ) {
            let row: Vec<f32> = pairs.iter().map(|(part, _)| part * scale).collect();
            let query: Vec<f32> = pairs.iter().map(|(_, part)| *part).collect();
            let (mut coarse, mut fine) = (Vec::new(), Vec::new());
            let measure = split(&row, &mut coarse, &mut fine);
            let largest = row.iter().fold(0.0_f32, |most, part| most.max(part.abs()));
            for (kept, part) in join(&coarse, &fine, measure).iter().zip(&row) {
                prop_assert!((kept - part).abs() <= largest * 1.2e-7, "{kept} instead of {part}");
            }
            let probe = Probe::new(&query);
            let exact: f64 = row.iter().zip(&query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let score = probe.score(&coarse, &fine, measure);
            let off = (f64::from(score) - exact).abs();
            prop_assert!(off <= 3e-6 * length(&row) * length(&query), "{score} instead of {exact}");
            let most = probe.most(&coarse, measure);
            prop_assert!(most >= score, "{most} is less than {score}");
            prop_assert!(f64::from(most) - exact <= 0.02 * length(&row) * length(&query) + 1e-30);
        }
    }

    #[test]
    fn the_ends_of_the_range_are_kept() {
        let row = [1.0, -1.0, 0.0, 0.5, -0.999_99, 0.003_9];
        let (mut coarse, mut fine) = (Vec::new(), Vec::new());
        let measure = split(&row, &mut coarse, &mut fine);
        let kept = join(&coarse, &fine, measure);
        assert_eq!((kept[0], kept[1], kept[2]), (1.0, -1.0, 0.0));
        let none = split(&[0.0; 3], &mut coarse, &mut fine);
        assert_eq!(join(&coarse[6..], &fine[6..], none), [0.0; 3]);
        let probe = Probe::new(&[0.0; 3]);
        assert_eq!(probe.score(&coarse[6..], &fine[6..], none), 0.0);
    }

    #[test]
    fn long_rows_do_not_overflow() {
        let row = vec![1.0_f32; 70_000];
        let (mut coarse, mut fine) = (Vec::new(), Vec::new());
        let measure = split(&row, &mut coarse, &mut fine);
        let probe = Probe::new(&row);
        let score = probe.score(&coarse, &fine, measure);
        assert!((score - 70_000.0).abs() < 1.0);
        assert!(probe.most(&coarse, measure) >= score);
    }
}
