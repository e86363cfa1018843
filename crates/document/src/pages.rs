//! Pages of a PDF from its page tree, without reading what is on them. Only looks: a file that is damaged
//! or packs its page tree has no number, unless all of it is at hand ([`of`]).

use crate::packed::{self, find};

/// Bytes kept between two pieces: a dictionary is not cut by them.
const KEPT: usize = 64 << 10;
/// More pages than this are not believed.
const MOST: u64 = 10_000_000;

/// Counts pages in a file that comes in pieces.
#[derive(Debug, Default)]
pub struct Pages {
    kept: Vec<u8>,
    counted: u64,
    said: u64,
}

impl Pages {
    /// The next piece.
    pub fn feed(&mut self, piece: &[u8]) {
        self.kept.extend_from_slice(piece);
        let until = self.kept.len().saturating_sub(KEPT);
        if until > 0 {
            self.look(until);
            self.kept.drain(..until);
        }
    }

    /// The number, once all pieces came.
    pub fn number(mut self) -> Option<u64> {
        let until = self.kept.len();
        self.look(until);
        let number = self.said.max(self.counted);
        (number > 0).then_some(number)
    }

    /// Looks at what begins before a position.
    fn look(&mut self, until: usize) {
        let text = std::mem::take(&mut self.kept);
        let (mut at, mut told) = (0, 0);
        while let Some(found) = find(&text[at..], b"/Type").map(|found| at + found) {
            if found >= until {
                break;
            }
            at = found + 5;
            let rest = &text[at..];
            let rest = &rest[rest.iter().take_while(|b| b.is_ascii_whitespace()).count()..];
            if let Some(after) = rest.strip_prefix(b"/Pages") {
                // A dictionary is looked at once, however often it says what it is.
                if ends_name(after) && found >= told {
                    let (number, end) = count(&text, found);
                    self.said = self.said.max(number);
                    told = end;
                }
            } else if let Some(after) = rest.strip_prefix(b"/Page")
                && ends_name(after)
            {
                self.counted += 1;
            }
        }
        self.kept = text;
    }
}

/// Pages of a PDF of which all is at hand; also where it packs its page tree.
pub fn of(pdf: &[u8]) -> Option<u64> {
    let number = |text: &[u8]| {
        let mut pages = Pages::default();
        pages.feed(text);
        pages.number()
    };
    number(pdf).or_else(|| {
        let packed = packed::objects(pdf).filter_map(|objects| number(&objects));
        packed.max()
    })
}

/// `/Count` in the dictionary around a position, and where that ends.
fn count(text: &[u8], at: usize) -> (u64, usize) {
    let from = text[..at]
        .windows(3)
        .rposition(|three| three == b"obj")
        .unwrap_or(0);
    let until = find(&text[at..], b"endobj").map_or(text.len(), |end| at + end);
    let dictionary = &text[from..until];
    let Some(found) = find(dictionary, b"/Count") else {
        return (0, until);
    };
    let digits = dictionary[found + 6..]
        .iter()
        .skip_while(|byte| byte.is_ascii_whitespace())
        .take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_u64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    (if number > MOST { 0 } else { number }, until)
}

fn ends_name(after: &[u8]) -> bool {
    after
        .first()
        .is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(text: &str, piece: usize) -> Option<u64> {
        let mut pages = Pages::default();
        for piece in text.as_bytes().chunks(piece) {
            pages.feed(piece);
        }
        pages.number()
    }

    #[test]
    fn the_page_tree_says_how_many() {
        let tree = "%PDF-1.4\n2 0 obj\n<< /Kids [3 0 R 4 0 R] /Type /Pages /Count 412 >>\nendobj\n\
                    3 0 obj << /Type/Pages /Count 7 >> endobj\n5 0 obj << /Type /Page >> endobj";
        assert_eq!(pages(tree, 7), Some(412));
        assert_eq!(
            pages(&format!("{}{tree}", "x".repeat(200_000)), 50_000),
            Some(412)
        );
        let bare = "1 0 obj << /Type /Page >> endobj 2 0 obj << /Type /Page/X 1 >> endobj";
        assert_eq!(pages(bare, 1000), Some(2));
        let long = format!("{bare}{}{bare}", " ".repeat(300_000));
        assert_eq!(pages(&long, 1000), Some(4));
    }

    #[test]
    fn a_dictionary_that_repeats_itself_is_looked_at_once() {
        let tree = format!(
            "1 0 obj << {} /Count 3 >> endobj",
            "/Type /Pages ".repeat(50_000)
        );
        let begun = std::time::Instant::now();
        assert_eq!(pages(&tree, 1 << 20), Some(3));
        assert!(begun.elapsed() < std::time::Duration::from_secs(60));
    }

    #[test]
    fn what_is_packed_or_no_pdf_has_no_number() {
        assert_eq!(
            pages("%PDF-1.7 4 0 obj << /Type /ObjStm >> stream", 9),
            None
        );
        assert_eq!(pages("", 1), None);
        let silly = "1 0 obj << /Type /Pages /Count 99999999999999999999999 >> endobj";
        assert_eq!(pages(silly, 100), None);
    }
}
