//! The length of functions, from the line of `fn` to the brace that closes it.

use crate::text::{is_word, item_end, line_of};

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`.
    pub line: usize,
    /// Its lines.
    pub lines: usize,
}

/// The functions with a body in a code without comments and strings.
pub fn functions(code: &str) -> Vec<Function> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if at > 0 && is_word(bytes[at - 1]) {
            continue;
        }
        let name: String = code[at + 3..]
            .bytes()
            .take_while(|byte| is_word(*byte))
            .map(char::from)
            .collect();
        let end = item_end(code, at);
        if name.is_empty() || !code[at..end].ends_with('}') {
            continue;
        }
        let line = line_of(code, at);
        found.push(Function {
            name,
            line,
            lines: line_of(code, end) + 1 - line,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_counted() {
        let code = "trait A {\n fn b(&self);\n fn c() -> [u8; 2] {\n  d({ 1 });\n\n }\n}\nlet f: fn (u8) = 1;";
        let found = functions(code);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].name.as_str(), found[0].line, found[0].lines),
            ("c", 3, 4)
        );
    }
}
