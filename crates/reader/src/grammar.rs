//! A little English grammar: who does what to what in a sentence. Knows words of the language and no subject;
//! what it does not recognise it leaves alone.

use super::lexicon::{
    ADDING, ADVERBS, ARTICLES, AUXILIARIES, BE, CONDITIONS, INSIDE, IRREGULAR, MONTHS, OPENERS,
    PREPOSITIONS, PRONOUNS, is, is_big, is_number, is_verb,
};

/// A fact that a sentence states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) subject: String,
    pub(super) predicate: String,
    pub(super) object: String,
    /// Whether the object is a thing rather than a value.
    pub(super) entity: bool,
}

/// One word with the marks around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) word: &'a str,
    /// A comma or semicolon follows.
    pub(super) pause: bool,
    /// It opens a parenthesis or quotation.
    opens: bool,
}

/// Most words of a thing that has no name.
const NOUN_WORDS: usize = 4;
/// Most parts of a thing that "of" joins; a longer chain is a description.
const MOST_OF: usize = 3;

/// The words of a sentence.
pub(super) fn tokens(sentence: &str) -> Vec<Token<'_>> {
    sentence
        .split_whitespace()
        .filter_map(|raw| {
            let word = raw.trim_matches(|c: char| !c.is_alphanumeric() && c != '&');
            let word = word
                .strip_suffix("'s")
                .or(word.strip_suffix("\u{2019}s"))
                .unwrap_or(word);
            (!word.is_empty()).then(|| Token {
                word,
                pause: raw.ends_with([',', ';', ':', ')', '.']),
                opens: raw.starts_with(['(', '"', '\u{201c}']),
            })
        })
        .collect()
}

/// The thing a sentence begins with, and where the rest begins.
pub(super) fn subject(tokens: &[Token<'_>], before: Option<&str>) -> Option<(String, usize)> {
    let first = tokens.first()?.word;
    if is(PRONOUNS, first) {
        return Some((before?.to_owned(), 1));
    }
    if is(OPENERS, first) {
        return None;
    }
    let from = usize::from(is(ARTICLES, first));
    if tokens
        .get(from)
        .is_some_and(|token| is_big(token.word) && !is(PREPOSITIONS, token.word))
    {
        let end = name_end(tokens, from);
        return Some((joined(&tokens[from..end]), end));
    }
    // A thing without a name: an article and a few nouns up to the verb.
    if from == 0 {
        return None;
    }
    let end =
        (from + 1..tokens.len().min(from + NOUN_WORDS + 1)).find(|at| is_verb(tokens[*at].word))?;
    let noun = &tokens[from..end];
    let plain = |token: &Token<'_>| !is(PREPOSITIONS, token.word) && !token.pause && !token.opens;
    noun.iter().all(plain).then(|| (joined(noun), end))
}

/// Where a name that begins at `from` ends.
fn name_end(tokens: &[Token<'_>], from: usize) -> usize {
    let mut end = from + 1;
    if tokens[from].pause {
        return end;
    }
    let mut at = end;
    while let Some(token) = tokens.get(at) {
        let goes_on = is_big(token.word) || is_number(token.word);
        let small = is(INSIDE, token.word) && at < end + 2;
        if token.opens || !(goes_on || small) {
            break;
        }
        // "and" binds only names that are obviously one.
        if is(&["and"], token.word) {
            break;
        }
        at += 1;
        if goes_on {
            end = at;
            if token.pause {
                break;
            }
        }
    }
    end
}

/// Words as a text.
pub(super) fn joined(tokens: &[Token<'_>]) -> String {
    let words: Vec<&str> = tokens.iter().map(|token| token.word).collect();
    words.join(" ")
}

/// What a verb phrase leads to, with all that "of" adds: "law" of "the law of Scotland" says something else.
fn object(tokens: &[Token<'_>], from: usize) -> Option<(String, bool, usize)> {
    let (mut text, entity, mut end) = part(tokens, from)?;
    for _ in 0..MOST_OF {
        let of = tokens.get(end).is_some_and(|token| is(&["of"], token.word));
        if tokens[end - 1].pause || !of {
            return Some((text, entity, end));
        }
        let article = tokens.get(end + 1).filter(|token| is(ARTICLES, token.word));
        let article = article.map_or(String::new(), |token| format!("{} ", token.word));
        let (rest, _, next) = part(tokens, end + 1)?;
        text = format!("{text} of {article}{rest}");
        end = next;
    }
    None
}

/// The same up to the first "of".
fn part(tokens: &[Token<'_>], from: usize) -> Option<(String, bool, usize)> {
    let mut from = from;
    if is(ARTICLES, tokens.get(from)?.word) {
        from += 1;
    }
    let first = tokens.get(from)?;
    if is_number(first.word) || is(MONTHS, first.word) {
        let mut end = from + 1;
        while !tokens[end - 1].pause
            && tokens.get(end).is_some_and(|token| {
                is_number(token.word)
                    || is(MONTHS, token.word)
                    || unit(tokens[end - 1].word, token.word)
            })
        {
            end += 1;
        }
        return Some((joined(&tokens[from..end]), false, end));
    }
    if is_big(first.word) {
        let end = name_end(tokens, from);
        return Some((joined(&tokens[from..end]), true, end));
    }
    let mut end = from;
    while let Some(token) = tokens.get(end) {
        let stops = is(PREPOSITIONS, token.word)
            || is(&["and", "or", "but", "which", "that", "who"], token.word);
        if stops || token.opens || (end > from && is_verb(token.word) && !token.word.ends_with('s'))
        {
            break;
        }
        end += 1;
        if token.pause {
            break;
        }
    }
    // What is longer is no thing but a description; a name at its end belongs to it.
    (end > from && end - from <= NOUN_WORDS + 2)
        .then(|| (joined(&tokens[from..end]), end - from <= NOUN_WORDS, end))
}

/// A measure behind a number.
fn unit(number: &str, word: &str) -> bool {
    is_number(number)
        && !is_big(word)
        && !is(PREPOSITIONS, word)
        && !is(CONDITIONS, word)
        && !is(&["and", "but", "which", "that", "who"], word)
        // A plural looks like a verb.
        && !(is_verb(word) && (is(AUXILIARIES, word) || is(IRREGULAR, word) || !word.ends_with('s')))
}

/// A verb phrase: its words, whether it ends in a preposition, and where the rest begins.
fn predicate(tokens: &[Token<'_>], from: usize) -> Option<(Vec<String>, bool, usize)> {
    let mut words = Vec::new();
    let mut at = from;
    let mut verbs = 0;
    while let Some(token) = tokens.get(at) {
        let word = token.word.to_lowercase();
        if is(&["not", "never"], &word) {
            // What is denied is no fact.
            return None;
        }
        if is(ADVERBS, &word) || (word.ends_with("ly") && verbs > 0) {
            at += 1;
            continue;
        }
        let auxiliary = is(AUXILIARIES, &word);
        let only_auxiliaries = words.iter().all(|word: &String| is(AUXILIARIES, word));
        if !is_verb(token.word) || (verbs > 0 && !only_auxiliaries) {
            break;
        }
        // "is" and a plural noun: "is stones" does not exist, "are boats" does.
        let plural = verbs > 0 && !auxiliary && word.ends_with('s') && !is(IRREGULAR, &word);
        if plural {
            break;
        }
        words.push(word);
        verbs += 1;
        at += 1;
        if token.pause {
            return None;
        }
    }
    if verbs == 0 {
        return None;
    }
    let preposition = tokens.get(at).filter(|token| is(PREPOSITIONS, token.word));
    if let Some(token) = preposition {
        words.push(token.word.to_lowercase());
        at += 1;
    }
    Some((words, preposition.is_some(), at))
}

/// What a sentence says of what it begins with. `before` is what the sentence before it was about.
/// Gives the subject too, for the next sentence.
pub(super) fn statements(sentence: &str, before: Option<&str>) -> (Option<String>, Vec<Statement>) {
    let tokens = tokens(sentence);
    let Some((name, mut at)) = subject(&tokens, before) else {
        return (None, Vec::new());
    };
    let mut found = Vec::new();
    at = apposition_end(&tokens, at).unwrap_or(at);
    let mut auxiliary: Option<String> = None;
    while let Some((mut words, preposition, next)) = predicate(&tokens, at) {
        if is(BE, &words[0]) && words.len() > 1 {
            auxiliary = Some(words[0].clone());
        } else if found.is_empty() {
            auxiliary = None;
        } else if let Some(known) = &auxiliary
            && !is(AUXILIARIES, &words[0])
            && (words[0].ends_with("ed") || is(IRREGULAR, &words[0]))
        {
            words.insert(0, known.clone());
        }
        let Some((object, entity, end)) = object(&tokens, next) else {
            break;
        };
        let copula = words.len() == 1 && is(BE, &words[0]);
        let article = tokens
            .get(next)
            .map_or("", |token| token.word)
            .to_lowercase();
        if copula {
            if !is(&["a", "an", "the", "one"], &article) {
                break;
            }
            words.push(if article == "one" { "one of" } else { &article }.to_owned());
        }
        let thing = object.chars().any(|c| c.is_uppercase() || c.is_numeric());
        if words.len() == 1 && is(&["has", "have", "had"], &words[0]) && !thing {
            // To have something that has no name says little.
            break;
        }
        let verb = words[..words.len() - usize::from(preposition)].join(" ");
        let begun = found.len();
        found.push(Statement {
            subject: name.clone(),
            predicate: words.join(" "),
            object,
            entity,
        });
        at = more(&tokens, end, &name, &verb, copula, &mut found);
        at = others(&tokens, at, &mut found);
        if is_conditional(&tokens, at) {
            found.truncate(begun);
            break;
        }
        match tokens.get(at) {
            Some(token) if is(&["and"], token.word) => at += 1,
            _ => break,
        }
    }
    (Some(name), found)
}

/// Further statements about the same deed: "… by somebody in 1429".
fn more(
    tokens: &[Token<'_>],
    from: usize,
    name: &str,
    verb: &str,
    copula: bool,
    found: &mut Vec<Statement>,
) -> usize {
    let mut at = from;
    while let Some(token) = tokens.get(at) {
        let word = token.word.to_lowercase();
        if !is(PREPOSITIONS, &word) {
            break;
        }
        let Some((object, entity, end)) = object(tokens, at + 1) else {
            break;
        };
        if is(ADDING, &word) && !copula {
            found.push(Statement {
                subject: name.to_owned(),
                predicate: format!("{verb} {word}"),
                object,
                entity,
            });
        }
        at = end;
    }
    at
}

/// Further names of the same deed: "… by A and B". Where only both together are meant, there is no statement of one.
fn others(tokens: &[Token<'_>], from: usize, found: &mut Vec<Statement>) -> usize {
    let mut at = from;
    while tokens.get(at).is_some_and(|token| is(&["and"], token.word))
        && !tokens[at - 1].pause
        && predicate(tokens, at + 1).is_none()
    {
        let Some(last) = found.last().cloned() else {
            break;
        };
        if last.predicate.ends_with(" between") {
            found.pop();
            break;
        }
        let named = tokens[at + 1..]
            .iter()
            .find(|token| !is(ARTICLES, token.word))
            .is_some_and(|token| is_big(token.word));
        let Some((object, entity, end)) = object(tokens, at + 1).filter(|_| named) else {
            break;
        };
        // It is what another sentence begins with.
        if tokens.get(end).is_some_and(|token| is_verb(token.word)) {
            break;
        }
        found.push(Statement {
            object,
            entity,
            ..last
        });
        at = end;
    }
    at
}

/// Whether what follows says when or whether the statements before it hold.
fn is_conditional(tokens: &[Token<'_>], at: usize) -> bool {
    let Some(token) = tokens.get(at) else {
        return false;
    };
    let pause = at > 0 && tokens[at - 1].pause;
    match pause {
        true => is(
            &["except", "if", "nor", "or", "provided", "unless"],
            token.word,
        ),
        false => is(CONDITIONS, token.word),
    }
}

/// Where an apposition that begins at `at` ends.
pub(super) fn apposition_end(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let comma = at > 0 && tokens[at - 1].pause;
    if !comma || !is(&["a", "an", "the"], tokens.get(at)?.word) {
        return None;
    }
    let end = (at + 1..tokens.len()).find(|end| tokens[end - 1].pause)?;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sentence: &str) -> Vec<String> {
        let (_, found) = statements(sentence, Some("Old Bridge"));
        let line = |s: &Statement| {
            let mark = if s.entity { "" } else { "=" };
            format!("{} | {} | {mark}{}", s.subject, s.predicate, s.object)
        };
        found.iter().map(line).collect()
    }

    #[test]
    fn simple_sentences_are_understood() {
        for (sentence, expected) in [
            (
                "The Old Bridge was built in 1429 by Nerina Vosk.",
                vec![
                    "Old Bridge | was built in | =1429",
                    "Old Bridge | was built by | Nerina Vosk",
                ],
            ),
            (
                "It was designed by Nerina Vosk and restored in 1987.",
                vec![
                    "Old Bridge | was designed by | Nerina Vosk",
                    "Old Bridge | was restored in | =1987",
                ],
            ),
            (
                "The Old Bridge crosses the River Sell.",
                vec!["Old Bridge | crosses | River Sell"],
            ),
            (
                "Nerina Vosk, an architect from Tarn, wrote Glass Sea.",
                vec!["Nerina Vosk | wrote | Glass Sea"],
            ),
            (
                "The Old Bridge is a stone bridge.",
                vec!["Old Bridge | is a | stone bridge"],
            ),
            (
                "The harbour master lives in Tarn.",
                vec!["harbour master | lives in | Tarn"],
            ),
            (
                "The University of Tarn was founded on 3 May 1502.",
                vec!["University of Tarn | was founded on | =3 May 1502"],
            ),
            (
                "The Agreement runs for 24 months.",
                vec!["Agreement | runs for | =24 months"],
            ),
            (
                "The Agreement is governed by the law of Scotland.",
                vec!["Agreement | is governed by | law of Scotland"],
            ),
            (
                "The Old Bridge was built by Nerina Vosk and Ivo Prell.",
                vec![
                    "Old Bridge | was built by | Nerina Vosk",
                    "Old Bridge | was built by | Ivo Prell",
                ],
            ),
            (
                "The Old Bridge crosses the River Sell and Nerina Vosk designed it.",
                vec!["Old Bridge | crosses | River Sell"],
            ),
            (
                "The Agreement is made between Acme Ltd and Beta Ltd.",
                vec![],
            ),
            ("Nothing limits liability for fraud.", vec![]),
            ("Neither party owns the bridge.", vec![]),
            ("The Customer owes 100 pounds if it pays late.", vec![]),
            ("The Customer owes 100 pounds, unless it pays.", vec![]),
            ("The Customer owns Tarn or Ham.", vec![]),
            (
                "The Old Bridge was built in 1429, when Tarn was small.",
                vec!["Old Bridge | was built in | =1429"],
            ),
            ("The tower is 40 metres high.", vec![]),
            ("The Old Bridge was never built of wood.", vec![]),
            ("In 1429 the town burnt down.", vec![]),
            ("When was it built?", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(read(sentence), expected, "{sentence}");
        }
    }
}
