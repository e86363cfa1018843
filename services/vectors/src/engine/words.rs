//! From a question to a full-text expression: each word a quoted phrase, all of them OR-ed. Texts are indexed in one form
//! ([`indexed`]), and a word is looked for in that form and as it was asked for, as older texts were indexed as they stood.
//! Pure.

use std::borrow::Cow;

use tg_citations::forms::folded;

/// Words of a question that count; more add nothing but time.
const MOST_WORDS: usize = 64;
/// Longest word, in characters.
const LONGEST: usize = 200;

/// English words that nearly every text holds. They are left out when a question has others: they rank
/// nothing, and make the search read every chunk there is.
const COMMON: [&str; 58] = [
    "a", "about", "an", "and", "are", "as", "at", "be", "been", "by", "can", "did", "do", "does",
    "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "me",
    "my", "no", "not", "of", "on", "or", "our", "that", "the", "their", "them", "there", "these",
    "they", "this", "to", "was", "we", "were", "what", "when", "where", "which", "who", "why",
    "will", "with", "would", "you", "your",
];

/// A text as its words are indexed.
pub fn indexed(text: &str) -> Cow<'_, str> {
    folded(text)
}

/// The expression for a question; `None` when it holds no word.
pub fn expression(question: &str) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    for word in question.split(|c: char| c.is_whitespace() || c.is_control()) {
        let word: String = word.chars().take(LONGEST).collect();
        if word.chars().any(char::is_alphanumeric) && !words.contains(&word) {
            words.push(word);
        }
    }
    let bare = |word: &String| {
        let inner = word.trim_matches(|c: char| !c.is_alphanumeric());
        inner.to_lowercase()
    };
    let telling = |word: &&String| !COMMON.contains(&bare(word).as_str());
    let chosen: Vec<&String> = match words.iter().any(|word| telling(&word)) {
        true => words.iter().filter(telling).collect(),
        false => words.iter().collect(),
    };
    let phrase = |word: &str| format!("\"{}\"", word.replace('"', "\"\""));
    let mut phrases = Vec::new();
    for word in chosen.into_iter().take(MOST_WORDS) {
        let form = indexed(word);
        if form != word.as_str() {
            phrases.push(phrase(&form));
        }
        phrases.push(phrase(word));
    }
    (!phrases.is_empty()).then(|| phrases.join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_and_common_ones_left_out() {
        let asked = expression("What is the  \"warp\" core's NEAR(temp)?");
        assert_eq!(asked.unwrap(), r#""""warp""" OR "core's" OR "NEAR(temp)?""#);
        assert_eq!(expression("who is who").unwrap(), r#""who" OR "is""#);
        assert_eq!(expression(" ?? \u{0} -- \n"), None);
        assert_eq!(expression(""), None);
    }

    #[test]
    fn words_are_asked_for_in_their_one_form_and_as_they_were_said() {
        let asked = expression("cafe\u{301} ＵＰＳ lamp").unwrap();
        assert_eq!(
            asked,
            "\"café\" OR \"cafe\u{301}\" OR \"UPS\" OR \"ＵＰＳ\" OR \"lamp\""
        );
    }

    #[test]
    fn long_questions_are_bounded() {
        let question: String = (0..1_000).map(|n| format!("w{n} ")).collect();
        let asked = expression(&question).unwrap();
        assert_eq!(asked.matches(" OR ").count(), MOST_WORDS - 1);
    }
}
