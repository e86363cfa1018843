//! JSON as models write it. The strict parser is asked first; where it fails, this reader takes what stands in most replies that
//! are not quite JSON: trailing and missing commas, comments, other quotes, full-width punctuation, keys without quotes, the
//! constants of Python, raw line breaks and quotes within strings. It never completes what was cut off.

use serde_json::{Map, Number, Value};

/// Deepest nesting; the strict parser has a bound of its own.
const DEPTH: usize = 100;

/// A text is no JSON. Repeats nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not valid JSON (line {line}, column {column})")]
pub struct NotJson {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

impl From<serde_json::Error> for NotJson {
    fn from(error: serde_json::Error) -> Self {
        Self {
            line: error.line(),
            column: error.column(),
        }
    }
}

/// A whole text as JSON, by the rules.
pub(crate) fn strict(text: &str) -> Result<Value, NotJson> {
    Ok(serde_json::from_slice(text.trim().as_bytes())?)
}

/// A text that is one object.
///
/// # Errors
/// [`NotJson`] with the place at which the strict parser gave up.
pub fn object(text: &str) -> Result<Map<String, Value>, NotJson> {
    match whole(text)? {
        Value::Object(map) => Ok(map),
        _ => Err(NotJson { line: 1, column: 1 }),
    }
}

/// A text that is one array.
///
/// # Errors
/// As for [`object`].
pub fn array(text: &str) -> Result<Vec<Value>, NotJson> {
    match whole(text)? {
        Value::Array(items) => Ok(items),
        _ => Err(NotJson { line: 1, column: 1 }),
    }
}

/// A text that is one value and nothing else.
fn whole(text: &str) -> Result<Value, NotJson> {
    strict(text).or_else(|fault| {
        let text = text.trim();
        match container(text) {
            Ok((value, end)) if text[end..].trim().is_empty() => Ok(value),
            _ => Err(fault),
        }
    })
}

/// The object or array that a text begins with, and its length. `Err`: how far it was read in vain.
pub(crate) fn container(text: &str) -> Result<(Value, usize), usize> {
    let mut values = serde_json::Deserializer::from_slice(text.as_bytes()).into_iter::<Value>();
    if let Some(Ok(value)) = values.next() {
        return Ok((value, values.byte_offset()));
    }
    let mut reader = Reader { text, at: 0 };
    match reader.value(DEPTH) {
        Some(value) => Ok((value, reader.at)),
        None => Err(reader.at.max(1)),
    }
}

struct Reader<'a> {
    text: &'a str,
    /// Where it stands, in bytes.
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Goes past one of these characters, if it is next.
    fn eat(&mut self, any: &[char]) -> bool {
        let is_next = self.peek().is_some_and(|c| any.contains(&c));
        if is_next {
            self.next();
        }
        is_next
    }

    /// Goes past blanks and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            let rest = &rest[blank..];
            let comment = match rest {
                _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
                _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                _ => 0,
            };
            self.at += blank + comment;
            if comment == 0 {
                return;
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        self.skip();
        match self.peek()? {
            '{' if depth > 0 => self.object(depth - 1).map(Value::Object),
            '[' if depth > 0 => self.array(depth - 1).map(Value::Array),
            '{' | '[' => None,
            c if closers(c).is_some() => self.string().map(Value::String),
            _ => self.bare(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Map<String, Value>> {
        self.next();
        let mut map = Map::new();
        loop {
            self.skip();
            if self.eat(&['}']) {
                return Some(map);
            }
            let key = match closers(self.peek()?) {
                Some(_) => self.string()?,
                None => self.name()?,
            };
            self.skip();
            if !self.eat(&[':', '：']) {
                return None;
            }
            let value = self.value(depth)?;
            map.insert(key, value);
            self.separator(&['}'])?;
        }
    }

    fn array(&mut self, depth: usize) -> Option<Vec<Value>> {
        self.next();
        let mut items = Vec::new();
        loop {
            self.skip();
            if self.eat(&[']']) {
                return Some(items);
            }
            items.push(self.value(depth)?);
            self.separator(&[']'])?;
        }
    }

    /// What stands between two members. The comma may be missing where the next member is seen to begin.
    fn separator(&mut self, end: &[char]) -> Option<()> {
        self.skip();
        let next = self.peek()?;
        let begins = closers(next).is_some() || next == '{';
        (self.eat(&[',', '，']) || end.contains(&next) || begins).then_some(())
    }

    /// A key without quotes.
    fn name(&mut self) -> Option<String> {
        let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '.');
        let rest = self.rest();
        let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        self.at += end;
        (!name.is_empty()).then_some(name)
    }

    /// A number or a constant.
    fn bare(&mut self) -> Option<Value> {
        let rest = self.rest();
        let ends = |c: char| c.is_whitespace() || ",:[]{}\"'，：".contains(c);
        let end = rest.find(ends).unwrap_or(rest.len());
        let word = &rest[..end];
        let value = match word {
            "true" | "True" | "TRUE" => Value::Bool(true),
            "false" | "False" | "FALSE" => Value::Bool(false),
            "null" | "None" | "NULL" | "undefined" | "NaN" => Value::Null,
            number => {
                let digits = number.strip_prefix('+').unwrap_or(number).as_bytes();
                Value::Number(serde_json::from_slice::<Number>(digits).ok()?)
            }
        };
        self.at += end;
        Some(value)
    }

    fn string(&mut self) -> Option<String> {
        let closers = closers(self.next()?)?;
        let mut text = String::new();
        loop {
            match self.next()? {
                '\\' => self.escape(&mut text)?,
                c if closers.contains(&c) && self.is_over() => return Some(text),
                c => text.push(c),
            }
        }
    }

    /// Whether a string ends with the quote before: what follows is then no text. Models forget to escape quotes.
    fn is_over(&self) -> bool {
        let rest = self.rest();
        let after = rest.trim_start();
        let broken = rest[..rest.len() - after.len()].contains('\n');
        match after.chars().next() {
            None | Some(',' | '}' | ']' | ':' | '，' | '：') => true,
            // The comma between two lines is missing.
            Some(c) => broken && (closers(c).is_some() || after.starts_with("//")),
        }
    }

    fn escape(&mut self, text: &mut String) -> Option<()> {
        match self.next()? {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'u' => match self.unit() {
                Some(first) => text.push(self.character(first)),
                None => text.push_str("\\u"),
            },
            c @ ('"' | '\'' | '/' | '\\' | '\n') => text.push(c),
            // No escape that there is: a path, or a formula.
            c => text.extend(['\\', c]),
        }
        Some(())
    }

    /// Four digits of an escape.
    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let unit = u32::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(unit)
    }

    /// The character that begins with a unit. Half of a pair is no character.
    fn character(&mut self, first: u32) -> char {
        let before = self.at;
        if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
            self.at += 2;
            match self.unit() {
                Some(second) if (0xdc00..0xe000).contains(&second) => {
                    let both = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                    return char::from_u32(both).unwrap_or(char::REPLACEMENT_CHARACTER);
                }
                _ => self.at = before,
            }
        }
        char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// The quotes that close a string, by the one that opens it.
fn closers(open: char) -> Option<&'static [char]> {
    match open {
        '"' => Some(&['"']),
        '\'' => Some(&['\'']),
        '“' | '”' | '„' => Some(&['”', '“', '"']),
        '‘' | '’' | '‚' => Some(&['’', '‘', '\'']),
        '＂' => Some(&['＂']),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_almost_json_is_read() {
        for (text, expected) in [
            (r#"{"a": 1, "b": [1, 2,],}"#, json!({"a": 1, "b": [1, 2]})),
            ("{'a': 'it''s'}", json!({"a": "it''s"})),
            ("{'a': 'it\\'s', b: None}", json!({"a": "it's", "b": null})),
            ("{“a”： “x”，“b”: True}", json!({"a": "x", "b": true})),
            (
                "{\"a\": \"one\ntwo\ttabs\"}",
                json!({"a": "one\ntwo\ttabs"}),
            ),
            (
                r#"{"a": "she said "no" twice"}"#,
                json!({"a": "she said \"no\" twice"}),
            ),
            (
                r#"{"a": "C:\data\_x \u00e4 \ud83d\ude00 \ud83d \u12"}"#,
                json!({"a": "C:\\data\\_x ä 😀 \u{fffd} \\u12"}),
            ),
            (
                "{\n  // the first\n  \"a\": 1 /* one */,\n  \"b\": 2\n}",
                json!({"a": 1, "b": 2}),
            ),
            ("{\"a\": \"x\"\n \"b\": +2.5}", json!({"a": "x", "b": 2.5})),
            (
                "{\"a\": [{\"b\": 1} {\"b\": 2}]}",
                json!({"a": [{"b": 1}, {"b": 2}]}),
            ),
        ] {
            assert_eq!(object(text).map(Value::Object), Ok(expected), "{text}");
        }
        assert_eq!(array("[1, 'a',]"), Ok(vec![json!(1), json!("a")]));
    }

    #[test]
    fn what_is_cut_off_or_none_is_refused() {
        for text in [
            "",
            "{",
            "{\"a\": 1",
            "{\"a\": \"x",
            "{\"a\"}",
            "{x}",
            "{\"a\": 1} {",
            "no",
            "{\"a\": }",
            "{\"a\": one}",
            "[1]",
            "{,}",
            "{\"a\": \"sent to \"him\", waiting.\"}",
        ] {
            assert!(object(text).is_err(), "{text}");
        }
        let deep = format!("{}1{}", "[".repeat(1 << 16), "]".repeat(1 << 16));
        assert!(array(&deep).is_err());
        let said = object("{\"a\": \"s3cret\" x}").unwrap_err().to_string();
        assert!(!said.contains("s3cret"), "{said}");
    }
}
