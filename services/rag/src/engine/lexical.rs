//! How well texts fit a question by their words: BM25 over the candidates, scaled so that 1 means that
//! a text has all that the question asks for.

use std::collections::HashMap;

use tg_citations::words::words;

/// How quickly repeats of a word stop counting (Robertson's k1).
const K1: f64 = 1.2;
/// How much long texts are held back (Robertson's b).
const B: f64 = 0.4;

/// Texts ready to be compared with questions.
pub struct Texts {
    /// Of each word: the texts that have it, with how often.
    postings: HashMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    average: f64,
}

impl Texts {
    /// Reads the texts.
    pub fn new<T: AsRef<str>>(texts: &[T]) -> Self {
        let mut postings: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        let mut lengths = Vec::with_capacity(texts.len());
        for (at, text) in texts.iter().enumerate() {
            let words = words(text.as_ref());
            lengths.push(words.len() as f64);
            for word in words {
                let found = postings.entry(word).or_default();
                match found.last_mut() {
                    Some((last, count)) if *last == at => *count += 1.0,
                    _ => found.push((at, 1.0)),
                }
            }
        }
        let average = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        Self {
            postings,
            lengths,
            average: average.max(1.0),
        }
    }

    /// A score from 0 to 1 for each text. A word that no text has counts against all of them.
    pub fn scores(&self, question: &str) -> Vec<f64> {
        let mut asked = words(question);
        asked.sort_unstable();
        asked.dedup();
        let mut scores = vec![0.0; self.lengths.len()];
        let mut whole = 0.0;
        for word in &asked {
            let found = self.postings.get(word).map_or(&[][..], Vec::as_slice);
            let weight = self.weight(found.len());
            whole += weight;
            for (at, count) in found {
                let length = 1.0 - B + B * self.lengths[*at] / self.average;
                // Saturates at 1, so that a text with every word often reaches the whole.
                scores[*at] += weight * (count * (K1 + 1.0) / (count + K1 * length)).min(1.0);
            }
        }
        if whole > 0.0 {
            scores.iter_mut().for_each(|score| *score /= whole);
        }
        scores
    }

    /// What a word tells that so many texts have.
    fn weight(&self, holders: usize) -> f64 {
        let (all, holders) = (self.lengths.len() as f64, holders as f64);
        ((all - holders + 0.5) / (holders + 0.5) + 1.0).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_tell_more_and_scores_are_bounded() {
        let texts = [
            "The old bridge crosses the river",
            "The new bridge crosses the river",
            "A lighthouse on the cliff",
            "The old bridge, the old bridge, the old bridge over the river was built in 1429",
        ];
        let ready = Texts::new(&texts);
        let scores = ready.scores("When was the old bridge built?");
        assert!(scores[3] > scores[0] && scores[0] > scores[1] && scores[1] > scores[2]);
        assert_eq!(scores[2], 0.0);
        assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)));
        assert_eq!(Texts::new::<&str>(&[]).scores("x"), Vec::<f64>::new());
        assert_eq!(ready.scores("the of"), [0.0; 4]);
    }
}
