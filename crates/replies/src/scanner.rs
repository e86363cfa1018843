//! Finds the end of a JSON object or array in a stream of characters.

/// Whether the value is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scan {
    /// More of it follows.
    Open,
    /// It is complete.
    Closed,
}

/// Counts braces outside strings. Raw line breaks and tabs inside strings, which models write and JSON
/// forbids, are escaped.
#[derive(Debug, Default)]
pub struct Scanner {
    text: String,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Scanner {
    /// Takes the next character; the first one opens the value.
    pub fn push(&mut self, c: char) -> Scan {
        if self.in_string {
            self.push_in_string(c);
            return Scan::Open;
        }
        self.text.push(c);
        match c {
            '"' => self.in_string = true,
            '{' | '[' => self.depth += 1,
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return Scan::Closed;
                }
            }
            _ => {}
        }
        Scan::Open
    }

    fn push_in_string(&mut self, c: char) {
        let escaped = std::mem::take(&mut self.escaped);
        match c {
            '\\' if !escaped => self.escaped = true,
            '"' if !escaped => self.in_string = false,
            '\n' | '\r' | '\t' => {
                if !escaped {
                    self.text.push('\\');
                }
                self.text.push(match c {
                    '\n' => 'n',
                    '\r' => 'r',
                    _ => 't',
                });
                return;
            }
            _ => {}
        }
        self.text.push(c);
    }

    /// Whether it is within a string.
    pub fn in_string(&self) -> bool {
        self.in_string
    }

    /// The value so far.
    pub fn text(&self) -> &str {
        &self.text
    }
}
