//! A look at a query's text before the parser sees it: is it short and flat enough? The parser works by
//! recursion, so depth is refused here.

use crate::error::GraphError;

/// Longest text in bytes.
const LENGTH: usize = 64 << 10;
/// Deepest nesting of brackets.
const DEPTH: usize = 48;

/// Refuses what the parser should not see.
pub(super) fn check(query: &str) -> Result<(), GraphError> {
    if query.len() > LENGTH {
        return refuse(format!("query: is longer than {LENGTH} bytes"));
    }
    let mut depth = 0_usize;
    for token in (Tokens { rest: query }) {
        depth = match token {
            Token::Open => depth + 1,
            Token::Close => depth.saturating_sub(1),
        };
        if depth > DEPTH {
            return refuse(format!("query: is nested more than {DEPTH} deep"));
        }
    }
    Ok(())
}

fn refuse(why: String) -> Result<(), GraphError> {
    Err(GraphError::QuerySyntax(why))
}

enum Token {
    Open,
    Close,
}

/// Brackets, past comments, strings and IRIs.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn skip_while(&mut self, inside: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(inside);
    }

    fn skip_string(&mut self, quote: char) {
        let long: &str = if quote == '"' { "\"\"\"" } else { "'''" };
        let end = if self.rest.starts_with(long) {
            long
        } else {
            &long[..1]
        };
        self.take(end.len());
        let mut escaped = false;
        for (at, c) in self.rest.char_indices() {
            if !escaped && self.rest[at..].starts_with(end) {
                self.take(at + end.len());
                return;
            }
            escaped = !escaped && c == '\\';
        }
        self.rest = "";
    }

    /// An IRI, a triple term's bracket or a comparison.
    fn less(&mut self) -> Option<Token> {
        if self.rest.starts_with("<<") {
            self.take(2);
            return Some(Token::Open);
        }
        let inside = self.rest[1..].find(|c| c <= ' ' || "<>\"{}|^`\\".contains(c));
        match inside {
            Some(end) if self.rest[1 + end..].starts_with('>') => self.take(end + 2),
            _ => self.take(1),
        };
        None
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            let first = self.rest.chars().next()?;
            match first {
                '#' => self.skip_while(|c| c != '\n' && c != '\r'),
                '"' | '\'' => self.skip_string(first),
                '<' => {
                    if let Some(token) = self.less() {
                        return Some(token);
                    }
                }
                '>' if self.rest.starts_with(">>") => {
                    self.take(2);
                    return Some(Token::Close);
                }
                '(' | '[' | '{' => {
                    self.take(1);
                    return Some(Token::Open);
                }
                ')' | ']' | '}' => {
                    self.take(1);
                    return Some(Token::Close);
                }
                c => {
                    self.take(c.len_utf8());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
