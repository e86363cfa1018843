//! The signs that a PDF is written in, as far as its end and a few dictionaries need them. Only looks: nothing here goes
//! deeper than it can count, and what is not as expected is `None`.

/// An object by number and generation.
pub(crate) type Reference = (u64, u64);

/// One sign of a dictionary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// `/Name`, without the stroke.
    Name(&'a [u8]),
    /// A string, whichever way it is written.
    Text(Vec<u8>),
    /// A number, `true`, `R` and the like.
    Word(&'a [u8]),
    /// `<<` or `[`.
    Open,
    /// `>>` or `]`.
    Close,
}

/// What follows behind blanks.
pub(crate) fn skip(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|byte| blank(**byte)).count()..]
}

fn blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0
}

/// A number, and what follows it.
pub(crate) fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = skip(text);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
    Some((number, &text[digits..]))
}

/// `12 0 R`
pub(crate) fn reference(text: &[u8]) -> Option<Reference> {
    let (number, rest) = number(text)?;
    let (generation, rest) = self::number(rest)?;
    skip(rest).strip_prefix(b"R")?;
    Some((number, generation))
}

/// What follows the last `12 0 obj`.
pub(crate) fn object(pdf: &[u8], (number, generation): Reference) -> Option<&[u8]> {
    let name = format!("{number} {generation} obj").into_bytes();
    let mut until = pdf.len();
    while let Some(at) = pdf[..until]
        .windows(name.len())
        .rposition(|here| here == name)
    {
        // `12 0 obj` is not `2 0 obj`.
        if at == 0 || !pdf[at - 1].is_ascii_digit() {
            return Some(&pdf[at + name.len()..]);
        }
        until = at;
    }
    None
}

/// The next sign, and what follows it.
pub(crate) fn token(text: &[u8]) -> Option<(Token<'_>, &[u8])> {
    let ends = |byte: u8| blank(byte) || b"()<>[]{}/%".contains(&byte);
    let run = |text: &[u8]| text.iter().take_while(|byte| !ends(**byte)).count();
    let text = skip(text);
    let rest = text.get(1..)?;
    Some(match text[0] {
        b'/' => {
            let (name, rest) = rest.split_at(run(rest));
            (Token::Name(name), rest)
        }
        b'(' => {
            let (text, rest) = literal(rest);
            (Token::Text(text), rest)
        }
        b'<' if rest.first() == Some(&b'<') => (Token::Open, &rest[1..]),
        b'<' => {
            let (text, rest) = hex(rest);
            (Token::Text(text), rest)
        }
        b'>' if rest.first() == Some(&b'>') => (Token::Close, &rest[1..]),
        b'[' => (Token::Open, rest),
        b']' => (Token::Close, rest),
        byte if ends(byte) => return None,
        _ => {
            let (word, rest) = text.split_at(run(text));
            (Token::Word(word), rest)
        }
    })
}

/// What stands behind a name in the dictionary that a text begins with; not in those within it.
pub(crate) fn entry<'a>(dictionary: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let (Token::Open, mut rest) = token(dictionary)? else {
        return None;
    };
    let (mut depth, mut named) = (1_usize, false);
    loop {
        let (next, after) = token(rest)?;
        match next {
            Token::Open => (depth, named) = (depth + 1, false),
            Token::Close if depth == 1 => return None,
            Token::Close => depth -= 1,
            // A name behind a name is its value.
            Token::Name(name) if depth == 1 && !named => {
                if name == key {
                    return Some(after);
                }
                named = true;
            }
            Token::Name(_) | Token::Text(_) | Token::Word(_) => {
                named &= depth > 1;
            }
        }
        rest = after;
    }
}

/// A string in brackets, which may nest and escape, and what follows it.
pub(crate) fn literal(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let (mut out, mut depth, mut at) = (Vec::new(), 1, 0);
    while let Some(byte) = text.get(at).copied() {
        at += 1;
        match byte {
            b'\\' => at = escaped(text, at, &mut out),
            b'\r' => {
                at += usize::from(text.get(at) == Some(&b'\n'));
                out.push(b'\n');
            }
            b'(' => {
                depth += 1;
                out.push(byte);
            }
            b')' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
                out.push(byte);
            }
            byte => out.push(byte),
        }
    }
    (out, &text[at..])
}

/// What a stroke makes of the bytes behind it. Gives the place after them.
fn escaped(text: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
    match text.get(at).copied() {
        Some(b'n') => out.push(b'\n'),
        Some(b'r') => out.push(b'\r'),
        Some(b't') => out.push(b'\t'),
        Some(b'b') => out.push(8),
        Some(b'f') => out.push(12),
        Some(b'\r') if text.get(at + 1) == Some(&b'\n') => return at + 2,
        Some(b'\r' | b'\n') | None => {}
        Some(b'0'..=b'7') => {
            let digits = text[at..].iter().take(3);
            let digits: Vec<u8> = digits
                .take_while(|byte| matches!(byte, b'0'..=b'7'))
                .map(|byte| byte - b'0')
                .collect();
            let code = digits
                .iter()
                .fold(0, |code, digit| code * 8 + u32::from(*digit));
            out.push((code & 0xff) as u8);
            return at + digits.len();
        }
        Some(other) => out.push(other),
    }
    text.len().min(at + 1)
}

/// A string in hexadecimal digits behind its `<`, and what follows it. An odd last digit stands for that digit and a 0.
pub fn hex(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let end = text.iter().take_while(|byte| **byte != b'>').count();
    let digits: Vec<u8> = text[..end]
        .iter()
        .filter_map(|byte| char::from(*byte).to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    let pair = |pair: &[u8]| pair[0] << 4 | pair.get(1).copied().unwrap_or(0);
    let rest = text.get(end + 1..).unwrap_or_default();
    (digits.chunks(2).map(pair).collect(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_of_the_outermost_dictionary() {
        let text = b" << /CF << /StdCF << /Length 16 /CFM /AESV2 >> >> /Filter/Standard/O (a\\)\\101\\n(b)) \
            /Kids [1 0 R /Length] /U <4142 4> /Length 128 /P -44 >> /V 4";
        let next = |key: &[u8]| entry(text, key).and_then(token).map(|(token, _)| token);
        assert_eq!(next(b"Length"), Some(Token::Word(b"128")));
        assert_eq!(next(b"Filter"), Some(Token::Name(b"Standard")));
        assert_eq!(next(b"O"), Some(Token::Text(b"a)A\n(b)".to_vec())));
        assert_eq!(next(b"U"), Some(Token::Text(b"AB@".to_vec())));
        assert_eq!(next(b"P"), Some(Token::Word(b"-44")));
        assert_eq!(next(b"Kids"), Some(Token::Open));
        for none in [&b"V"[..], b"CFM", b"Standard", b"StdCF"] {
            assert_eq!(next(none), None, "{none:?}");
        }
        for broken in [
            &b""[..],
            b"<<",
            b"<< /O",
            b"5 0 R",
            b"<< > /O 1 >>",
            b"<< /X )",
        ] {
            assert_eq!(entry(broken, b"O").and_then(token), None, "{broken:?}");
        }
    }
}
