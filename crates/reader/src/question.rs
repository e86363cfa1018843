//! What a question is about: the things it names, what it wants to know of them, and the kind of value
//! that would answer it.

use super::languages::{self, is_german, is_small};
use super::wanted::Wanted;
use super::words;

/// A question, taken apart.
#[derive(Debug, Clone)]
pub(super) struct Question<'a> {
    pub(super) text: &'a str,
    pub(super) wanted: Wanted,
    /// Names of things, most promising first.
    pub(super) names: Vec<String>,
    /// Words that carry meaning.
    pub(super) words: Vec<String>,
    /// Whether it is German, where every noun has a capital.
    pub(super) german: bool,
}

/// Small words that may stand inside a name.
const INSIDE: &[&str] = &[
    "of", "the", "de", "la", "le", "du", "von", "van", "and", "&", "der", "di", "da",
];

/// Bytes of a question that are read: each of its words is looked for in every sentence.
const READ: usize = 4 << 10;

/// As much of a question as is read.
pub(super) fn bounded(text: &str) -> &str {
    let mut end = text.len().min(READ);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl<'a> Question<'a> {
    /// Takes a question apart.
    pub(super) fn read(text: &'a str) -> Self {
        let text = bounded(text);
        let german = is_german(&words::split(text));
        let mut words = words::content(text);
        words.retain(|word| !is_small(word, german));
        let mut names = quoted(text);
        add(&mut names, capitalised(text));
        if names.is_empty() {
            add(&mut names, phrases(text));
        }
        Self {
            text,
            wanted: languages::wanted(&text.to_lowercase(), german).unwrap_or_else(|| wanted(text)),
            names,
            words,
            german,
        }
    }

    /// Words of the question that are not part of a name: what is asked about it.
    pub(super) fn asked_beside(&self, name: &str) -> Vec<String> {
        let of_name = words::split(name);
        self.words
            .iter()
            .filter(|word| !of_name.iter().any(|part| words::same(part, word)))
            .cloned()
            .collect()
    }

    /// The plural noun of "how many …", "list all …", "which … are there".
    pub(super) fn class(&self) -> Option<String> {
        let lower = words::split(self.text);
        let at = lower.iter().position(|word| {
            matches!(
                word.as_str(),
                "many" | "all" | "list" | "which" | "what" | "every" | "kinds"
            )
        })?;
        let noun: Vec<&str> = lower[at + 1..]
            .iter()
            .map(String::as_str)
            .skip_while(|word| words::is_stop(word) && !matches!(*word, "is" | "was"))
            .take_while(|word| !words::is_stop(word))
            .take(3)
            .collect();
        let last = noun.last()?;
        let mut class = noun[..noun.len() - 1].to_vec();
        let single = singular(last);
        class.push(&single);
        Some(class.join(" "))
    }

    /// Whether it asks for a count.
    pub(super) fn counts(&self) -> bool {
        self.text.to_lowercase().contains("how many")
    }
}

fn singular(word: &str) -> String {
    if let Some(stem) = word.strip_suffix("ies") {
        return format!("{stem}y");
    }
    for ending in ["ches", "shes", "sses", "xes"] {
        if word.ends_with(ending) {
            return word[..word.len() - 2].to_owned();
        }
    }
    match word.strip_suffix('s') {
        Some(stem) if !stem.ends_with('s') => stem.to_owned(),
        _ => word.to_owned(),
    }
}

fn wanted(text: &str) -> Wanted {
    let lower = text.to_lowercase();
    let words = words::split(&lower);
    let has = |word: &str| words.iter().any(|other| other == word);
    if has("when") || lower.contains("what year") || lower.contains("which year") || has("date") {
        Wanted::When
    } else if has("where") {
        Wanted::Where
    } else if has("who") || has("whom") || has("whose") {
        Wanted::Who
    } else if has("how")
        && [
            "many", "much", "long", "tall", "high", "deep", "wide", "old", "big", "large", "heavy",
            "far",
        ]
        .iter()
        .any(|word| has(word))
    {
        Wanted::Number
    } else {
        Wanted::Open
    }
}

fn add(names: &mut Vec<String>, more: Vec<String>) {
    for name in more {
        if !names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            names.push(name);
        }
    }
}

fn quoted(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (open, close) in [
        ('"', '"'),
        ('\u{201c}', '\u{201d}'),
        ('\u{ab}', '\u{bb}'),
        ('`', '`'),
    ] {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once(open) {
            let Some((name, tail)) = after.split_once(close) else {
                break;
            };
            if !name.trim().is_empty() && name.len() <= 200 {
                names.push(name.trim().to_owned());
            }
            rest = tail;
        }
    }
    names
}

/// Runs of words that start with a capital letter or a digit.
fn capitalised(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut run: Vec<&str> = Vec::new();
    let mut small: Vec<&str> = Vec::new();
    for (at, token) in text.split_whitespace().enumerate() {
        let opens = token.starts_with(['(', '"']);
        let word = token.trim_matches(|c: char| !c.is_alphanumeric());
        let bare = word
            .strip_suffix("'s")
            .or(word.strip_suffix("\u{2019}s"))
            .unwrap_or(word);
        let ends = token.ends_with([',', '?', '!', ';', ':', ')', '"']) || bare.len() != word.len();
        let big = bare
            .chars()
            .next()
            .is_some_and(|c| c.is_uppercase() || c.is_numeric());
        let opener = at == 0 && words::is_stop(&bare.to_lowercase());
        if opens {
            close(&mut names, &mut run, &mut small);
        }
        if big && !opener && bare != "I" {
            run.append(&mut small);
            run.push(bare);
        } else if !run.is_empty() && INSIDE.contains(&bare) && small.len() < 2 {
            small.push(bare);
        } else {
            close(&mut names, &mut run, &mut small);
        }
        if ends {
            close(&mut names, &mut run, &mut small);
        }
    }
    close(&mut names, &mut run, &mut small);
    names.sort_by_key(|name| rank(name));
    names
}

/// How likely a run is the name of the thing that is asked about: several words before one, one before
/// an abbreviation, that before a bare number.
fn rank(name: &str) -> u8 {
    if !name.chars().any(char::is_alphabetic) {
        3
    } else if !name.chars().any(char::is_lowercase) {
        2
    } else {
        u8::from(!name.contains(' '))
    }
}

fn close(names: &mut Vec<String>, run: &mut Vec<&str>, small: &mut Vec<&str>) {
    if !run.is_empty() {
        names.push(run.join(" "));
    }
    run.clear();
    small.clear();
}

/// For a question without capitals: its runs of meaningful words, without the last one first, because
/// that is often the verb.
fn phrases(text: &str) -> Vec<String> {
    let mut runs: Vec<Vec<String>> = vec![Vec::new()];
    for word in words::split(text) {
        if words::is_stop(&word) {
            runs.push(Vec::new());
        } else if let Some(run) = runs.last_mut() {
            run.push(word);
        }
    }
    runs.retain(|run| !run.is_empty());
    runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
    let mut names = Vec::new();
    for run in runs {
        if run.len() > 1 {
            names.push(run[..run.len() - 1].join(" "));
        }
        names.push(run.join(" "));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        for (text, expected) in [
            ("When was the Old Bridge built?", vec!["Old Bridge"]),
            ("Who wrote \"the glass sea\"?", vec!["the glass sea"]),
            (
                "What is the capital of Freedonia's Union of Nine?",
                vec!["Union of Nine", "Freedonia"],
            ),
            (
                "In 1429 who ruled Zorblax Prime?",
                vec!["Zorblax Prime", "1429"],
            ),
            (
                "when was the old bridge built?",
                vec!["old bridge", "old bridge built"],
            ),
        ] {
            assert_eq!(Question::read(text).names, expected, "{text}");
        }
    }

    #[test]
    fn what_is_asked_and_wanted() {
        let question = Question::read("When was the Old Bridge built?");
        assert_eq!(question.asked_beside("Old Bridge"), ["built"]);
        assert_eq!(question.wanted, Wanted::When);
        assert_eq!(
            Question::read("How many bridges are there?")
                .class()
                .as_deref(),
            Some("bridge")
        );
        assert_eq!(
            Question::read("List all stone churches").class().as_deref(),
            Some("stone church")
        );
    }
}
