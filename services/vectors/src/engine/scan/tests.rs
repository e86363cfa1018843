//! The scan beside plain sorting.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::engine::fixed;

/// As the index sums it, so that what is equal there is equal here.
fn product(row: &[f32], query: &[f32]) -> f32 {
    let (mut coarse, mut fine) = (Vec::new(), Vec::new());
    let measure = fixed::split(row, &mut coarse, &mut fine);
    Probe::new(query).score(&coarse, &fine, measure)
}

/// One score per group by sorting everything.
fn naive(
    rows: &[Vec<f32>],
    labels: Labels<'_>,
    query: &[f32],
    limit: usize,
    allowed: &Allowed,
) -> Vec<(u32, u32)> {
    let mut all: Vec<(f32, u32, u32)> = rows
        .iter()
        .enumerate()
        .filter(|(at, _)| match allowed {
            Allowed::All => true,
            Allowed::Some(bits) => bits.contains(labels.facets[*at]),
        })
        .map(|(at, row)| (product(row, query), labels.numbers[at], labels.groups[at]))
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut best: BTreeMap<u32, ()> = BTreeMap::new();
    all.retain(|(_, _, group)| best.insert(*group, ()).is_none());
    all.truncate(limit);
    all.iter()
        .map(|(_, number, group)| (*number, *group))
        .collect()
}

fn rows(dimension: usize) -> impl Strategy<Value = Vec<Vec<f32>>> {
    // Few distinct values, so that ties are common.
    let part = prop_oneof![Just(0.0_f32), Just(1.0), Just(-1.0), -1.0_f32..1.0];
    proptest::collection::vec(proptest::collection::vec(part, dimension), 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_scan_finds_what_sorting_everything_finds(
        rows in (1_usize..24).prop_flat_map(rows),
        seed in any::<u64>(),
        limit in 1_usize..20,
        parts in 1_usize..4,
        filtered in any::<bool>(),
    ) {
        let Some(dimension) = rows.first().map(Vec::len) else { return Ok(()) };
        let pick = |n: usize, of: u64| (seed.rotate_left((n % 64) as u32) ^ n as u64) % of;
        let groups: Vec<u32> = (0..rows.len()).map(|n| pick(n, 40) as u32).collect();
        let facets: Vec<u32> = (0..rows.len()).map(|n| pick(n, 3) as u32).collect();
        // Numbers are not in order of position, as after removals.
        let numbers: Vec<u32> = (0..rows.len() as u32).rev().collect();
        let labels = Labels { numbers: &numbers, groups: &groups, facets: &facets };
        let mut matrix = Matrix::new(dimension);
        rows.iter().for_each(|row| matrix.push(row));
        let query: Vec<f32> = (0..dimension).map(|n| if n % 2 == 0 { 1.0 } else { -0.5 }).collect();
        let allowed = if filtered {
            let mut bits = Bits::default();
            bits.insert(1);
            Allowed::Some(bits)
        } else {
            Allowed::All
        };
        let mut turned = query.clone();
        turned.reverse();
        let one = Query { vector: query, limit, allowed };
        let other = Query { vector: turned, limit: limit + 1, allowed: Allowed::All };
        let queries = [one, other];
        let found = search(&matrix, labels, &queries, parts);
        for (query, found) in queries.iter().zip(found) {
            let found: Vec<_> = found.iter().map(|one| (one.number, one.group)).collect();
            let Query { vector, limit, allowed } = query;
            prop_assert_eq!(found, naive(&rows, labels, vector, *limit, allowed));
        }
    }
}

#[test]
fn many_better_candidates_are_cut_to_the_best() {
    let mut matrix = Matrix::new(8);
    let count = 20_000_u32;
    for n in 0..count {
        matrix.push(&[n as f32 / count as f32; 8]);
    }
    let numbers: Vec<u32> = (0..count).collect();
    let groups: Vec<u32> = (0..count).map(|n| n / 2).collect();
    let facets = vec![0; count as usize];
    let labels = Labels {
        numbers: &numbers,
        groups: &groups,
        facets: &facets,
    };
    let query = Query {
        vector: vec![1.0; 8],
        limit: 3,
        allowed: Allowed::All,
    };
    let found = search(&matrix, labels, &[query], 2);
    let numbers: Vec<u32> = found[0].iter().map(|one| one.number).collect();
    assert_eq!(numbers, [19_999, 19_997, 19_995], "one of each group");
}

#[test]
fn only_directions_count() {
    let mut vector = vec![3.0, 4.0];
    assert!(normalise(&mut vector));
    assert_eq!(vector, [0.6, 0.8]);
    let mut none = vec![0.0, 0.0];
    assert!(!normalise(&mut none));
    let mut huge = vec![f32::MAX, f32::MAX];
    assert!(normalise(&mut huge) && (product(&huge, &huge) - 1.0).abs() < 1e-6);
}

#[test]
fn sets_of_bits_intersect() {
    let set = |numbers: &[u32]| {
        let mut bits = Bits::default();
        numbers.iter().for_each(|number| bits.insert(*number));
        bits
    };
    let mut both = set(&[1, 64, 200]);
    both.intersect(&set(&[1, 2, 64]));
    let left: Vec<u32> = (0..300).filter(|number| both.contains(*number)).collect();
    assert_eq!(left, [1, 64]);
}
