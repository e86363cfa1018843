//! One form for words that are the same word however their characters are stored: an accent as a character of its own or
//! within a letter, Latin letters as wide as ideographs, letters that are drawn together, a place where a word may be
//! parted at the end of a line. Signs that have another word as their long form (`™`, `²`) stay as they are.

use std::borrow::Cow;

use unicode_normalization::char::decompose_compatible;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The text in the form that it is compared in; case stays. A text that has this form is handed back.
pub fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let other = |c: char| is_variant(c) || is_unseen(c);
    if !text.chars().any(other) && is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !is_unseen(*c)) {
        match is_variant(c) {
            true => decompose_compatible(c, |part| plain.push(part)),
            false => plain.push(c),
        }
    }
    Cow::Owned(plain.nfc().collect())
}

/// As [`composed`], and with `ß` as capitals have it: STRASSE is Straße. For words that are looked for, never for names.
pub fn folded(text: &str) -> Cow<'_, str> {
    let text = composed(text);
    match text.contains(['ß', 'ẞ']) {
        true => Cow::Owned(text.replace(['ß', 'ẞ'], "ss")),
        false => text,
    }
}

/// Characters that are there for how they look: letters drawn together, Arabic letters by their place in a word, Latin
/// letters of full and Katakana of half width, letters of formulas.
fn is_variant(c: char) -> bool {
    matches!(c, '\u{fb00}'..='\u{fb06}' | '\u{fb13}'..='\u{fb17}' | '\u{fb50}'..='\u{fdf9}' | '\u{fe70}'..='\u{fefc}'
        | '\u{ff01}'..='\u{ffdc}' | '\u{1d400}'..='\u{1d7ff}')
}

/// Characters within a word that nobody sees: soft hyphens, and what forbids a line end.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{2060}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_has_one_form() {
        for (one, other) in [
            ("cafe\u{301}", "café"),
            ("\u{1112}\u{1161}\u{11ab}", "한"),
            ("か\u{3099}", "が"),
            ("ＡＢＣ１２", "ABC12"),
            ("ﾊﾞｽ", "バス"),
            ("o\u{fb03}ce", "office"),
            ("𝐀lamp", "Alamp"),
            ("\u{fefb}", "لا"),
            ("\u{212b}", "Å"),
            ("Ge\u{ad}samt\u{ad}kon\u{2060}zept", "Gesamtkonzept"),
        ] {
            assert_eq!(composed(one), other);
            assert!(matches!(composed(other), Cow::Borrowed(_)), "{other}");
        }
        for plain in ["Acme™", "m²", "x¹", "½", "№", "…"] {
            assert_eq!(composed(plain), plain);
        }
        assert_eq!(folded("Stra\u{df}e GRO\u{1e9e}"), "Strasse GROss");
        assert!(matches!(folded("lamp"), Cow::Borrowed(_)));
    }
}
