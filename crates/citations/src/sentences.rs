//! The sentences of a text that is there, what each cites and what it quotes.

/// Longest bracket that may be a citation, in characters.
pub(crate) const BRACKET: usize = 40;
/// Words of the shortest text in quotation marks that counts as a quotation: fewer are a name or a manner of speaking.
const QUOTED: usize = 3;

/// A sentence of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// Its text, without the brackets that cite.
    pub text: String,
    /// Numbers that it cites, as they stand.
    pub numbers: Vec<usize>,
}

/// The sentences of a text. A bracket behind the end of a sentence belongs to it.
pub fn sentences(text: &str) -> Vec<Sentence> {
    let mut found: Vec<Sentence> = Vec::new();
    for line in text.lines() {
        let mut begun = false;
        for part in parts(line) {
            let (text, numbers) = cut(part);
            let said = text.chars().any(char::is_alphanumeric);
            let small = text.chars().next().is_some_and(char::is_lowercase);
            match found.last_mut() {
                // An abbreviation ended no sentence; a bracket alone belongs to what stands before.
                Some(last) if (begun && small) || (!said && !numbers.is_empty()) => {
                    if said {
                        last.text.push(' ');
                        last.text.push_str(&text);
                    }
                    last.numbers.extend(numbers);
                }
                _ if said => found.push(Sentence { text, numbers }),
                _ => {}
            }
            begun = true;
        }
    }
    found
}

/// A line cut where a sentence ends: behind a stop and the quotation marks and brackets that close with it.
fn parts(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(c) = line[at..].chars().next() {
        let before = &line[from..at];
        at += c.len_utf8();
        if !is_end(c) || (c == '.' && is_initial(before)) {
            continue;
        }
        loop {
            let rest = &line[at..];
            match rest.chars().next() {
                Some(c) if is_end(c) || is_closing(c) => at += c.len_utf8(),
                _ => match mark(rest) {
                    Some(length) => at += length,
                    None => break,
                },
            }
        }
        let next = line[at..].chars().next();
        if c == '。' || next.is_none_or(char::is_whitespace) {
            parts.push(&line[from..at]);
            from = at;
        }
    }
    parts.push(&line[from..]);
    parts
}

/// Whether the last word is one letter: a name's first, which ends no sentence.
fn is_initial(before: &str) -> bool {
    let word = before.rsplit(|c: char| !c.is_alphanumeric()).next();
    word.is_some_and(|word| word.chars().count() == 1 && word.chars().all(char::is_uppercase))
}

/// The length of the citing bracket that a text begins with, blanks before it included.
fn mark(text: &str) -> Option<usize> {
    let begins = text.trim_start_matches(' ');
    let (inside, after) = bracket(begins.strip_prefix('[')?)?;
    numbers(inside).map(|_| text.len() - after.len())
}

/// What stands in a bracket and behind it, of one that is short enough to cite.
pub(crate) fn bracket(text: &str) -> Option<(&str, &str)> {
    let at = text.bytes().take(BRACKET + 1).position(|b| b == b']')?;
    Some((&text[..at], &text[at + 1..]))
}

/// Characters that may end a sentence.
pub(crate) fn is_end(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '。')
}

/// Characters that close what a sentence ends in.
pub(crate) fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | '”' | '’')
}

/// A text without the brackets that cite, and their numbers.
fn cut(text: &str) -> (String, Vec<usize>) {
    let (mut plain, mut cited) = (String::with_capacity(text.len()), Vec::new());
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        plain.push_str(&rest[..at]);
        let inside = bracket(&rest[at + 1..]);
        match inside.and_then(|(inside, after)| Some((numbers(inside)?, after))) {
            Some((numbers, after)) => {
                cited.extend(numbers);
                plain.truncate(plain.trim_end_matches(' ').len());
                rest = after;
            }
            None => {
                plain.push('[');
                rest = &rest[at + 1..];
            }
        }
    }
    plain.push_str(rest);
    (plain.trim().to_owned(), cited)
}

/// The numbers of a bracket such as `1`, `1, 3` or `2-4`; nothing if it is something else.
pub(crate) fn numbers(inside: &str) -> Option<Vec<usize>> {
    if inside.len() > BRACKET {
        return None;
    }
    let mut found = Vec::new();
    for part in inside.split([',', ';']) {
        let ends: Vec<&str> = part.split(['-', '–']).map(str::trim).collect();
        let number = |text: &str| text.parse::<usize>().ok();
        match ends.as_slice() {
            [one] => found.push(number(one)?),
            [first, last] => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last || last - first > BRACKET {
                    return None;
                }
                found.extend(first..=last);
            }
            _ => return None,
        }
    }
    Some(found)
}

/// What a sentence quotes: texts of several words in quotation marks.
pub fn quotations(sentence: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut open: Option<(usize, char)> = None;
    for (at, c) in sentence.char_indices() {
        match open {
            Some((from, closing)) if c == closing => {
                let quoted = &sentence[from..at];
                if plain(quoted)
                    .split(' ')
                    .filter(|word| !word.is_empty())
                    .count()
                    >= QUOTED
                {
                    found.push(quoted);
                }
                open = None;
            }
            None => {
                let closing = match c {
                    '"' => '"',
                    '“' => '”',
                    '„' => '“',
                    '«' => '»',
                    _ => continue,
                };
                open = Some((at + c.len_utf8(), closing));
            }
            Some(_) => {}
        }
    }
    found
}

/// Whether a quotation stands in a text, word for word; what it leaves out is marked by an ellipsis.
pub fn stands_in(quotation: &str, text: &str) -> bool {
    Plain::of(text).holds(quotation)
}

/// The words of a text that quotations are looked up in.
pub(crate) struct Plain(String);

impl Plain {
    pub(crate) fn of(text: &str) -> Self {
        Self(format!(" {} ", plain(text)))
    }

    pub(crate) fn holds(&self, quotation: &str) -> bool {
        let Self(text) = self;
        let mut from = 0;
        for part in quotation.replace("...", "…").split('…') {
            let part = plain(part);
            if part.is_empty() {
                continue;
            }
            // Its last word may be cut where the ellipsis stands; words otherwise are whole.
            match text[from..].find(&format!(" {part} ")) {
                Some(at) => from += at + 1 + part.len(),
                None => return false,
            }
        }
        true
    }
}

/// Words with one blank between them, in lower case: how a text is set changes nothing.
fn plain(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, Vec<usize>)> {
        let all = sentences(text).into_iter();
        all.map(|one| (one.text, one.numbers)).collect()
    }

    fn of(text: &str, numbers: &[usize]) -> (String, Vec<usize>) {
        (text.to_owned(), numbers.to_vec())
    }

    #[test]
    fn sentences_are_told_apart_with_what_they_cite() {
        assert_eq!(
            read("It was built in 1429 [1]. It is 3.14 m long [2, 3]. So \"they\" say."),
            [
                of("It was built in 1429.", &[1]),
                of("It is 3.14 m long.", &[2, 3]),
                of("So \"they\" say.", &[]),
            ]
        );
        assert_eq!(
            read("It is old. [1] Really!\nA line [x] of J. S. Bach[2]\n\n- "),
            [
                of("It is old.", &[1]),
                of("Really!", &[]),
                of("A line [x] of J. S. Bach", &[2]),
            ]
        );
        assert_eq!(
            read("Use e.g. a rope.[1] Then go."),
            [of("Use e.g. a rope.", &[1]), of("Then go.", &[])]
        );
        assert_eq!(read(""), []);
    }

    #[test]
    fn a_quotation_is_looked_up_word_for_word() {
        let quoted =
            quotations("He calls it \"a lamp of blue glass\" and “the best of all”, not \"it\".");
        assert_eq!(quoted, ["a lamp of blue glass", "the best of all"]);
        let text = "The lantern is a lamp\n of Blue glass, they say.";
        assert!(stands_in("a lamp of blue glass", text));
        assert!(stands_in("lantern … blue glass", text));
        assert!(!stands_in("a lamp of red glass", text));
        assert!(!stands_in("blue glass … lantern", text));
        assert!(!stands_in("a lamp of blue glas", text));
    }
}
