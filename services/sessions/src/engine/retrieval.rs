//! Passages that an agent is given before it answers: how many, of which collections, and how they are shown.

/// A passage that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Id of the chunk.
    pub chunk: String,
    /// The collection.
    pub collection: String,
    /// How well it fits; the larger the better.
    pub score: f64,
}

/// Passages in all, of so many collections with so many each.
pub fn cap(each: usize, collections: usize) -> usize {
    let more = each as f64 * (collections as f64).sqrt();
    match collections {
        0 | 1 => each,
        // Both are small: nothing is lost.
        _ => more.ceil() as usize,
    }
}

/// The best of what was found in several collections. Those below the least score are left out.
pub fn merged(found: Vec<Vec<Hit>>, each: usize, least: Option<f64>) -> Vec<Hit> {
    let most = cap(each, found.len());
    let of_one = |hits: Vec<Hit>| hits.into_iter().take(each);
    let mut all: Vec<Hit> = found.into_iter().flat_map(of_one).collect();
    all.retain(|hit| least.is_none_or(|least| hit.score >= least));
    all.sort_by(|one, other| other.score.total_cmp(&one.score));
    all.truncate(most);
    all
}

/// Passages in the order of a reranker: so many at most, each once. It names them by their places; one that is not there means
/// nothing.
pub fn reranked<T>(
    passages: Vec<T>,
    places: impl IntoIterator<Item = usize>,
    most: usize,
) -> Vec<T> {
    let mut left: Vec<Option<T>> = passages.into_iter().map(Some).collect();
    let best = places.into_iter();
    let best = best.filter_map(|at| left.get_mut(at).and_then(Option::take));
    best.take(most).collect()
}

/// Passages as the agent is shown them.
pub fn shown(texts: &[String]) -> String {
    let numbered = texts.iter().zip(1..);
    let lines: Vec<String> = numbered
        .map(|(text, number)| format!("[{number}] {}", text.trim()))
        .collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("Passages that may help:\n\n{}", lines.join("\n\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(of: &str, scores: &[f64]) -> Vec<Hit> {
        let hit = |score: &f64| Hit {
            chunk: format!("{of}{score}"),
            collection: of.to_owned(),
            score: *score,
        };
        scores.iter().map(hit).collect()
    }

    #[test]
    fn line_077_four_collections_give_twice_as_many_as_one() {
        assert_eq!((cap(6, 1), cap(6, 4), cap(6, 2), cap(6, 0)), (6, 12, 9, 6));
    }

    #[test]
    fn a_reranker_puts_passages_in_its_order_and_names_none_twice() {
        let all = || vec!["a", "b", "c"];
        assert_eq!(reranked(all(), [2, 2, 9, 0, 1], 2), ["c", "a"]);
        assert!(reranked(all(), [], 2).is_empty());
    }

    #[test]
    fn the_best_of_all_collections_come_first() {
        let found = vec![hits("a", &[0.9, 0.1]), hits("b", &[0.8, 0.7, 0.6])];
        let best = merged(found.clone(), 2, Some(0.2));
        let scores: Vec<f64> = best.iter().map(|hit| hit.score).collect();
        assert_eq!(scores, [0.9, 0.8, 0.7]);
        assert_eq!(merged(found, 2, None).len(), 3);
        assert_eq!(
            shown(&["x ".to_owned()]),
            "Passages that may help:\n\n[1] x"
        );
        assert_eq!(shown(&[]), "");
    }
}
