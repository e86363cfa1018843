//! Choosing chunks: merging what the searches found, then what the reranker says.

use tg_schemas::msg::{in_context, off_page, on_page};

use super::fusion::{Order, fuse};
use super::mmr;
use super::plan::DocumentPlan;

/// A chunk with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The chunk.
    pub chunk: String,
    /// Its text.
    pub text: String,
    /// Where it stands.
    pub context: String,
}

impl Passage {
    /// As the model reads it: where it stands, with its page, then `text`, which may be shortened. `page`, where it is
    /// known, is for chunks that do not say theirs.
    pub fn read(&self, text: &str, page: i64) -> String {
        if off_page(&self.context).1 > 0 {
            return in_context(&self.context, text).into_owned();
        }
        let (place, table) = self.context.split_once('\n').unwrap_or((&self.context, ""));
        let place = on_page(place, page);
        let context = match table {
            "" => place,
            table => format!("{place}\n{table}"),
        };
        in_context(&context, text).into_owned()
    }
}

/// A chunk that the model is given.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// Which of the passages.
    pub passage: usize,
    /// How well it fits.
    pub score: f64,
}

/// Chunks that searches found, by meaning one list per look-up and by words one list, as one list.
pub fn pool(
    plan: &DocumentPlan,
    by_meaning: Vec<Vec<String>>,
    by_words: Vec<String>,
) -> Vec<String> {
    let look_ups = by_meaning.into_iter().map(|things| Order {
        weight: 1.0,
        things,
    });
    let meaning: Vec<String> = things(fuse(&look_ups.collect::<Vec<_>>()));
    let merged = fuse(&[
        Order {
            weight: plan.vector_weight,
            things: meaning,
        },
        Order {
            weight: plan.keyword_weight,
            things: by_words,
        },
    ]);
    let mut pool = things(merged);
    pool.truncate(plan.pool);
    pool
}

fn things(fused: Vec<(String, f64)>) -> Vec<String> {
    fused.into_iter().map(|(thing, _)| thing).collect()
}

/// The passages for the model from what the reranker scored, best first.
pub fn choose(plan: &DocumentPlan, passages: &[Passage], mut scored: Vec<Chosen>) -> Vec<Chosen> {
    scored.retain(|chosen| chosen.passage < passages.len() && chosen.score.is_finite());
    scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.passage.cmp(&b.passage)));
    let Some(lambda) = plan.diversity else {
        scored.truncate(plan.documents);
        return scored;
    };
    let texts: Vec<&str> = scored
        .iter()
        .map(|chosen| passages[chosen.passage].text.as_str())
        .collect();
    let relevance: Vec<f64> = scored.iter().map(|chosen| chosen.score).collect();
    let chosen = mmr::select(&texts, &relevance, lambda, plan.documents);
    chosen.into_iter().map(|at| scored[at].clone()).collect()
}

/// Without a reranker the order of the searches decides. Scores fall with the rank.
pub fn in_order(passages: &[Passage]) -> Vec<Chosen> {
    (0..passages.len())
        .map(|passage| Chosen {
            passage,
            score: 1.0 / (1.0 + passage as f64),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use tg_schemas::msg::DocumentRagQuery;

    use super::*;
    use crate::options::Options;

    fn plan(change: impl FnOnce(&mut DocumentRagQuery)) -> DocumentPlan {
        let mut ask = DocumentRagQuery {
            query: "q".into(),
            doc_limit: 2,
            ..DocumentRagQuery::default()
        };
        change(&mut ask);
        DocumentPlan::new(&ask, &Options::default(), true, true).unwrap()
    }

    fn list(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    #[test]
    fn both_searches_fill_the_pool() {
        let plan = plan(|_| {});
        let found = pool(
            &plan,
            vec![list(&["a", "b", "c", "d"]), list(&["b", "e"])],
            list(&["x", "b", "y", "z"]),
        );
        assert_eq!(found.len(), plan.pool);
        assert_eq!(found[0], "b");
        assert!(found.contains(&"x".to_owned()) && found.contains(&"a".to_owned()));
    }

    #[test]
    fn a_passage_is_read_below_where_it_stands() {
        let read = |context: &str, page| {
            let passage = Passage {
                chunk: "urn:c".into(),
                text: "whole".into(),
                context: context.into(),
            };
            passage.read("text", page)
        };
        assert_eq!(read("", 0), "text");
        assert_eq!(read("A > B", 0), "(A > B)\ntext");
        assert_eq!(
            read("A > B\n| a |", 3),
            "(A > B; page 3; columns: | a |)\ntext"
        );
        // It is said once.
        assert_eq!(read("A; page 3", 3), "(A; page 3)\ntext");
        assert_eq!(read("A; page 3", 0), "(A; page 3)\ntext");
        assert_eq!(read("", 3), "(page 3)\ntext");
    }

    #[test]
    fn repeats_give_way_only_when_asked() {
        let passages: Vec<Passage> = ["same words here", "same words here", "other things"]
            .iter()
            .map(|text| Passage {
                chunk: "urn:c".into(),
                text: (*text).to_owned(),
                context: String::new(),
            })
            .collect();
        let scored = || {
            let of = |(passage, score)| Chosen { passage, score };
            [(0, 0.9), (2, 0.1), (1, 0.8), (9, 1.0), (1, f64::NAN)]
                .map(of)
                .to_vec()
        };
        let places = |chosen: Vec<Chosen>| -> Vec<usize> {
            chosen.into_iter().map(|chosen| chosen.passage).collect()
        };
        assert_eq!(places(choose(&plan(|_| {}), &passages, scored())), [0, 1]);
        let diverse = plan(|ask| {
            ask.rerank_diversity_mode = "mmr".into();
            ask.rerank_diversity_lambda = 0.5;
        });
        assert_eq!(places(choose(&diverse, &passages, scored())), [0, 2]);
        assert_eq!(in_order(&passages).len(), 3);
    }
}
