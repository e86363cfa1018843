//! A look at Turtle or N-Triples before the parser sees it: quoted triples within quoted triples become terms within
//! terms, over which everything recurses, so their depth is refused here.

/// Quoted triples inside quoted triples; graphs keep no deeper ones.
const DEPTH: usize = 16;

/// Whether quoted triples are nested deeper than they may. What the parser cannot read may be misread here as well: it
/// goes no further than its first fault.
pub(super) fn too_deep(text: &[u8]) -> bool {
    let (mut rest, mut depth) = (text, 0_usize);
    while let Some(first) = rest.first() {
        let token = match first {
            b'#' => end(rest, 1, b"\n"),
            b'"' | b'\'' => string(rest, *first),
            b'\\' => 2,
            b'<' if rest.starts_with(b"<<") => {
                depth += 1;
                2
            }
            b'<' => end(rest, 1, b">"),
            b'>' if rest.starts_with(b">>") => {
                depth = depth.saturating_sub(1);
                2
            }
            _ => 1,
        };
        if depth > DEPTH {
            return true;
        }
        rest = rest.get(token..).unwrap_or_default();
    }
    false
}

/// Bytes up to and with what ends a token that begins here.
fn end(text: &[u8], from: usize, end: &[u8]) -> usize {
    let inside = text.get(from..).unwrap_or_default();
    let found = inside.windows(end.len()).position(|bytes| bytes == end);
    found.map_or(text.len(), |at| from + at + end.len())
}

/// Bytes of a string in one or three quotes.
fn string(text: &[u8], quote: u8) -> usize {
    let long = [quote; 3];
    let quotes: &[u8] = match text.starts_with(&long) {
        true => &long,
        false => &long[..1],
    };
    let mut at = quotes.len();
    while let Some(byte) = text.get(at) {
        if text[at..].starts_with(quotes) {
            return at + quotes.len();
        }
        at += if *byte == b'\\' { 2 } else { 1 };
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_quoted_triples_count() {
        let deep = "<<( <urn:s> <urn:p> ".repeat(DEPTH + 1);
        assert!(too_deep(deep.as_bytes()));
        assert!(!too_deep(&deep.as_bytes()[..deep.len() - 20]));
        for hidden in [
            format!("\"{deep}\" ."),
            format!("'it\\'s {deep}' ."),
            format!("\"\"\"\n \" \\\"\"\" {deep}\"\"\" ."),
            format!("# {deep}\n ."),
            format!("<urn:{}> .", "<".repeat(99)),
            "<<( <urn:s> <urn:p> <urn:o> )>> .".repeat(99),
        ] {
            assert!(!too_deep(hidden.as_bytes()), "{hidden}");
        }
        // What only looks as if it were inside something is not.
        for open in [
            "\"\" ",
            "''' ''' ",
            "# \"\n",
            "<#'> ",
            "e:it\\'s ",
            "\"\\\\\" ",
        ] {
            assert!(too_deep(format!("{open}{deep}").as_bytes()), "{open}");
        }
    }
}
