//! Maximal marginal relevance: choosing what fits and does not repeat what was chosen (Carbonell and
//! Goldstein, SIGIR 1998).
//!
//! Relevance is scaled to 0 to 1 over the candidates (all equal: 0.5); likeness is the Jaccard index of
//! the texts' words. The next choice has the largest `λ·relevance − (1−λ)·largest likeness to a chosen one`.

use std::collections::HashSet;

use tg_citations::words::plain_set;

/// Places of the chosen, in the order of choice; of equal ones the earlier is chosen.
pub fn select<T: AsRef<str>>(
    texts: &[T],
    relevance: &[f64],
    lambda: f64,
    count: usize,
) -> Vec<usize> {
    let lambda = lambda.clamp(0.0, 1.0);
    let scaled = scaled(relevance);
    let sets: Vec<HashSet<String>> = texts.iter().map(|text| plain_set(text.as_ref())).collect();
    let mut left: Vec<usize> = (0..texts.len().min(relevance.len())).collect();
    let mut nearest = vec![0.0f64; texts.len()];
    let mut chosen: Vec<usize> = Vec::with_capacity(count.min(left.len()));
    while chosen.len() < count && !left.is_empty() {
        let mut best = 0;
        let mut value = f64::NEG_INFINITY;
        for (at, candidate) in left.iter().enumerate() {
            let own = lambda * scaled[*candidate] - (1.0 - lambda) * nearest[*candidate];
            if own > value {
                (best, value) = (at, own);
            }
        }
        let taken = left.remove(best);
        for candidate in &left {
            let likeness = jaccard(&sets[taken], &sets[*candidate]);
            nearest[*candidate] = nearest[*candidate].max(likeness);
        }
        chosen.push(taken);
    }
    chosen
}

fn scaled(relevance: &[f64]) -> Vec<f64> {
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in relevance.iter().filter(|value| value.is_finite()) {
        least = least.min(*value);
        most = most.max(*value);
    }
    let span = most - least;
    let scale = |value: &f64| {
        if !value.is_finite() {
            0.0
        } else if span > 0.0 {
            (value - least) / span
        } else {
            0.5
        }
    };
    relevance.iter().map(scale).collect()
}

fn jaccard(a: &HashSet<String>, b: &HashSet<String>) -> f64 {
    let shared = a.intersection(b).count();
    let all = a.len() + b.len() - shared;
    if all == 0 {
        return 0.0;
    }
    shared as f64 / all as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_repeat_waits_behind_something_else() {
        let texts = ["the old bridge", "The old bridge!", "a lighthouse"];
        assert_eq!(select(&texts, &[1.0, 0.9, 0.2], 0.5, 2), [0, 2]);
        assert_eq!(select(&texts, &[1.0, 0.9, 0.2], 1.0, 2), [0, 1]);
        assert_eq!(select(&texts, &[0.3, 0.3, 0.3], 0.7, 3), [0, 2, 1]);
        assert!(select::<&str>(&[], &[], 0.7, 3).is_empty());
    }

    proptest! {
        #[test]
        fn each_is_chosen_once_and_the_best_first(
            found in prop::collection::vec(("[a-d ]{0,12}", 0u8..20), 1..15),
            lambda in 0.0f64..=1.0,
            count in 0usize..20
        ) {
            let texts: Vec<&str> = found.iter().map(|(text, _)| text.as_str()).collect();
            let relevance: Vec<f64> = found.iter().map(|(_, value)| f64::from(*value)).collect();
            let chosen = select(&texts, &relevance, lambda, count);
            prop_assert_eq!(chosen.len(), count.min(texts.len()));
            let different: HashSet<usize> = chosen.iter().copied().collect();
            prop_assert_eq!(different.len(), chosen.len());
            if let Some(first) = chosen.first().filter(|_| lambda > 0.0) {
                prop_assert!(relevance.iter().all(|value| *value <= relevance[*first]));
            }
        }

        #[test]
        fn with_relevance_alone_the_order_is_the_relevance(
            values in prop::collection::vec(0u8..50, 1..20)
        ) {
            let texts: Vec<String> = values.iter().map(|_| "same words".to_owned()).collect();
            let relevance: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
            let chosen = select(&texts, &relevance, 1.0, values.len());
            let mut expected: Vec<usize> = (0..values.len()).collect();
            expected.sort_by_key(|at| std::cmp::Reverse(values[*at]));
            prop_assert_eq!(chosen, expected);
        }

        #[test]
        fn a_longer_choice_begins_with_the_shorter(
            values in prop::collection::vec(("[a-c ]{0,9}", 0u8..9), 2..12),
            lambda in 0.0f64..=1.0
        ) {
            let texts: Vec<&str> = values.iter().map(|(text, _)| text.as_str()).collect();
            let relevance: Vec<f64> = values.iter().map(|(_, value)| f64::from(*value)).collect();
            let long = select(&texts, &relevance, lambda, values.len());
            let short = select(&texts, &relevance, lambda, values.len() / 2);
            prop_assert_eq!(&long[..short.len()], &short[..]);
        }
    }
}
