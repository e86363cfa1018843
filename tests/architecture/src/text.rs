//! Rust text with its comments, its strings or its tests blanked. Lines and columns stay where they are.

/// What of a text is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Code alone: comments and what is between quotes become blanks.
    Code,
    /// Code and what is between quotes: comments become blanks.
    Strings,
}

/// Blanks comments and, if asked, what is between quotes.
pub fn blank(text: &str, keep: Keep) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = match rest[0] {
            b'/' if rest.starts_with(b"//") => {
                let end = at + line_end(rest);
                wipe(&mut out, at, end);
                end
            }
            b'/' if rest.starts_with(b"/*") => {
                let end = at + comment_end(rest);
                wipe(&mut out, at, end);
                end
            }
            b'r' | b'b' | b'c' if !within_word(bytes, at) => match raw_string(rest) {
                Some((open, close, whole)) => {
                    if keep == Keep::Code {
                        wipe(&mut out, at + open, at + close);
                    }
                    at + whole
                }
                None => at + 1,
            },
            b'"' => {
                let end = at + string_end(rest);
                if keep == Keep::Code {
                    wipe(&mut out, at + 1, end.saturating_sub(1));
                }
                end
            }
            b'\'' => {
                let end = at + char_end(rest);
                if end > at + 1 {
                    wipe(&mut out, at + 1, end - 1);
                }
                end
            }
            _ => at + 1,
        };
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Blanks every item under `#[cfg(test)]`, in both texts at the places that `code` shows. Returns the names of the
/// modules that are tests as a whole (`#[cfg(test)] mod name;`).
pub fn without_tests(code: &mut String, strings: &mut String) -> Vec<String> {
    const MARK: &str = "#[cfg(test)]";
    let mut modules = Vec::new();
    let mut from = 0;
    while let Some(start) = code[from..].find(MARK).map(|at| at + from) {
        let end = item_end(code, start + MARK.len());
        let item = code[start + MARK.len()..end].to_owned();
        if let Some(name) = item
            .trim_end()
            .strip_suffix(';')
            .and_then(|declared| declared.rsplit_once("mod "))
        {
            modules.push(name.1.trim().to_owned());
        }
        for text in [&mut *code, &mut *strings] {
            let mut bytes = std::mem::take(text).into_bytes();
            wipe(&mut bytes, start, end);
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
        from = end;
    }
    modules
}

/// Where the item ends that begins at `from`: behind its `;`, or behind the brace that closes its first one.
pub fn item_end(code: &str, from: usize) -> usize {
    let bytes = code.as_bytes();
    let (mut braces, mut others) = (0_usize, 0_usize);
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        match byte {
            b'{' => braces += 1,
            b'}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 && others == 0 {
                    // `use a::{b, c};` ends with its semicolon.
                    let rest = code[at + 1..].trim_start();
                    return match rest.starts_with(';') {
                        true => code.len() - rest.len() + 1,
                        false => at + 1,
                    };
                }
            }
            b'(' | b'[' => others += 1,
            b')' | b']' => others = others.saturating_sub(1),
            b';' if braces == 0 && others == 0 => return at + 1,
            _ => {}
        }
    }
    bytes.len()
}

/// The line of a byte, counted from one.
pub fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

/// Whether the byte at `at` continues a word.
fn within_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_word(bytes[at - 1])
}

/// Whether a byte belongs to an identifier.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn wipe(bytes: &mut [u8], from: usize, to: usize) {
    if from < to {
        for byte in &mut bytes[from..to] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
}

fn line_end(rest: &[u8]) -> usize {
    rest.iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(rest.len())
}

fn comment_end(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Begin and end of what is between the quotes of a raw string, and its whole length.
fn raw_string(rest: &[u8]) -> Option<(usize, usize, usize)> {
    let prefix = rest.iter().take(2).take_while(|b| is_word(**b)).count();
    if !rest[..prefix].ends_with(b"r") {
        return None;
    }
    let hashes = rest[prefix..].iter().take_while(|b| **b == b'#').count();
    let open = prefix + hashes + 1;
    if rest.get(open - 1) != Some(&b'"') {
        return None;
    }
    let mut closing = vec![b'"'];
    closing.resize(hashes + 1, b'#');
    let close = rest[open..]
        .windows(closing.len())
        .position(|window| window == closing)
        .map_or(rest.len(), |at| at + open);
    Some((open, close, (close + closing.len()).min(rest.len())))
}

fn string_end(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The end of a character; of a lifetime only its apostrophe.
fn char_end(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        let close = rest.iter().skip(3).position(|byte| *byte == b'\'');
        return close.map_or(1, |at| at + 4);
    }
    // A character is one code point, of up to four bytes.
    let close = rest.iter().skip(2).take(4).position(|byte| *byte == b'\'');
    match close {
        Some(0) => 3,
        Some(more) if rest[1] >= 0x80 => more + 3,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_blanked_and_lines_stay() {
        let text = "a // b \"c\"\n/* d /* e */\n f */ g \"h // i\" r#\"j \" k\"# 'l' '\\'' 'ü' &'m n b\"o\"";
        let code = blank(text, Keep::Code);
        assert_eq!(code.len(), text.len());
        assert_eq!(code.matches('\n').count(), 2);
        let words: String = code.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words, "a g \" \" r#\" \"# ' ' ' ' ' ' &'m n b\" \"");
        let strings = blank(text, Keep::Strings);
        assert!(strings.contains("h // i") && strings.contains("j \" k"));
        assert!(!strings.contains("b \"c\""));
    }

    #[test]
    fn tests_are_blanked_and_named() {
        let text = "use a;\n#[cfg(test)]\nmod tests {\n    fn b() { }\n}\nfn c() {}\n#[cfg(test)]\npub(crate) mod world;\n#[cfg(test)]\nuse d::{e, f};\nfn g() {}";
        let (mut code, mut strings) = (text.to_owned(), text.to_owned());
        assert_eq!(without_tests(&mut code, &mut strings), ["world"]);
        for text in [&code, &strings] {
            let words: Vec<_> = text.split_whitespace().collect();
            assert_eq!(words, ["use", "a;", "fn", "c()", "{}", "fn", "g()", "{}"]);
        }
        assert_eq!(line_of(&code, code.find("fn g").unwrap()), 11);
    }
}
