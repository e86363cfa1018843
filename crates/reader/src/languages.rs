//! Questions in other languages than English: German by its small words, Chinese and Japanese by their characters. Knows how a
//! question is asked and no subject.

use super::wanted::Wanted;

/// Words that begin a German question, each enough to know one.
const GERMAN_ASKING: &[&str] = &[
    "wann", "warum", "welche", "welchem", "welchen", "welcher", "welches", "wem", "wer", "wessen",
    "weshalb", "wie", "wieso", "wieviel", "wieviele", "wo", "woher", "wohin", "womit",
];
/// Other small words of German; some are English words of another meaning, so that they count in a German question only.
const GERMAN_SMALL: &[&str] = &[
    "als", "am", "an", "auch", "auf", "aus", "bei", "beim", "bitte", "damit", "das", "dass", "dem",
    "den", "denn", "der", "des", "die", "dies", "diese", "diesem", "diesen", "dieser", "dieses",
    "du", "durch", "ein", "eine", "einem", "einen", "einer", "eines", "er", "es", "für", "gab",
    "gegen", "genau", "gibt", "groß", "haben", "hat", "hatte", "heißen", "heißt", "hoch", "ihr",
    "ihre", "im", "in", "ist", "kann", "können", "lang", "lange", "man", "mit", "muss", "müssen",
    "nach", "nicht", "oder", "sein", "seine", "sie", "sind", "soll", "sollen", "und", "unter",
    "viel", "viele", "vom", "von", "vor", "war", "waren", "was", "werden", "wird", "wurde",
    "wurden", "zu", "zum", "zur", "über",
];
/// Characters of Chinese and Japanese that say how something is asked, or only join others.
const SMALL_CHARACTERS: &str = "的是了在什么麼甚时時候何哪里裡谁誰多少几幾吗嗎呢这這那个個有和与與怎样樣为為请請问問被由也就都一及或之其";
/// Ways of asking for a kind of value, in all of them.
const ASKS: &[(&str, Wanted)] = &[
    ("wann ", Wanted::When),
    ("bis wann", Wanted::When),
    ("in welchem jahr", Wanted::When),
    ("什么时候", Wanted::When),
    ("什麼時候", Wanted::When),
    ("何时", Wanted::When),
    ("何時", Wanted::When),
    ("哪一年", Wanted::When),
    ("哪年", Wanted::When),
    ("何年", Wanted::When),
    ("いつ", Wanted::When),
    ("wo ", Wanted::Where),
    ("哪里", Wanted::Where),
    ("哪裡", Wanted::Where),
    ("どこ", Wanted::Where),
    ("wer ", Wanted::Who),
    ("wem ", Wanted::Who),
    ("谁", Wanted::Who),
    ("誰", Wanted::Who),
    ("だれ", Wanted::Who),
    ("wie viel", Wanted::Number),
    ("wieviel", Wanted::Number),
    ("wie lange", Wanted::Number),
    ("wie hoch", Wanted::Number),
    ("wie groß", Wanted::Number),
    ("wie alt", Wanted::Number),
    ("多少", Wanted::Number),
    ("いくつ", Wanted::Number),
    ("いくら", Wanted::Number),
    ("何人", Wanted::Number),
];

/// Whether the lower-case words of a question are German.
pub(super) fn is_german(words: &[String]) -> bool {
    words
        .iter()
        .any(|word| GERMAN_ASKING.contains(&word.as_str()))
}

/// Whether a lower-case word of a question only says how it is asked.
pub(super) fn is_small(word: &str, german: bool) -> bool {
    let mut chars = word.chars();
    let one = chars.next().filter(|_| chars.next().is_none());
    one.is_some_and(|c| SMALL_CHARACTERS.contains(c))
        || (german && (GERMAN_ASKING.contains(&word) || GERMAN_SMALL.contains(&word)))
}

/// The kind of value that a question asks for, if one of these languages says so.
pub(super) fn wanted(lower: &str, german: bool) -> Option<Wanted> {
    let fits = |words: &str| {
        let other = words.chars().next().is_some_and(|c| !c.is_ascii());
        let said = match other {
            true => lower.contains(words),
            false => lower.starts_with(words) || lower.contains(&format!(" {words}")),
        };
        said && (other || german)
    };
    let found = ASKS.iter().find(|(words, _)| fits(words));
    found.map(|(_, wanted)| *wanted)
}

/// A character that is a word of its own: of Chinese, and of Japanese as far as it is written so.
pub(super) fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// A letter of Japanese that writes endings and small words.
pub(super) fn is_hiragana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{309f}')
}

/// A mark that ends a sentence of Chinese or Japanese; no space follows it.
pub(super) fn is_full_stop(c: char) -> bool {
    matches!(c, '\u{3002}' | '\u{ff01}' | '\u{ff1f}' | '\u{ff0e}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn german_is_known_by_its_question_words() {
        let words = |text: &str| super::super::words::split(text);
        assert!(is_german(&words("Wann wurde die Brücke gebaut?")));
        for english in [
            "Where did Mies van der Rohe die?",
            "When was the war over?",
            "Who wore the hat?",
        ] {
            assert!(!is_german(&words(english)), "{english}");
        }
        assert!(is_small("die", true) && !is_small("die", false));
    }

    #[test]
    fn the_kind_of_value_is_known() {
        for (text, german, kind) in [
            ("wann wurde sie gebaut?", true, Wanted::When),
            ("这座桥是什么时候建成的？", false, Wanted::When),
            ("橋はどこにありますか？", false, Wanted::Where),
            ("wer hat sie entworfen?", true, Wanted::Who),
            ("wie viele leben dort?", true, Wanted::Number),
        ] {
            assert_eq!(wanted(text, german), Some(kind), "{text}");
        }
        assert_eq!(wanted("when was it built?", false), None);
    }
}
