//! What a sentence says that something is: definitions in running text and in lists of terms.

use super::grammar::{apposition_end, joined, subject, tokens};
use super::lexicon::{ARTICLES, BE, PREPOSITIONS, PRONOUNS, is};

/// What a sentence says its first thing is: the thing, and the definition as a sentence.
pub(super) fn definition(sentence: &str, before: Option<&str>) -> Option<(String, String)> {
    if sentence.ends_with('?') {
        return None;
    }
    if let Some(listed) = listed(sentence) {
        return Some(listed);
    }
    let tokens = tokens(sentence);
    let (name, at) = subject(&tokens, before)?;
    if let Some(end) = apposition_end(&tokens, at) {
        let what = joined(&tokens[at..end]);
        return Some((name.clone(), format!("{name} is {what}.")));
    }
    let verb = tokens.get(at)?.word.to_lowercase();
    let next = tokens.get(at + 1)?.word.to_lowercase();
    let defines = (is(BE, &verb) && is(&["a", "an", "the", "one"], &next))
        || (is(&["means", "denotes"], &verb))
        || (verb == "refers" && next == "to");
    if !defines || tokens.len() < at + 3 {
        return None;
    }
    let named = !is(PRONOUNS, tokens[0].word);
    let rest = joined(&tokens[at..]);
    let text = if named {
        sentence.to_owned()
    } else {
        format!("{name} {rest}.")
    };
    Some((name, text))
}

/// The words of a definition that say what kind of thing it is: "stone bridge" of "The Old Bridge is a stone
/// bridge over the river".
pub(super) fn kind(definition: &str) -> Vec<String> {
    let tokens = tokens(definition);
    let copula = |at: &usize| {
        is(BE, tokens[*at].word)
            && tokens
                .get(at + 1)
                .is_some_and(|next| is(ARTICLES, next.word))
    };
    let from = (0..tokens.len()).find(copula).map_or(0, |at| at + 2);
    let mut words = Vec::new();
    for token in &tokens[from..] {
        let ends =
            is(PREPOSITIONS, token.word) || is(&["which", "that", "who", "where"], token.word);
        // "one of the bridges of the town"
        if ends && !(words.is_empty() && is(&["of"], token.word)) {
            break;
        }
        if !is(ARTICLES, token.word) && !ends {
            words.push(token.word.to_lowercase());
        }
        if token.pause {
            break;
        }
    }
    words
}

/// An entry of a list of terms: "**Term**: what it is", "- Term – what it is".
fn listed(sentence: &str) -> Option<(String, String)> {
    let item = sentence.strip_prefix("- ").or(sentence.strip_prefix("* "));
    let line = item.unwrap_or(sentence);
    let bold = line.starts_with("**");
    if item.is_none() && !bold {
        return None;
    }
    let (term, rest) = [":**", "**:", ": ", " \u{2013} ", " \u{2014} ", " - "]
        .iter()
        .find_map(|mark| line.split_once(mark))?;
    let term = term.trim_matches(['*', ' ']);
    let rest = rest
        .trim_start_matches(['*', ':', ' ', '\u{2013}', '\u{2014}', '-'])
        .trim();
    let words = term.split_whitespace().count();
    let fits = (1..=6).contains(&words) && rest.split_whitespace().count() >= 3;
    (fits && !term.ends_with('.')).then(|| (term.to_owned(), rest.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_recognised() {
        for (sentence, expected) in [
            (
                "The Old Bridge is a stone bridge over the Sell.",
                Some((
                    "Old Bridge",
                    "The Old Bridge is a stone bridge over the Sell.",
                )),
            ),
            (
                "An arch is a curved structure.",
                Some(("arch", "An arch is a curved structure.")),
            ),
            (
                "It is the oldest bridge of the town.",
                Some(("Old Bridge", "Old Bridge is the oldest bridge of the town.")),
            ),
            (
                "Nerina Vosk, an architect from Tarn, designed it.",
                Some(("Nerina Vosk", "Nerina Vosk is an architect from Tarn.")),
            ),
            (
                "- **Keystone**: the stone at the top of an arch",
                Some(("Keystone", "the stone at the top of an arch")),
            ),
            ("The Old Bridge was built in 1429.", None),
            ("What is a bridge?", None),
            ("There is a bridge.", None),
            ("This is a test.", None),
        ] {
            let found = definition(sentence, Some("Old Bridge"));
            let found = found
                .as_ref()
                .map(|(name, text)| (name.as_str(), text.as_str()));
            assert_eq!(found, expected, "{sentence}");
        }
    }
}
