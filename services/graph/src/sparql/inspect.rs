//! A look at a query's text before the parser sees it: what form it has, whether it names graphs, and
//! whether it is small and flat enough. The parser works by recursion, so depth is refused here.

use crate::error::GraphError;

/// Longest text in bytes.
const LENGTH: usize = 64 << 10;
/// Deepest nesting of brackets.
const DEPTH: usize = 48;

/// The four forms of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Rows.
    Select,
    /// Yes or no.
    Ask,
    /// A graph by template.
    Construct,
    /// A graph about resources.
    Describe,
}

impl Form {
    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Select => "select",
            Self::Ask => "ask",
            Self::Construct => "construct",
            Self::Describe => "describe",
        }
    }

    fn of(word: &str) -> Option<Self> {
        [Self::Select, Self::Ask, Self::Construct, Self::Describe]
            .into_iter()
            .find(|form| word.eq_ignore_ascii_case(form.as_str()))
    }
}

/// What the look found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outline {
    pub(super) form: Form,
    pub(super) names_graphs: bool,
}

/// Looks at a query.
pub(super) fn inspect(query: &str) -> Result<Outline, GraphError> {
    if query.len() > LENGTH {
        return refuse(format!("query: is longer than {LENGTH} bytes"));
    }
    let mut form = None;
    let mut names_graphs = false;
    let mut depth = 0_usize;
    for token in (Tokens { rest: query }) {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Word(word) => {
                form = form.or_else(|| Form::of(word));
                names_graphs |= word.eq_ignore_ascii_case("graph");
            }
        }
        if depth > DEPTH {
            return refuse(format!("query: is nested more than {DEPTH} deep"));
        }
    }
    match form {
        Some(form) => Ok(Outline { form, names_graphs }),
        None => refuse("query: expected SELECT, ASK, CONSTRUCT or DESCRIBE".to_owned()),
    }
}

fn refuse<T>(why: String) -> Result<T, GraphError> {
    Err(GraphError::QuerySyntax(why))
}

enum Token<'a> {
    Open,
    Close,
    Word(&'a str),
}

/// Words and brackets, past comments, strings, IRIs, variables and prefixed names.
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
    fn less(&mut self) -> Option<Token<'a>> {
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

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
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
                '?' | '$' | '@' => {
                    self.take(1);
                    self.skip_while(in_word);
                }
                ':' => self.skip_while(|c| in_word(c) || ":.%\\".contains(c)),
                c if c.is_alphabetic() || c == '_' => {
                    let end = self.rest.find(|c| !in_word(c));
                    let word = self.take(end.unwrap_or(self.rest.len()));
                    if !self.rest.starts_with(':') {
                        return Some(Token::Word(word));
                    }
                }
                c => {
                    self.take(c.len_utf8());
                }
            }
        }
    }
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests;
