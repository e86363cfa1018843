//! Words of a text as they are compared: lower case, cut at case changes, plural and tense endings off.
//! Words that say nothing on their own are left out.

use std::collections::HashSet;

use crate::forms::folded;

/// Words of one text that are looked at.
const MOST: usize = 4_000;
/// Words that most texts have, in the languages most used.
const EMPTY: &[&str] = &[
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could",
    "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "me", "my", "of", "on", "or", "our", "she", "so", "some",
    "tell", "than", "that", "the", "their", "them", "there", "these", "they", "this", "those",
    "to", "us", "was", "we", "were", "what", "when", "where", "which", "who", "whom", "whose",
    "why", "will", "with", "would", "you", "your", "der", "die", "das", "und", "ist", "ein",
    "eine", "von", "le", "la", "les", "et", "est", "un", "une", "des", "du", "de", "el", "los",
    "las", "y", "es",
];

/// The telling words of a text, in order, with repeats.
pub fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in folded(text).chars() {
        if found.len() >= MOST {
            return found;
        }
        let camel = before.is_lowercase() && c.is_uppercase();
        if !c.is_alphanumeric() || camel || is_ideograph(c) {
            push(&mut found, &mut word);
        }
        if is_ideograph(c) {
            found.push(c.to_string());
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    push(&mut found, &mut word);
    found
}

/// The different telling words of a text.
pub fn word_set(text: &str) -> HashSet<String> {
    words(text).into_iter().collect()
}

/// All words as they stand, in lower case: for telling texts apart, not for meaning.
pub fn plain_set(text: &str) -> HashSet<String> {
    folded(text)
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .take(MOST)
        .map(str::to_lowercase)
        .collect()
}

fn push(found: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() {
        let taken = std::mem::take(word);
        if !EMPTY.contains(&taken.as_str()) {
            found.push(stem(taken));
        }
    }
}

/// Scripts written without blanks: each character is a word.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

/// Takes the commonest endings off, so that `bridges` and `bridge`, `completed` and `completes` meet. Never
/// shortens a word below four letters.
fn stem(word: String) -> String {
    if !word.is_ascii() || word.bytes().any(|b| b.is_ascii_digit()) {
        return word;
    }
    let mut word = word;
    let cut = |word: &mut String, by: usize| word.truncate(word.len() - by);
    if word.len() > 5 && word.ends_with("ies") {
        cut(&mut word, 3);
        word.push('y');
    } else if word.len() > 4
        && word.ends_with('s')
        && !word.ends_with("ss")
        && !word.ends_with("us")
    {
        cut(&mut word, 1);
    }
    if word.len() > 6 && word.ends_with("ing") {
        cut(&mut word, 3);
    } else if word.len() > 5 && word.ends_with("ed") {
        cut(&mut word, 2);
    }
    if word.len() > 4 && word.ends_with('e') {
        cut(&mut word, 1);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_meet() {
        for (one, other) in [
            ("bridges", "bridge"),
            ("completed", "completes"),
            ("cities", "city"),
            ("wasBuiltIn", "was built in"),
            ("old-bridge", "Old Bridge"),
            ("opening", "opened"),
            ("cafe\u{301} au lait", "Café au lait"),
            ("ｂｒｉｄｇｅ", "bridges"),
            ("Große Straße", "GROSSE STRASSE"),
        ] {
            assert_eq!(words(one), words(other), "{one} {other}");
        }
        assert_ne!(words("glass"), words("glas"));
        assert_eq!(words("Who is the 14th?"), ["14th"]);
        assert_eq!(words("東京都"), ["東", "京", "都"]);
    }
}
