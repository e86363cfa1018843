//! A formula of Word on one line: `(a+b)/2`, `x^2`, `f(x)`. Only its letters are kept as text; what is above what, and what
//! stands in brackets, is said by elements.

/// A formula that is being read.
#[derive(Default)]
pub(super) struct Formula {
    /// The open elements, as far as it matters what they are.
    open: Vec<Kind>,
    /// Where each open part of a fraction or of an index begins.
    parts: Vec<usize>,
    brackets: Vec<Brackets>,
    /// The sign of a sum, which is an integral unless it is said.
    sum: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Brackets,
    Sum,
    Series,
    Root,
    /// What stands under a root.
    Radicand,
    Other,
}

struct Brackets {
    begin: String,
    end: String,
    parts: usize,
}

impl Formula {
    /// An element begins. `value`: what it says.
    pub(super) fn open(&mut self, name: &[u8], value: Option<String>, text: &mut String) {
        let above = self.open.last().copied().unwrap_or(Kind::Other);
        let mut kind = Kind::Other;
        match name {
            b"num" | b"den" | b"sup" | b"sub" | b"deg" => self.parts.push(text.len()),
            b"d" => {
                kind = Kind::Brackets;
                self.brackets.push(Brackets {
                    begin: "(".to_owned(),
                    end: ")".to_owned(),
                    parts: 0,
                });
            }
            b"begChr" | b"endChr" => {
                if let Some(brackets) = self.brackets.last_mut() {
                    let side = match name {
                        b"begChr" => &mut brackets.begin,
                        _ => &mut brackets.end,
                    };
                    *side = value.unwrap_or_default();
                }
            }
            b"nary" => kind = Kind::Series,
            b"e" if above == Kind::Series => text.push(' '),
            b"naryPr" => {
                kind = Kind::Sum;
                "∫".clone_into(&mut self.sum);
            }
            b"chr" if above == Kind::Sum => self.sum = value.unwrap_or_default(),
            b"rad" => {
                kind = Kind::Root;
                text.push('√');
            }
            b"e" if above == Kind::Root => {
                kind = Kind::Radicand;
                text.push('(');
            }
            b"e" if above == Kind::Brackets => {
                if let Some(brackets) = self.brackets.last_mut() {
                    match brackets.parts {
                        0 => text.push_str(&brackets.begin),
                        _ => text.push_str(", "),
                    }
                    brackets.parts += 1;
                }
            }
            _ => {}
        }
        self.open.push(kind);
    }

    /// An element ends.
    pub(super) fn close(&mut self, name: &[u8], text: &mut String) {
        match self.open.pop() {
            Some(Kind::Brackets) => {
                if let Some(brackets) = self.brackets.pop() {
                    text.push_str(&brackets.end);
                }
            }
            Some(Kind::Sum) => text.push_str(&std::mem::take(&mut self.sum)),
            Some(Kind::Radicand) => text.push(')'),
            _ => {}
        }
        let before = match name {
            b"num" | b"deg" => "",
            b"den" => "/",
            b"sup" => "^",
            b"sub" => "_",
            _ => return,
        };
        let begin = self.parts.pop().unwrap_or(usize::MAX);
        let Some(part) = text.get(begin..) else {
            return;
        };
        let part = part.trim();
        let told = match (part.is_empty(), name) {
            (true, _) => String::new(),
            (false, b"deg") => format!("[{part}]"),
            (false, _) if part.chars().all(char::is_alphanumeric) => format!("{before}{part}"),
            (false, _) => format!("{before}({part})"),
        };
        text.truncate(begin);
        text.push_str(&told);
    }
}
