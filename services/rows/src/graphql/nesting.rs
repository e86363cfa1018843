//! A look at a query's text before the parser sees it. The parser works by recursion, and a stack that overflows ends the process:
//! brackets that nest too deep are refused here.

/// Deepest nesting of brackets. Fields nest sixteen deep, and the values of their arguments a few more.
pub(super) const DEPTH: usize = 64;

/// Whether brackets nest deeper, past comments and strings. What the parser cannot read may be misread here as well: it goes no
/// further than its first fault.
pub(super) fn is_too_deep(query: &str) -> bool {
    let (mut rest, mut depth) = (query.as_bytes(), 0_usize);
    while let Some(first) = rest.first() {
        let token = match first {
            b'{' | b'(' | b'[' => {
                depth += 1;
                1
            }
            b'}' | b')' | b']' => {
                depth = depth.saturating_sub(1);
                1
            }
            b'#' => comment(rest),
            b'"' => string(rest),
            _ => 1,
        };
        if depth > DEPTH {
            return true;
        }
        rest = rest.get(token..).unwrap_or_default();
    }
    false
}

/// Bytes up to the end of the line.
fn comment(text: &[u8]) -> usize {
    let end = text.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    end.unwrap_or(text.len())
}

/// Bytes of a string in one or three quotes. Three that nothing closes are an empty string and the beginning of another one.
fn string(text: &[u8]) -> usize {
    if text.starts_with(QUOTES) {
        return block(text).unwrap_or(2);
    }
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

const QUOTES: &[u8] = b"\"\"\"";
const ESCAPED: &[u8] = b"\\\"\"\"";

/// Bytes of a string in three quotes, if it ends.
fn block(text: &[u8]) -> Option<usize> {
    let mut at = QUOTES.len();
    loop {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        if rest.starts_with(QUOTES) {
            return Some(at + QUOTES.len());
        }
        at += if rest.starts_with(ESCAPED) {
            ESCAPED.len()
        } else {
            1
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_brackets_of_the_query_count() {
        let deep = "{ a(b: [".repeat(DEPTH);
        assert!(is_too_deep(&deep));
        assert!(!is_too_deep(&"[".repeat(DEPTH)) && is_too_deep(&"[".repeat(DEPTH + 1)));
        assert!(!is_too_deep(&"{ a(b: [1]) }".repeat(DEPTH + 1)));
        for hidden in [
            format!("# {deep}\n{{ a }}"),
            format!("{{ a(b: \"\\\"{deep}\") }}"),
            format!("{{ a(b: \"\"\"\\\"\"\" {deep}\"\"\") }}"),
        ] {
            assert!(!is_too_deep(&hidden), "{hidden}");
        }
        // What only looks as if it were inside something is not.
        for open in [
            "\"\" ",
            "\"\\\\\" ",
            "\"\"\"x\" ",
            "\"\"\"\\\\\"\"\" ",
            "# ]\r",
            "]\n",
        ] {
            assert!(is_too_deep(&format!("{open}{deep}")), "{open}");
        }
        let between = "[ \"]\" # ]\n".repeat(DEPTH + 1);
        assert!(is_too_deep(&between));
    }
}
