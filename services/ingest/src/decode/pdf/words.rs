//! Glyphs to words with their places, however the page is turned.

use super::objects::Matrix;

/// Of the size of the font: what is further apart is two words.
const APART: f64 = 0.12;
/// Of the size: what lies less far from a line is on it.
const LINE: f64 = 0.3;

/// One glyph as drawn.
pub(super) struct Glyph<'a> {
    pub(super) text: &'a str,
    pub(super) matrix: Matrix,
    pub(super) width: f64,
    pub(super) size: f64,
    /// What is added behind it.
    pub(super) spacing: f64,
}

/// A word and where it stands: `x` to the right, `y` down to its line, as it is read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) x: f64,
    pub(super) end: f64,
    pub(super) y: f64,
    pub(super) size: f64,
    /// Quarter turns against the page.
    pub(super) turned: u8,
    /// A blank was drawn behind it.
    pub(super) blank: bool,
    /// Written from right to left.
    pub(super) leftwards: bool,
}

/// The words of a page in the order in which they are drawn.
#[derive(Debug, Default)]
pub(super) struct Words {
    words: Vec<Word>,
    /// The next glyph may belong to the last word.
    open: bool,
    /// Where the last glyph ended with what was added behind it.
    next: f64,
    bytes: usize,
}

impl Words {
    /// Bytes of text so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The words.
    pub(super) fn done(self) -> Vec<Word> {
        self.words
    }

    pub(super) fn add(&mut self, glyph: &Glyph<'_>) {
        let [a, b, c, d, x, y] = glyph.matrix;
        // Which way the glyph goes, and where that puts it.
        let mirrored = a * d - b * c < 0.0;
        let (turned, x, y) = if a.abs() >= b.abs() {
            if a >= 0.0 { (0, x, -y) } else { (2, -x, y) }
        } else if b > 0.0 {
            (1, y, x)
        } else {
            (3, -y, -x)
        };
        let y = if mirrored { -y } else { y };
        if !(x.is_finite() && y.is_finite() && glyph.width.is_finite() && glyph.size.is_finite()) {
            return;
        }
        let end = x + glyph.width.abs();
        if glyph.text.chars().all(char::is_whitespace) {
            // A glyph without a character is as good as a blank if it takes room.
            if !glyph.text.is_empty() {
                self.blank(turned, y);
            }
            self.next = end + glyph.spacing;
            return;
        }
        let size = glyph.size.max(0.1);
        let leftwards = glyph.text.chars().next().is_some_and(right_to_left);
        let next = self.next;
        self.next = end + glyph.spacing;
        self.bytes += glyph.text.len();
        if self.open
            && let Some(last) = self.words.last_mut()
            && last.turned == turned
            && (last.y - y).abs() < LINE * size
            && last.size / size < 1.5
            && size / last.size < 1.5
        {
            let gap = x - next.max(last.end);
            if (-0.5 * size..APART * size).contains(&gap) && x >= last.x {
                push(&mut last.text, glyph.text);
                last.end = last.end.max(end);
                last.leftwards |= leftwards;
                return;
            }
            // Drawn from right to left, in the order of reading.
            if leftwards && (last.x - end).abs() < APART * size {
                push(&mut last.text, glyph.text);
                last.x = x;
                last.leftwards = true;
                return;
            }
        }
        let mut text = String::new();
        push(&mut text, glyph.text);
        self.open = true;
        self.words.push(Word {
            text,
            x,
            end,
            y,
            size,
            turned,
            blank: false,
            leftwards,
        });
    }

    fn blank(&mut self, turned: u8, y: f64) {
        if let Some(last) = self.words.last_mut()
            && last.turned == turned
            && (last.y - y).abs() < last.size
        {
            last.blank = true;
        }
        self.open = false;
    }
}

/// Letters that are joined for print come apart again; what no reader sees stays away.
fn push(text: &mut String, glyph: &str) {
    for char in glyph.chars() {
        match char {
            '\u{fb00}' => text.push_str("ff"),
            '\u{fb01}' => text.push_str("fi"),
            '\u{fb02}' => text.push_str("fl"),
            '\u{fb03}' => text.push_str("ffi"),
            '\u{fb04}' => text.push_str("ffl"),
            '\u{fb05}' | '\u{fb06}' => text.push_str("st"),
            char if char.is_control() || char == '\u{feff}' => {}
            char => text.push(char),
        }
    }
}

fn right_to_left(char: char) -> bool {
    matches!(char, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}
