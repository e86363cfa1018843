//! Reciprocal rank fusion: several orders of things become one.
//!
//! A thing's score is the sum over the orders of `weight / (K + rank)`, rank from 1 (Cormack, Clarke and
//! Buettcher, SIGIR 2009).

use std::collections::HashMap;
use std::hash::Hash;

/// How little the very first ranks stand out.
pub const K: f64 = 60.0;

/// One order of things, best first, and what it counts.
#[derive(Debug, Clone)]
pub struct Order<T> {
    /// Weight; nothing and less leaves the order out.
    pub weight: f64,
    /// Things; a repeat counts where it stands first.
    pub things: Vec<T>,
}

/// All things with their scores, best first; of equal ones the one that was met first.
pub fn fuse<T: Clone + Eq + Hash>(orders: &[Order<T>]) -> Vec<(T, f64)> {
    let mut places: HashMap<&T, usize> = HashMap::new();
    let mut fused: Vec<(T, f64)> = Vec::new();
    for order in orders.iter().filter(|order| order.weight > 0.0) {
        let mut seen = std::collections::HashSet::new();
        let mut rank = 0.0;
        for thing in &order.things {
            if !seen.insert(thing) {
                continue;
            }
            rank += 1.0;
            let place = *places.entry(thing).or_insert_with(|| {
                fused.push((thing.clone(), 0.0));
                fused.len() - 1
            });
            fused[place].1 += order.weight / (K + rank);
        }
    }
    fused.sort_by(|a, b| b.1.total_cmp(&a.1));
    fused
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(weight: f64, things: &[u8]) -> Order<u8> {
        Order {
            weight,
            things: things.to_vec(),
        }
    }

    #[test]
    fn agreement_beats_one_first_place() {
        let fused = fuse(&[order(1.0, &[1, 2, 3]), order(1.0, &[4, 2, 5])]);
        assert_eq!(fused[0].0, 2);
        assert!((fused[0].1 - 2.0 / 62.0).abs() < 1e-12);
        // Equal scores keep the order in which they were met.
        assert_eq!((fused[1].0, fused[2].0), (1, 4));
        assert_eq!(fuse(&[order(0.0, &[9]), order(1.0, &[])]), []);
    }

    proptest! {
        #[test]
        fn every_thing_is_there_once_in_falling_order(
            lists in prop::collection::vec(prop::collection::vec(0u8..30, 0..20), 0..4)
        ) {
            let orders: Vec<_> = lists.iter().map(|list| order(1.0, list)).collect();
            let fused = fuse(&orders);
            let mut expected: Vec<u8> = lists.concat();
            expected.sort_unstable();
            expected.dedup();
            let mut found: Vec<u8> = fused.iter().map(|(thing, _)| *thing).collect();
            prop_assert!(fused.windows(2).all(|pair| pair[0].1 >= pair[1].1));
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn who_is_ahead_in_every_order_stays_ahead(
            list in prop::collection::hash_set(0u8..40, 2..20),
            weights in prop::collection::vec(0.1f64..5.0, 1..4)
        ) {
            let list: Vec<u8> = list.into_iter().collect();
            let orders: Vec<_> = weights.iter().map(|weight| order(*weight, &list)).collect();
            let found: Vec<u8> = fuse(&orders).into_iter().map(|(thing, _)| thing).collect();
            prop_assert_eq!(found, list);
        }

        #[test]
        fn scaling_all_weights_changes_no_order(
            lists in prop::collection::vec(prop::collection::vec(0u8..30, 0..20), 1..4),
            scale in 1u8..50
        ) {
            let with = |weight: f64| -> Vec<u8> {
                let orders: Vec<_> = lists.iter().map(|list| order(weight, list)).collect();
                fuse(&orders).into_iter().map(|(thing, _)| thing).collect()
            };
            // Powers of two scale without rounding.
            prop_assert_eq!(with(1.0), with(f64::from(2u32.pow(u32::from(scale % 8)))));
        }
    }
}
