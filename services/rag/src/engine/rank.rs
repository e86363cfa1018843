//! The default reranker: words and, where there are vectors, nearness of meaning. Each text keeps its best
//! score over all queries.

use super::lexical::Texts;

/// Share of the words when there are vectors.
const WORDS: f64 = 0.5;

/// A text with the query it fits best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// Which text.
    pub text: usize,
    /// Which query.
    pub query: usize,
    /// How well, 0 to 1.
    pub score: f64,
}

/// Vectors of queries and texts, of one model.
#[derive(Debug, Clone, Copy)]
pub struct Vectors<'a> {
    /// One per query.
    pub queries: &'a [Vec<f32>],
    /// One per text.
    pub texts: &'a [Vec<f32>],
}

/// The best texts, best first; of equal ones the earlier.
pub fn rank<Q: AsRef<str>, T: AsRef<str>>(
    queries: &[Q],
    texts: &[T],
    vectors: Option<Vectors<'_>>,
    limit: usize,
) -> Vec<Ranked> {
    let ready = Texts::new(texts);
    let mut best: Vec<Option<Ranked>> = vec![None; texts.len()];
    for (query, wanted) in queries.iter().enumerate() {
        let scores = ready.scores(wanted.as_ref());
        for (text, by_words) in scores.into_iter().enumerate() {
            let score = match vectors {
                None => by_words,
                Some(all) => {
                    let near = cosine(&all.queries[query], &all.texts[text]).max(0.0);
                    WORDS * by_words + (1.0 - WORDS) * near
                }
            };
            if best[text].is_none_or(|known| score > known.score) {
                best[text] = Some(Ranked { text, query, score });
            }
        }
    }
    sorted(best.into_iter().flatten().collect(), limit)
}

/// Best first, cut to the limit; of equal ones the earlier text.
pub fn sorted(mut ranked: Vec<Ranked>, limit: usize) -> Vec<Ranked> {
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.text.cmp(&b.text)));
    ranked.truncate(limit);
    ranked
}

/// Nearness of two vectors, -1 to 1; 0 where one says nothing or they are of different length.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    if a.len() != b.len() {
        return 0.0;
    }
    let (mut dot, mut aa, mut bb) = (0.0f64, 0.0f64, 0.0f64);
    for (x, y) in a.iter().zip(b) {
        let (x, y) = (f64::from(*x), f64::from(*y));
        dot += x * y;
        aa += x * x;
        bb += y * y;
    }
    let length = (aa * bb).sqrt();
    let near = if length > 0.0 { dot / length } else { 0.0 };
    if near.is_finite() { near } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_keeps_its_best_query() {
        let queries = ["lighthouse", "old bridge"];
        let texts = ["the old bridge", "a lighthouse", "nothing"];
        let ranked = rank(&queries, &texts, None, 2);
        let mut found: Vec<_> = ranked.iter().map(|r| (r.text, r.query)).collect();
        found.sort_unstable();
        assert_eq!(found, [(0, 1), (1, 0)]);
    }

    #[test]
    fn meaning_helps_where_words_do_not() {
        let vectors = Vectors {
            queries: &[vec![1.0, 0.0]],
            texts: &[vec![0.0, 1.0], vec![0.9, 0.1], vec![f32::NAN, 0.0]],
        };
        let ranked = rank(
            &["car"],
            &["a tree", "an automobile", "odd"],
            Some(vectors),
            3,
        );
        assert_eq!(ranked[0].text, 1);
        assert!(ranked.iter().all(|r| r.score.is_finite()));
        assert_eq!(cosine(&[1.0], &[1.0, 2.0]), 0.0);
    }
}
