//! Texts without the secrets in them: `api_key=…`, `"token": "…"`, `Authorization: …`, `--password …`, users and passwords of
//! addresses, private keys, and words that are keys by their shape. Text around them stays to the letter, and what was masked
//! once stays as it is.
//!
//! It is a list of finders over the bytes of a text, each of which passes over it once.

use std::ops::Range;

use tg_schemas::masks::MASK;

use super::secret_names::{Kind, secret};
use super::secret_nested::{block, enclosed};
use super::secret_scan::{
    BLANKS, is_blank, is_no_value, is_numeric, is_quote, quoted, run, run_back,
};
use super::secret_words::{begins, is_drawn, of_key};

/// Longest name that is looked at.
const NAME: usize = 128;
/// What `key` means a secret after, where they are two words.
const BEFORE_KEY: [&str; 7] = [
    "api",
    "access",
    "secret",
    "private",
    "signing",
    "encryption",
    "master",
];
/// What comes before a credential in a header.
const SCHEMES: [&str; 4] = ["bearer ", "basic ", "token ", "digest "];
/// What a pair in JSON calls the name of a value, and the value.
const NAMED_BY: [&str; 4] = ["name", "key", "header", "variable"];
const VALUES: [&str; 2] = ["value", "default"];
/// Addresses that are secret as a whole behind this.
const HOOKS: [&str; 2] = [
    "://hooks.slack.com/services/",
    "://discord.com/api/webhooks/",
];

/// A text without its secrets, if it has any.
pub(crate) fn without_secrets(text: &str) -> Option<String> {
    if text.len() < 3 {
        return None;
    }
    let mut found = Vec::new();
    keys(text, &mut found);
    credentials(text, &mut found);
    addresses(text, &mut found);
    private_keys(text, &mut found);
    assignments(text, &mut found);
    flags(text, &mut found);
    found.retain(|span| !span.is_empty() && &text[span.clone()] != MASK);
    masked(text, found)
}

/// A text with a mask in the place of each span; those that touch have one.
fn masked(text: &str, mut found: Vec<Range<usize>>) -> Option<String> {
    found.sort_by_key(|span| span.start);
    let mut spans: Vec<Range<usize>> = Vec::new();
    for span in found {
        match spans.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => spans.push(span),
        }
    }
    if spans.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        out.push_str(&text[at..span.start]);
        // A mask beside it was one of the same secret.
        if !out.ends_with(MASK) {
            out.push_str(MASK);
        }
        at = span.end;
        if text[at..].starts_with(MASK) {
            at += MASK.len();
        }
    }
    out.push_str(&text[at..]);
    (out != text).then_some(out)
}

/// What goes on where a key does: a signature in base64, the rest of a path.
fn of_token(byte: u8) -> bool {
    of_key(byte) || matches!(byte, b'+' | b'/' | b'=' | b'~')
}

/// Words that are keys by their shape.
fn keys(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = run(bytes, at, usize::MAX, of_key);
        match begins(&text[at..end]) {
            Some(start) => {
                let end = run(bytes, end, usize::MAX, of_token);
                found.push(at + start..end);
                at = end;
            }
            None => at = end + 1,
        }
        while !text.is_char_boundary(at.min(text.len())) {
            at += 1;
        }
    }
}

/// What comes after `Bearer` and the like.
fn credentials(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices(' ') {
        let is_scheme = SCHEMES.iter().any(|scheme| {
            let from = (at + 1).checked_sub(scheme.len());
            let word = from.and_then(|from| text.get(from..=at));
            let inside =
                from.is_some_and(|from| from > 0 && bytes[from - 1].is_ascii_alphanumeric());
            !inside && word.is_some_and(|word| word.eq_ignore_ascii_case(scheme))
        });
        if !is_scheme {
            continue;
        }
        let from = run(bytes, at, BLANKS, is_blank);
        let end = run(bytes, from, usize::MAX, of_token);
        let word = text[from..end].trim_end_matches(['.', '/', '=']);
        if word.len() >= 6 && is_drawn(word) {
            found.push(from..end);
        }
    }
}

/// Users and passwords in addresses, what is behind those of hooks, and `key` in a query.
fn addresses(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let of_word =
        |byte: u8| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'<' | b'>' | b'`');
    let mut word = 0..0;
    let (mut last, mut before_host) = (None, None);
    for (at, mark) in text.match_indices("://") {
        if at == 0 || !bytes[at - 1].is_ascii_alphanumeric() {
            continue;
        }
        let from = at + mark.len();
        if at >= word.end {
            word = from..run(bytes, from, usize::MAX, of_word);
            last = text[word.clone()].rfind('@').map(|at| from + at);
            before_host = text[word.clone()].rfind("@[").map(|at| from + at);
            if let Some(query) = text[word.clone()].find('?') {
                query_keys(text, word.start + query..word.end, found);
            }
        }
        let place = from..run(bytes, from, word.end.saturating_sub(from), |byte| {
            !matches!(byte, b'/' | b'?' | b'#')
        });
        let shown = &text[place.clone()];
        let user = match shown.rfind('@') {
            Some(user) => Some(place.start + user),
            // A server that is a number in brackets, as of IPv6, is none of a user.
            None if shown.starts_with('[') && shown.contains(']') => None,
            // A password may have a slash in it; what follows the name of a server is a port.
            None => shown.split_once(':').and_then(|(_, port)| {
                let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
                let user = before_host.or(last.filter(|_| !is_port));
                user.filter(|user| *user > place.end)
            }),
        };
        if let Some(user) = user {
            found.push(from..user);
        }
        for hook in HOOKS {
            if text[at..].starts_with(hook) {
                found.push(at + hook.len()..word.end);
            }
        }
    }
}

/// In a query `key` is what opens.
fn query_keys(text: &str, query: Range<usize>, found: &mut Vec<Range<usize>>) {
    let mut at = query.start + 1;
    for part in text[at..query.end].split('&') {
        if let Some(value) = part.strip_prefix("key=") {
            let end = value.find('#').unwrap_or(value.len());
            let from = at + part.len() - value.len();
            found.push(from..from + end);
        }
        at += part.len() + 1;
    }
}

/// Private keys in PEM form; one without an end goes on to the end of the text.
fn private_keys(text: &str, found: &mut Vec<Range<usize>>) {
    const DASHES: &str = "-----";
    let mut at = 0;
    while let Some(begin) = text[at..].find("-----BEGIN ") {
        let label = at + begin + "-----BEGIN ".len();
        at = label;
        let bytes = text.as_bytes();
        let end = run(bytes, label, 64, |byte| {
            byte.is_ascii_uppercase() || byte == b' '
        });
        if !text[label..end].ends_with("PRIVATE KEY") || !text[end..].starts_with(DASHES) {
            continue;
        }
        let from = end + DASHES.len();
        let to = text[from..]
            .find("-----END ")
            .map_or(text.len(), |end| from + end);
        found.push(from..to);
        at = to;
    }
}

/// A name before its mark.
struct Named {
    kind: Option<Kind>,
    /// In small letters.
    name: String,
    /// Whether the line begins with it.
    first: bool,
    /// Where in its line it begins, if nothing but blanks and dashes is before it.
    column: Option<usize>,
}

/// The name that ends before a place, in quotes or not.
fn name_before(text: &str, mark: usize) -> Option<Named> {
    let bytes = text.as_bytes();
    let end = run_back(bytes, mark, BLANKS, is_blank);
    let end = run_back(bytes, end, 2, |byte| is_quote(byte) || byte == b'\\');
    let start = run_back(bytes, end, NAME, of_key);
    if start == end {
        return None;
    }
    let name = &text[start..end];
    let line = run_back(bytes, start, BLANKS, |byte| is_blank(byte) || byte == b'-');
    let first = line == 0 || matches!(bytes[line - 1], b'\n' | b'\r');
    let opens = run_back(bytes, start, 1, is_quote);
    let margin = run_back(bytes, opens, NAME, |byte| is_blank(byte) || byte == b'-');
    let alone = margin == 0 || matches!(bytes[margin - 1], b'\n' | b'\r');
    let mut kind = secret(name).filter(|_| name.len() > 2);
    let is_key = name.eq_ignore_ascii_case("key") || name.eq_ignore_ascii_case("keys");
    if is_key && start > 0 && is_blank(bytes[start - 1]) {
        let before = run_back(bytes, start - 1, NAME, |byte| byte.is_ascii_alphabetic());
        let before = &text[before..start - 1].to_ascii_lowercase();
        let two = BEFORE_KEY.contains(&before.as_str());
        kind = two.then_some(Kind::Counted);
    }
    Some(Named {
        kind,
        name: name.to_ascii_lowercase(),
        first,
        column: alone.then(|| opens - margin),
    })
}

/// Values of names: `name=value`, `name: value`, `"name": "value"`, and pairs of both.
fn assignments(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    // What the last `"name": "…"` called the value that follows.
    let mut called = None;
    while at < bytes.len() {
        let mark = bytes[at];
        at += 1;
        let pair = mark == b',' && at > 1 && is_quote(bytes[at - 2]);
        if !(matches!(mark, b'=' | b':') || pair) {
            continue;
        }
        let Some(named) = name_before(text, at - 1) else {
            continue;
        };
        let from = run(bytes, at, 1, |byte| matches!(byte, b'=' | b'>'));
        let from = run(bytes, from, BLANKS, |byte| {
            is_blank(byte) || (pair && byte.is_ascii_whitespace())
        });
        let quoted = quoted(text, from);
        if pair {
            // Names in a list are followed by names.
            let drawn = quoted
                .clone()
                .filter(|value| is_drawn(&text[value.clone()]));
            found.extend(
                drawn.filter(|_| {
                    named.kind == Some(Kind::Hidden) || named.kind == Some(Kind::Counted)
                }),
            );
            continue;
        }
        if let Some(value) = quoted
            .clone()
            .filter(|_| NAMED_BY.contains(&named.name.as_str()))
        {
            called = (value.len() <= NAME)
                .then(|| secret(&text[value]))
                .flatten();
            continue;
        }
        let of_pair = called.filter(|_| VALUES.contains(&named.name.as_str()));
        let Some(kind) = named.kind.or(of_pair) else {
            continue;
        };
        called = None;
        let nested = match (&quoted, named.column) {
            (Some(_), _) => None,
            (None, Some(column)) => {
                enclosed(text, from, kind).or_else(|| block(text, from, column, kind))
            }
            (None, None) => enclosed(text, from, kind),
        };
        if let Some(nested) = nested {
            at = nested.end.max(at);
            found.extend(nested.values);
            continue;
        }
        let value = match quoted {
            Some(value) => Some(value).filter(|value| kind.hides_text(&text[value.clone()])),
            None => bare(text, from, &named, kind),
        };
        if let Some(value) = value {
            at = value.end.max(at);
            found.push(value);
        }
    }
}

/// A value without quotes: of a line that it makes up, all of it, else a word.
fn bare(text: &str, from: usize, named: &Named, kind: Kind) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if bytes
        .get(from)
        .is_none_or(|byte| matches!(byte, b'{' | b'['))
    {
        return None;
    }
    let word = from..match kind {
        // Of what is counted no more is looked at than tells.
        Kind::Count => run(bytes, from, NAME, |byte| byte.is_ascii_graphic()),
        _ => word_end(text, from),
    };
    let said = text[word.clone()].trim_end_matches(['"', '\'', '`', ')', ']', '}', ',', ';']);
    if said.is_empty() || said == MASK {
        return None;
    }
    let plain = is_no_value(said);
    if kind == Kind::Count {
        let drawn = !is_numeric(said) && said.len() >= 8 && is_drawn(said);
        return drawn.then(|| from..word_end(text, from));
    }
    let header = named.name.ends_with("authorization") || named.name.ends_with("cookie");
    let end = match named.first || header {
        // Another assignment of the line is one of its own.
        true => line_end(text, word.end),
        false => from + said.len(),
    };
    if plain && text[from..end].trim_end() == said {
        return None;
    }
    let value = text[from..end].trim_end();
    Some(from..from + value.len())
}

/// Where a line ends, or its next `name=` begins.
fn line_end(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    for at in from..bytes.len() {
        match bytes[at] {
            b'\n' | b'\r' => return at,
            b'=' | b':' => {
                let start = run_back(bytes, at, NAME, of_key);
                let parts = |byte: u8| is_blank(byte) || matches!(byte, b'&' | b';' | b',');
                if start < at && start > from && parts(bytes[start - 1]) {
                    return start - 1;
                }
            }
            _ => {}
        }
    }
    bytes.len()
}

/// Where the word of a value ends: at a blank, or at a mark with the next name behind it.
fn word_end(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < bytes.len() && !bytes[at].is_ascii_whitespace() {
        if matches!(bytes[at], b'&' | b';' | b',') {
            let start = run(bytes, at + 1, BLANKS, |byte| {
                is_blank(byte) || is_quote(byte)
            });
            let end = run(bytes, start, NAME, of_key);
            let next = bytes.get(run(bytes, end, 1, is_quote));
            if start < end && matches!(next, Some(b'=' | b':')) {
                return at;
            }
        }
        at += 1;
    }
    at
}

/// Values of flags: `--api-key value`.
fn flags(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    for (at, mark) in text.match_indices("--") {
        if at > 0 && bytes[at - 1].is_ascii_graphic() && !is_quote(bytes[at - 1]) {
            continue;
        }
        let start = at + mark.len();
        let end = run(bytes, start, NAME, of_key);
        let from = run(bytes, end, BLANKS, is_blank);
        if from == end || bytes.get(from).is_none_or(|byte| *byte == b'-') {
            continue;
        }
        let Some(kind) = secret(&text[start..end]) else {
            continue;
        };
        let value = quoted(text, from).unwrap_or_else(|| from..word_end(text, from));
        let said = &text[value.clone()];
        if !is_no_value(said) && kind.hides_text(said) {
            found.push(value);
        }
    }
}

#[cfg(test)]
#[path = "secret_texts/tests.rs"]
mod tests;
