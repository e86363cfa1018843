//! The characters behind the codes of a font, as its `ToUnicode` table says. Reads what it understands and passes over
//! the rest: such tables are often not quite right, and one wrong line is no reason to lose a page.

use std::collections::HashMap;

use tg_document::syntax::hex;

/// Most codes of one table.
const MOST: usize = 1 << 17;

/// Codes to text.
#[derive(Debug, Default, Clone)]
pub(super) struct CMap {
    texts: HashMap<u32, String>,
}

#[derive(Debug, PartialEq)]
enum Token {
    Hex(Vec<u8>),
    Open,
    Close,
    Word(Vec<u8>),
}

impl CMap {
    pub(super) fn get(&self, code: u32) -> Option<&str> {
        self.texts.get(&code).map(String::as_str)
    }

    /// Reads a table.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut map = Self::default();
        let mut tokens = Tokens { bytes, at: 0 };
        let mut section = Vec::new();
        let mut inside = false;
        while let Some(token) = tokens.next() {
            match token {
                Token::Word(word) => {
                    match word.as_slice() {
                        b"endbfchar" => map.chars(&section),
                        b"endbfrange" => map.ranges(&section),
                        _ => {}
                    }
                    inside = matches!(word.as_slice(), b"beginbfchar" | b"beginbfrange");
                    section.clear();
                }
                token if inside => section.push(token),
                _ => {}
            }
        }
        map
    }

    fn chars(&mut self, section: &[Token]) {
        for pair in section.chunks_exact(2) {
            if let [Token::Hex(code), Token::Hex(text)] = pair {
                self.put(number(code), units(text));
            }
        }
    }

    fn ranges(&mut self, section: &[Token]) {
        let mut rest = section;
        while let [Token::Hex(first), Token::Hex(last), after @ ..] = rest {
            let (first, last) = (number(first), number(last));
            let codes = first..=last.min(first.saturating_add(0xffff));
            match after {
                [Token::Hex(text), after @ ..] => {
                    let mut units = units(text);
                    for code in codes {
                        self.put(code, units.clone());
                        if let Some(end) = units.last_mut() {
                            *end = end.wrapping_add(1);
                        }
                    }
                    rest = after;
                }
                [Token::Open, after @ ..] => {
                    let end = after.iter().position(|token| *token == Token::Close);
                    let end = end.unwrap_or(after.len());
                    for (code, token) in codes.zip(&after[..end]) {
                        if let Token::Hex(text) = token {
                            self.put(code, units(text));
                        }
                    }
                    rest = after.get(end + 1..).unwrap_or_default();
                }
                _ => return,
            }
        }
    }

    fn put(&mut self, code: u32, units: Vec<u16>) {
        if self.texts.len() < MOST {
            let chars = char::decode_utf16(units).filter_map(Result::ok);
            let text: String = chars.filter(|char| *char != '\0').collect();
            self.texts.insert(code, text);
        }
    }
}

/// A code of up to four bytes.
fn number(bytes: &[u8]) -> u32 {
    let last = &bytes[bytes.len().saturating_sub(4)..];
    last.iter()
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// UTF-16; a single byte is taken as its character.
fn units(bytes: &[u8]) -> Vec<u16> {
    match bytes {
        [byte] => vec![u16::from(*byte)],
        bytes => bytes
            .chunks_exact(2)
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
            .collect(),
    }
}

struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Tokens<'_> {
    fn next(&mut self) -> Option<Token> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            match byte {
                b'%' => self.skip(|byte| byte != b'\n' && byte != b'\r'),
                b'[' => return Some(Token::Open),
                b']' => return Some(Token::Close),
                b'<' if self.bytes.get(self.at) == Some(&b'<') => self.at += 1,
                b'<' => {
                    let (bytes, rest) = hex(&self.bytes[self.at..]);
                    self.at = self.bytes.len() - rest.len();
                    return Some(Token::Hex(bytes));
                }
                byte if byte.is_ascii_alphabetic() => {
                    let from = self.at - 1;
                    self.skip(|byte| byte.is_ascii_alphanumeric());
                    return Some(Token::Word(self.bytes[from..self.at].to_vec()));
                }
                _ => {}
            }
        }
    }

    fn skip(&mut self, goes_on: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|byte| goes_on(*byte)) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_as_far_as_they_can_be() {
        let map = CMap::parse(
            b"/CMapName /X def 1 begincodespacerange <00> <FF> endcodespacerange\n\
              2 beginbfchar <01> <0041> <02> <00660066> endbfchar % note <03> <0042>\n\
              4 beginbfrange <10> <12> <0061> <20> <21> [<0078> <0079>] <22><23>[<007A>]\n\
              <30> <31> <D83DDE00> <40> <41> <006600660069> endbfrange",
        );
        let texts = [1, 2, 3, 0x10, 0x12, 0x13, 0x20, 0x21, 0x22, 0x31, 0x41].map(|at| map.get(at));
        let wanted = [
            Some("A"),
            Some("ff"),
            None,
            Some("a"),
            Some("c"),
            None,
            Some("x"),
            Some("y"),
            Some("z"),
            Some("\u{1f601}"),
            Some("ffj"),
        ];
        assert_eq!(texts, wanted);
        assert!(
            CMap::parse(b"beginbfrange <00> <ffffffff> <0041>")
                .texts
                .is_empty()
        );
        let cut = CMap::parse(b"1 beginbfchar <5> <0041 endbfchar");
        assert!(cut.texts.is_empty());
    }
}
