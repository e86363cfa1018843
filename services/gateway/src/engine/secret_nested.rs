//! Values of a secret's name that are not beside it: in lists and objects, and in the lines of a block, as of YAML. Knows no
//! names of secrets; of a schema, which describes a value, only the one that is given.

use std::ops::Range;

use super::secret_names::{Kind, is_type};
use super::secret_scan::{is_blank, is_no_value, is_numeric, is_quote, quoted};
use super::secret_words::is_drawn;

/// Bytes within which a list or an object ends; one that does not is looked at to the end of its line.
const MOST: usize = 4_096;
/// What a schema calls the value that counts where none is given.
const DEFAULT: &str = "default";

/// What stands under a name.
pub(super) struct Nested {
    /// The values to be hidden.
    pub(super) values: Vec<Range<usize>>,
    /// Behind it, as far as all of it was looked at.
    pub(super) end: usize,
}

/// A value, with the name that it has there.
struct Entry {
    name: Option<Range<usize>>,
    value: Range<usize>,
    quoted: bool,
}

/// A list or an object that begins at a place. One that does not end soon is gone through once, for a name whose values are all
/// hidden: else each name in it would have its rest looked at again.
pub(super) fn enclosed(text: &str, from: usize, kind: Kind) -> Option<Nested> {
    let bytes = text.as_bytes();
    if !matches!(bytes.get(from)?, b'[' | b'{') {
        return None;
    }
    let closed_at = closing(text, from);
    let end = match (closed_at, kind) {
        (Some(end), _) => end,
        (None, Kind::Hidden) => line_end(bytes, from),
        (None, _) => return None,
    };
    let mut entries = Vec::new();
    let inner = &text[..end];
    let (mut at, mut name) = (from, None);
    while at < end {
        if bytes[at].is_ascii_whitespace() || b",[]{}()=>:".contains(&bytes[at]) {
            at += 1;
            continue;
        }
        let in_quotes = quoted(inner, at);
        let is_quoted = in_quotes.is_some();
        let value = in_quotes.unwrap_or_else(|| at..bare_end(bytes, at, end));
        let behind = match is_quoted {
            true => closed(bytes, value.end, end),
            false => value.end,
        };
        let next = bytes[behind..end].iter().find(|byte| !is_blank(**byte));
        match next {
            Some(b':' | b'=') => name = Some(trimmed(text, value)),
            _ => entries.push(Entry {
                name: name.take(),
                value: if is_quoted {
                    value
                } else {
                    trimmed(text, value)
                },
                quoted: is_quoted,
            }),
        }
        at = behind.max(at + 1);
    }
    let mut nested = judged(text, entries, kind, (from, end));
    if closed_at.is_none() {
        nested.end = end;
    }
    Some(nested)
}

/// The lines under a name that begins at a column of its line; nothing follows its mark there, or what says that lines do.
pub(super) fn block(text: &str, from: usize, column: usize, kind: Kind) -> Option<Nested> {
    let bytes = text.as_bytes();
    let first = line_end(bytes, from);
    let is_scalar = header(text[from..first].trim_end())?;
    let (mut entries, mut end, mut at) = (Vec::new(), from, first);
    let mut whole: Option<Range<usize>> = None;
    while at < bytes.len() {
        // What is looked at again is short.
        if kind != Kind::Hidden && at - from > MOST {
            break;
        }
        let start = at + 1;
        at = line_end(bytes, start);
        let line = start..at;
        let content = trimmed(text, line.clone());
        if content.is_empty() {
            continue;
        }
        let dash = matches!(&text[content.clone()], "-") || text[content.clone()].starts_with("- ");
        let deep = content.start - line.start;
        if deep < column || (deep == column && (is_scalar || !dash)) {
            break;
        }
        end = content.end;
        match is_scalar {
            true => whole = Some(whole.map_or(content.start, |whole| whole.start)..end),
            false => entries.extend(of_line(text, content)),
        }
    }
    if let Some(whole) = whole {
        let values = Vec::from([whole]);
        return Some(Nested { values, end });
    }
    if entries.is_empty() {
        return None;
    }
    let mut nested = judged(text, entries, kind, (from, end));
    if end - from > MOST {
        nested.end = end;
    }
    Some(nested)
}

/// What is hidden of values that stand together. What describes a value is looked at as any other text, and so is what need not
/// be hidden under its name: it may have names of its own.
fn judged(text: &str, entries: Vec<Entry>, kind: Kind, (from, end): (usize, usize)) -> Nested {
    let is_called = |entry: &Entry, name: &str| {
        let called = entry.name.clone().map(|at| &text[at]);
        called.is_some_and(|called| called == name)
    };
    let mut types = entries.iter().filter(|entry| is_called(entry, "type"));
    let is_schema = types.any(|entry| is_type(&text[entry.value.clone()]));
    let hidden = entries.into_iter().filter(|entry| {
        let said = &text[entry.value.clone()];
        let counts = match is_schema {
            true => is_called(entry, DEFAULT),
            false => !is_called(entry, "type"),
        };
        counts && hides(kind, said, entry.quoted)
    });
    Nested {
        values: hidden.map(|entry| entry.value).collect(),
        end: if is_schema || kind != Kind::Hidden {
            from
        } else {
            end
        },
    }
}

fn hides(kind: Kind, said: &str, quoted: bool) -> bool {
    match (quoted, kind) {
        _ if said.is_empty() => false,
        (true, _) => kind.hides_text(said),
        _ if is_no_value(said) => false,
        (false, Kind::Hidden) => true,
        (false, Kind::Counted) => !is_numeric(said),
        (false, Kind::Count) => !is_numeric(said) && said.len() >= 8 && is_drawn(said),
    }
}

/// Where a list or an object ends that begins at a place, if it is soon.
fn closing(text: &str, from: usize) -> Option<usize> {
    let most = from.saturating_add(MOST).min(text.len());
    let whole = |at: &usize| text.is_char_boundary(*at);
    let near = (from..=most).rev().find(whole).unwrap_or(from);
    let (near, bytes) = (&text[..near], text.as_bytes());
    let (mut at, mut depth) = (from, 0_usize);
    while at < near.len() {
        match bytes[at] {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            byte if is_quote(byte) || byte == b'\\' => {
                if let Some(value) = quoted(near, at) {
                    at = closed(bytes, value.end, near.len()).max(at + 1);
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Behind the quote that ends a value, which may be one of a text in a text.
fn closed(bytes: &[u8], from: usize, end: usize) -> usize {
    let mut at = from;
    while at < end && bytes[at] == b'\\' {
        at += 1;
    }
    if at < end && is_quote(bytes[at]) {
        at + 1
    } else {
        at
    }
}

/// Where a word without quotes ends in a list or an object.
fn bare_end(bytes: &[u8], from: usize, end: usize) -> usize {
    let mut at = from;
    while at < end {
        let names = bytes[at] == b':'
            && bytes
                .get(at + 1)
                .is_none_or(|next| is_blank(*next) || b"\r\n\"'[{".contains(next));
        if names || b",[]{}\r\n".contains(&bytes[at]) {
            return at;
        }
        at += 1;
    }
    at
}

/// Whether a block is one text (`|`, `>`), by what stands behind the mark of its name.
fn header(rest: &str) -> Option<bool> {
    let said = rest.split('#').next().unwrap_or_default().trim();
    let form = said.strip_prefix(['|', '>']);
    match form {
        None => said.is_empty().then_some(false),
        Some(form) => form
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-'))
            .then_some(true),
    }
}

/// The value of a line of a block: of an item, of a name, or all of it.
fn of_line(text: &str, mut content: Range<usize>) -> Option<Entry> {
    while let Some(rest) = text[content.clone()].strip_prefix('-') {
        if !rest.is_empty() && !rest.starts_with(' ') {
            break;
        }
        content = trimmed(text, content.start + 1..content.end);
    }
    let said = &text[content.clone()];
    if said.starts_with('#') {
        return None;
    }
    let entry = |name, value: Range<usize>| {
        let in_quotes = quoted(&text[..value.end], value.start);
        Some(Entry {
            name,
            quoted: in_quotes.is_some(),
            value: in_quotes.unwrap_or(value),
        })
    };
    let in_quotes = quoted(&text[..content.end], content.start);
    if in_quotes.is_some_and(|value| value.end + 1 == content.end) {
        return entry(None, content);
    }
    match said.split_once(':') {
        Some((_, "")) => None,
        Some((name, rest)) if rest.starts_with(is_space) => {
            let mark = content.start + name.len();
            let unquoted = name.trim_matches(['"', '\'', ' ']);
            let start = content.start + name.find(unquoted).unwrap_or_default();
            let value = trimmed(text, mark + 1..content.end);
            match header(&text[value.clone()]) {
                Some(_) => None,
                None => entry(Some(start..start + unquoted.len()), value),
            }
        }
        _ => entry(None, content),
    }
}

fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t')
}

fn line_end(bytes: &[u8], from: usize) -> usize {
    let rest = bytes[from..].iter();
    from + rest.take_while(|byte| !b"\r\n".contains(byte)).count()
}

fn trimmed(text: &str, of: Range<usize>) -> Range<usize> {
    let said = &text[of.clone()];
    let start = of.start + said.len() - said.trim_start().len();
    start..start + said.trim().len()
}
