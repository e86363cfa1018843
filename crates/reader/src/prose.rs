//! Running text as sentences: lines that were broken for their length are joined, headings, list items and
//! rows of tables stand for themselves.

use super::languages::{is_full_stop, is_han, is_hiragana};
use super::rows::is_row;

/// Words after which a full stop ends nothing.
const ABBREVIATIONS: &[&str] = &[
    "al", "approx", "c", "ca", "cf", "co", "dr", "e.g", "ed", "etc", "fig", "i.e", "inc", "jr",
    "ltd", "mr", "mrs", "ms", "mt", "no", "nr", "p", "pp", "prof", "sr", "st", "vol", "vs",
];

/// The sentences of a text, in order, each on one line.
pub(super) fn sentences(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut paragraph = String::new();
    for line in text.lines() {
        let line = line.trim();
        if alone(line) {
            close(&mut sentences, &mut paragraph);
            if line.chars().any(char::is_alphanumeric) {
                let bare = line.trim_start_matches(['#', '>', '|', ' ']);
                split(bare.trim_end_matches(['|', ' ']), &mut sentences);
            }
            continue;
        }
        if starts_item(line) {
            close(&mut sentences, &mut paragraph);
        }
        // A word that was broken at the end of a line.
        let broken = paragraph.ends_with('-')
            && paragraph
                .chars()
                .rev()
                .nth(1)
                .is_some_and(char::is_alphabetic)
            && line.starts_with(char::is_lowercase);
        let spaced = !paragraph.ends_with(is_unspaced) || !line.starts_with(is_unspaced);
        if broken {
            paragraph.pop();
        } else if !paragraph.is_empty() && spaced {
            paragraph.push(' ');
        }
        paragraph.push_str(line);
    }
    close(&mut sentences, &mut paragraph);
    sentences
}

/// Whether a line belongs to no paragraph.
fn alone(line: &str) -> bool {
    line.is_empty() || line.starts_with(['#', '|']) || line.starts_with("```") || is_row(line)
}

/// A character beside which a broken line has no space.
fn is_unspaced(c: char) -> bool {
    is_han(c) || is_hiragana(c) || is_full_stop(c)
}

fn starts_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = number.len() < line.len() && number.starts_with([')', '.']);
    ["- ", "* ", "+ ", "\u{2022} "]
        .iter()
        .any(|mark| line.starts_with(mark))
        || (numbered && number[1..].starts_with(' '))
}

fn close(sentences: &mut Vec<String>, paragraph: &mut String) {
    let text = std::mem::take(paragraph);
    split(&text, sentences);
}

fn split(text: &str, sentences: &mut Vec<String>) {
    let mut from = 0;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let rest = &text[end..];
        if is_full_stop(c) {
            let quoted = rest
                .chars()
                .next()
                .filter(|c| matches!(c, '\u{300d}' | '\u{300f}'));
            let end = end + quoted.map_or(0, char::len_utf8);
            push(text.get(from..end).unwrap_or_default(), sentences);
            from = end;
        } else if matches!(c, '.' | '!' | '?') && ends(&text[from..at], c, rest) {
            push(&text[from..end], sentences);
            from = end;
        }
    }
    push(&text[from..], sentences);
}

fn push(text: &str, sentences: &mut Vec<String>) {
    let words: Vec<&str> = text.split_whitespace().collect();
    if text.chars().any(char::is_alphanumeric) {
        sentences.push(words.join(" "));
    }
}

/// Whether a mark ends the sentence before it.
fn ends(before: &str, mark: char, rest: &str) -> bool {
    if !rest.starts_with(char::is_whitespace) {
        return false;
    }
    let next = rest.trim_start().chars().next();
    if next.is_some_and(char::is_lowercase) {
        return false;
    }
    if mark != '.' {
        return true;
    }
    let word = before.split_whitespace().next_back().unwrap_or_default();
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    !initial && !ABBREVIATIONS.contains(&word.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_sentences_cut() {
        let text = "# The town\n\nThe Old Bridge was built by\nDr. N. Vosk in 1429. It leads over the riv-\ner \
                    Sell! Is it\nold?\n\n- one item\n- another item\n  goes on\n| a | b |\nAt 3.5 m, e.g. \
                    here, it ends";
        assert_eq!(
            sentences(text),
            [
                "The town",
                "The Old Bridge was built by Dr. N. Vosk in 1429.",
                "It leads over the river Sell!",
                "Is it old?",
                "- one item",
                "- another item goes on",
                "a | b",
                "At 3.5 m, e.g. here, it ends",
            ]
        );
        assert_eq!(sentences("\n---\n \u{0}"), Vec::<String>::new());
    }

    #[test]
    fn sentences_without_spaces_between_them_are_cut() {
        assert_eq!(
            sentences("橋は1429年に\n建てられた。「古い。」と言う。川は冷たい！"),
            [
                "橋は1429年に建てられた。",
                "「古い。」",
                "と言う。",
                "川は冷たい！"
            ]
        );
    }

    #[test]
    fn rows_of_tables_stand_for_themselves() {
        assert_eq!(
            sentences(
                "order,date,customer\nS-1,2026-03-01,Kite\nS-2,2026-03-02,Kestrel\nIt goes on\nhere."
            ),
            [
                "order,date,customer",
                "S-1,2026-03-01,Kite",
                "S-2,2026-03-02,Kestrel",
                "It goes on here.",
            ]
        );
    }
}
