//! The words of a passage that a citation shows.

use super::sentences::is_end;
use super::words::word_set;

/// Most characters that are shown.
const MOST: usize = 240;

/// The sentence of a passage that is closest to what is `said` of it, on one line; a long one is cut.
pub fn excerpt(passage: &str, said: &str) -> String {
    let said = word_set(said);
    let parts = parts(passage);
    let shared = |part: &&String| word_set(part).intersection(&said).count();
    // Of those that share as many words the first, which `max_by_key` alone would not give.
    let best = parts.iter().rev().max_by_key(shared);
    let text = best.map_or("", String::as_str);
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let cut: String = text.chars().take(MOST).collect();
    let whole = cut.rfind(' ').map_or(cut.as_str(), |at| &cut[..at]);
    format!("{whole}…")
}

/// The sentences of a passage; a line of its own ends one where it is a table's or a heading's.
fn parts(passage: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for block in passage.split("\n\n") {
        let words: Vec<&str> = block.split_whitespace().collect();
        let mut from = 0;
        for (at, word) in words.iter().enumerate() {
            let bare = word.trim_end_matches(['"', '\'', ')', '”', '’']);
            let next = words.get(at + 1).and_then(|next| next.chars().next());
            let new = next.is_none_or(|c| !c.is_lowercase());
            if bare.ends_with(is_end) && new {
                parts.push(words[from..=at].join(" "));
                from = at + 1;
            }
        }
        if from < words.len() {
            parts.push(words[from..].join(" "));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_that_says_it_is_shown() {
        let passage = "The lantern is a lamp\nof blue glass. It was built by Ottoline Frask in 1887. \
                       She lived in Ham.\n\nOpening hours";
        assert_eq!(
            excerpt(passage, "Ottoline Frask built it"),
            "It was built by Ottoline Frask in 1887."
        );
        assert_eq!(
            excerpt(passage, "nothing shared"),
            "The lantern is a lamp of blue glass."
        );
        assert_eq!(excerpt("", "x"), "");
    }

    #[test]
    fn a_long_one_is_cut_between_words() {
        let long = "word ".repeat(100);
        let shown = excerpt(&long, "word");
        assert!(shown.chars().count() <= MOST + 1, "{shown}");
        assert!(shown.ends_with("word…"), "{shown}");
    }
}
