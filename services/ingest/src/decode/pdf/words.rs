//! Glyphs to words with their places, however the page is turned.

use unicode_normalization::char::{compose, is_combining_mark};

use super::objects::Matrix;

/// Of the size of the font: what is further apart is two words.
const APART: f64 = 0.12;
/// Of the size: a blank that takes less room is none.
const BLANK: f64 = 0.05;
/// Of the size: what lies less far from a line is on it.
const LINE: f64 = 0.3;
/// Of the size: glyphs that lie less far from one another are one, drawn twice to look bold.
const DOUBLE: f64 = 0.1;
/// Places within one word that are looked at; a word of more is no word.
const MOST_ROOMS: usize = 1000;
/// Bytes of a word that is read to the left; each glyph of it may move the others.
const MOST_LEFTWARDS: usize = 1000;

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
    /// Where the last glyph of the open word stands.
    glyph: (f64, f64),
    /// Between how many glyphs of the open word there may be room.
    joints: usize,
    /// Those of them where what was added is as wide as a blank.
    rooms: Vec<Room>,
    /// In a word that is read to the left: where the number, or the other letters, end that the last glyph belongs to.
    run: Option<usize>,
    bytes: usize,
}

/// Room within a word that was added between its glyphs.
#[derive(Debug)]
struct Room {
    /// Bytes of the word before it.
    at: usize,
    from: f64,
    to: f64,
}

impl Words {
    /// Bytes of text so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The words.
    pub(super) fn done(mut self) -> Vec<Word> {
        self.close();
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
        let size = glyph.size.max(0.1);
        let next = self.next;
        self.next = end + glyph.spacing.max(0.0);
        if glyph.text.chars().all(char::is_whitespace) {
            // Some writers take a blank back by what they add behind it, to move a letter.
            let room = glyph.width.abs() + glyph.spacing;
            // A glyph without a character is as good as a blank if it takes room.
            if room < BLANK * size {
                self.next = next;
            } else if !glyph.text.is_empty() {
                self.blank(turned, y);
            }
            return;
        }
        let leftwards = glyph.text.chars().next().is_some_and(right_to_left);
        self.bytes += glyph.text.len();
        let on_line = self
            .words
            .last()
            .is_some_and(|last| last.turned == turned && (last.y - y).abs() < DOUBLE * size);
        if on_line && self.repeats(glyph.text, (x, end), size)
            || self.accented(glyph.text, (x, end))
        {
            return;
        }
        if self.open
            && let Some(last) = self.words.last_mut()
            && last.turned == turned
            && (last.y - y).abs() < LINE * size
            && last.size / size < 1.5
            && size / last.size < 1.5
            && (last.text.len() < MOST_LEFTWARDS || !(leftwards || last.leftwards))
        {
            let gap = x - next.max(last.end);
            if (-0.5 * size..APART * size).contains(&gap) && x >= last.x {
                self.append(glyph.text, (x, end), size, leftwards);
                return;
            }
            // Drawn from right to left, in the order of reading.
            if leftwards && (last.x - end).abs() < APART * size {
                push(&mut last.text, glyph.text);
                last.x = x;
                last.leftwards = true;
                self.rooms.clear();
                self.glyph = (x, end);
                return;
            }
        }
        self.close();
        let mut text = String::new();
        push(&mut text, glyph.text);
        self.open = true;
        self.run = None;
        self.glyph = (x, end);
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

    /// Adds a glyph to the open word, whose other glyphs stand to the left of it.
    fn append(&mut self, text: &str, (x, end): (f64, f64), size: f64, leftwards: bool) {
        let Some(last) = self.words.last_mut() else {
            return;
        };
        // Over the letter that was drawn before.
        if last.leftwards && x < self.glyph.1 && text.chars().all(is_combining_mark) {
            let first = || last.text.chars().next().map_or(0, char::len_utf8);
            let at = self.run.unwrap_or_else(first);
            last.text.insert_str(at, text);
            self.run = self.run.map(|end| end + text.len());
            return;
        }
        if leftwards && !last.leftwards {
            (last.text, self.run) = reordered(&last.text);
            last.leftwards = true;
            self.rooms.clear();
        }
        if last.leftwards {
            self.run = put_right(&mut last.text, text, self.run);
        } else {
            self.joints += 1;
            if x - last.end >= APART * size && self.rooms.len() < MOST_ROOMS {
                self.rooms.push(Room {
                    at: last.text.len(),
                    from: last.end,
                    to: x,
                });
            }
            push(&mut last.text, text);
        }
        last.end = last.end.max(end);
        self.glyph = (x, end);
    }

    /// Whether the last glyph of a line is drawn once more, a little beside. One without a width says nothing of its place.
    fn repeats(&self, text: &str, (x, end): (f64, f64), size: f64) -> bool {
        let (from, to) = self.glyph;
        let near = DOUBLE * size;
        let same = self.words.last().is_some_and(|last| {
            let before = last.leftwards && last.text.starts_with(text);
            before || last.text.ends_with(text)
        });
        self.open && same && end - x > near && (x - from).abs() < near && (end - to).abs() < near
    }

    /// Whether the glyph is an accent over the last one or stands below such a one, as in LaTeX; then both become one
    /// character.
    fn accented(&mut self, text: &str, (x, end): (f64, f64)) -> bool {
        let (from, to) = self.glyph;
        let both = to.min(end) - from.max(x);
        if !self.open || both < 0.5 * (to - from).min(end - x) {
            return false;
        }
        let mut chars = text.chars();
        let (Some(new), None) = (chars.next(), chars.next()) else {
            return false;
        };
        let Some(last) = self.words.last_mut() else {
            return false;
        };
        let Some(old) = last.text.chars().next_back() else {
            return false;
        };
        // A glyph that added nothing: the last character stands before the room.
        if self
            .rooms
            .last()
            .is_some_and(|room| room.at >= last.text.len())
        {
            return false;
        }
        let composed = match (combining(old), combining(new)) {
            (Some(accent), None) => compose(dotted(new), accent),
            (None, Some(accent)) => compose(dotted(old), accent),
            _ => None,
        };
        let Some(composed) = composed else {
            return false;
        };
        last.text.pop();
        last.text.push(composed);
        (last.x, last.end) = (last.x.min(x), last.end.max(end));
        self.glyph = (from.min(x), to.max(end));
        true
    }

    /// The open word is complete. Room that was added between a few of its glyphs parts words; between most of them it
    /// is how the word is set.
    fn close(&mut self) {
        let rooms = std::mem::take(&mut self.rooms);
        let joints = std::mem::take(&mut self.joints);
        self.open = false;
        if rooms.is_empty() || rooms.len() * 2 > joints {
            return;
        }
        let Some(whole) = self.words.pop() else {
            return;
        };
        let (mut at, mut x) = (0, whole.x);
        for room in &rooms {
            self.words.push(Word {
                text: whole.text[at..room.at].to_owned(),
                x,
                end: room.from,
                blank: true,
                ..whole.clone()
            });
            (at, x) = (room.at, room.to);
        }
        self.words.push(Word {
            text: whole.text[at..].to_owned(),
            x,
            ..whole
        });
    }

    fn blank(&mut self, turned: u8, y: f64) {
        if let Some(last) = self.words.last_mut()
            && last.turned == turned
            && (last.y - y).abs() < last.size
        {
            last.blank = true;
        }
        self.close();
    }
}

/// What an accent that takes room is over a letter.
fn combining(char: char) -> Option<char> {
    Some(match char {
        '`' => '\u{300}',
        '\u{b4}' => '\u{301}',
        '^' | '\u{2c6}' => '\u{302}',
        '~' | '\u{2dc}' => '\u{303}',
        '\u{af}' | '\u{2c9}' => '\u{304}',
        '\u{2d8}' => '\u{306}',
        '\u{2d9}' => '\u{307}',
        '\u{a8}' => '\u{308}',
        '\u{2da}' => '\u{30a}',
        '\u{2dd}' => '\u{30b}',
        '\u{2c7}' => '\u{30c}',
        '\u{b8}' => '\u{327}',
        '\u{2db}' => '\u{328}',
        _ => return None,
    })
}

/// Letters that lose their dot below an accent.
fn dotted(char: char) -> char {
    match char {
        '\u{131}' => 'i',
        '\u{237}' => 'j',
        char => char,
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

/// Adds a glyph that stands to the right of all others of a word that is read to the left: it comes before them, unless it
/// goes on with a number or with other letters, which end at `run`. Most programs draw such words from left to right.
/// Returns where that run ends now.
fn put_right(text: &mut String, glyph: &str, run: Option<usize>) -> Option<usize> {
    let mut new = String::new();
    push(&mut new, glyph);
    let rightwards = |char: char| char.is_alphanumeric() && !right_to_left(char);
    let goes_on = |char: char| rightwards(char) || matches!(char, '.' | ',' | ':' | '/' | '%');
    if let Some(end) = run.filter(|_| new.chars().all(goes_on)) {
        text.insert_str(end, &new);
        return Some(end + new.len());
    }
    let begins = !new.is_empty() && new.chars().all(rightwards);
    let new: String = new.chars().map(mirror).collect();
    text.insert_str(0, &new);
    begins.then_some(new.len())
}

/// The text of a word that turns out to be read to the left, and where the run of its last glyph ends.
fn reordered(text: &str) -> (String, Option<usize>) {
    let mut reordered = String::new();
    let mut run = None;
    for char in text.chars() {
        run = put_right(&mut reordered, char.encode_utf8(&mut [0; 4]), run);
    }
    (reordered, run)
}

/// What opens where it is read to the right closes where it is read to the left.
fn mirror(char: char) -> char {
    match char {
        '(' => ')',
        ')' => '(',
        '[' => ']',
        ']' => '[',
        '{' => '}',
        '}' => '{',
        '<' => '>',
        '>' => '<',
        '\u{ab}' => '\u{bb}',
        '\u{bb}' => '\u{ab}',
        char => char,
    }
}

fn right_to_left(char: char) -> bool {
    matches!(char, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Glyphs of size 10: text, place, width, what is added behind.
    fn read(glyphs: &[(&str, f64, f64, f64)]) -> Vec<String> {
        let mut words = Words::default();
        for (text, x, width, spacing) in glyphs {
            words.add(&Glyph {
                text,
                matrix: [1.0, 0.0, 0.0, 1.0, *x, 0.0],
                width: *width,
                size: 10.0,
                spacing: *spacing,
            });
        }
        words.done().into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn room_between_all_letters_is_how_a_word_is_set_and_between_two_it_parts_words() {
        let spaced = [
            ("L", 0.0, 5.0, 3.0),
            ("E", 8.0, 5.0, 3.0),
            ("D", 16.0, 5.0, 3.0),
        ];
        assert_eq!(read(&spaced), ["LED"]);
        let pair = [
            ("n", 0.0, 5.0, 0.0),
            ("s", 5.0, 5.0, 3.6),
            ("w", 13.6, 5.0, 3.6),
            ("h", 18.6, 5.0, 0.0),
            ("y", 23.6, 5.0, 0.0),
        ];
        assert_eq!(read(&pair), ["ns", "why"]);
    }

    #[test]
    fn glyphs_that_are_drawn_twice_to_look_bold_are_one() {
        let glyphs = [
            ("a", 0.0, 5.0, 0.0),
            ("a", 0.3, 5.0, 0.0),
            ("l", 5.0, 2.2, 0.0),
            ("l", 5.3, 2.2, 0.0),
            ("l", 7.2, 2.2, 0.0),
            ("l", 7.5, 2.2, 0.0),
        ];
        assert_eq!(read(&glyphs), ["all"]);
        // Further apart the same word is said twice, and below as well.
        let twice = [("x", 0.0, 5.0, 0.0), ("x", 8.0, 5.0, 0.0)];
        assert_eq!(read(&twice), ["x", "x"]);
        let mut words = Words::default();
        for y in [700.0, 688.0] {
            words.add(&Glyph {
                text: "x",
                matrix: [1.0, 0.0, 0.0, 1.0, 60.0, y],
                width: 5.0,
                size: 10.0,
                spacing: 0.0,
            });
        }
        assert_eq!(words.done().len(), 2);
    }

    #[test]
    fn words_that_are_read_to_the_left_are_read_so_however_they_are_drawn() {
        let drawn = |glyphs: &[&str]| {
            let places = (0_u16..).map(|at| f64::from(at) * 5.0);
            let glyphs = glyphs.iter().zip(places);
            let glyphs: Vec<_> = glyphs.map(|(text, x)| (*text, x, 5.0, 0.0)).collect();
            read(&glyphs)
        };
        assert_eq!(drawn(&["ם", "ו", "ל", "ש"]), ["שלום"]);
        let backwards = [
            ("ש", 15.0, 5.0, 0.0),
            ("ל", 10.0, 5.0, 0.0),
            ("ו", 5.0, 5.0, 0.0),
            ("ם", 0.0, 5.0, 0.0),
        ];
        assert_eq!(read(&backwards), ["שלום"]);
        // Letters that are one glyph stay in their order.
        assert_eq!(drawn(&["م", "لا", "س"]), ["سلام"]);
        // Numbers, and what stands around.
        assert_eq!(drawn(&["2", "0", "2", "4", "-", "ב"]), ["ב-2024"]);
        assert_eq!(drawn(&["ה", "-", "1", ",", "2", "5", "%"]), ["1,25%-ה"]);
        assert_eq!(drawn(&["(", "ם", "ו", "ל", "ש", ")"]), ["(שלום)"]);
        assert_eq!(drawn(&["P", "D", "F", "-", "ה"]), ["ה-PDF"]);
        // Drawn twice to look bold.
        let bold = [
            ("ל", 0.0, 5.0, 0.0),
            ("ל", 0.3, 5.0, 0.0),
            ("ש", 5.0, 5.0, 0.0),
            ("ש", 5.3, 5.0, 0.0),
        ];
        assert_eq!(read(&bold), ["של"]);
        // A word without end costs no more than its length.
        let long = drawn(&["ש"; 700]);
        assert_eq!((long.len(), long.concat().chars().count()), (2, 700));
        assert_eq!(drawn(&["(", "a", ")", "1", "-", "2"]), ["(a)1-2"]);
        // A vowel over its letter, drawn behind it or before it.
        let behind = [
            ("ל", 0.0, 5.0, 0.0),
            ("ש", 5.0, 5.0, 0.0),
            ("\u{5b8}", 7.0, 0.0, 0.0),
        ];
        assert_eq!(read(&behind), ["ש\u{5b8}ל"]);
        let before = [
            ("ל", 0.0, 5.0, 0.0),
            ("\u{5b8}", 5.5, 0.0, 0.0),
            ("ש", 5.0, 5.0, 0.0),
        ];
        assert_eq!(read(&before), ["ש\u{5b8}ל"]);
        // A mark over a digit does not part the number.
        let digits = [
            ("ש", 0.0, 5.0, 0.0),
            ("1", 5.0, 5.0, 0.0),
            ("2", 10.0, 5.0, 0.0),
            ("\u{301}", 12.0, 0.0, 0.0),
            ("3", 15.0, 5.0, 0.0),
        ];
        assert_eq!(read(&digits), ["12\u{301}3ש"]);
        // Letters of both kinds, with room between some of them.
        let mixed = [
            ("a", 20.0, 5.0, 3.0),
            ("b", 28.0, 5.0, 0.0),
            ("c", 33.0, 5.0, 0.0),
            ("ש", 15.0, 5.0, 0.0),
            ("ל", 38.0, 5.0, 0.0),
        ];
        assert_eq!(read(&mixed), ["לabcש"]);
    }

    #[test]
    fn a_blank_that_is_taken_back_parts_nothing() {
        let moved = [
            ("v", 0.0, 5.0, 0.0),
            (" ", 5.0, 2.5, -2.4),
            ("e", 5.1, 5.0, 0.0),
        ];
        assert_eq!(read(&moved), ["ve"]);
        let blank = [
            ("v", 0.0, 5.0, 0.0),
            (" ", 5.0, 2.5, 0.0),
            ("e", 7.5, 5.0, 0.0),
        ];
        assert_eq!(read(&blank), ["v", "e"]);
    }

    #[test]
    fn accents_and_letters_at_one_place_are_one_character() {
        let before = [
            ("f", 0.0, 3.0, 0.0),
            ("\u{b4}", 3.0, 5.0, 0.0),
            ("e", 3.2, 4.6, 0.0),
        ];
        assert_eq!(read(&before), ["f\u{e9}"]);
        let wide = [
            ("\u{a8}", 2.0, 5.0, 0.0),
            ("O", 0.6, 7.8, 0.0),
            ("l", 8.4, 3.0, 0.0),
        ];
        assert_eq!(read(&wide), ["\u{d6}l"]);
        let dotless = [("\u{a8}", 0.0, 5.0, 0.0), ("\u{131}", 1.0, 3.0, 0.0)];
        assert_eq!(read(&dotless), ["\u{ef}"]);
        let behind = [("c", 0.0, 4.5, 0.0), ("\u{b8}", 0.0, 4.5, 0.0)];
        assert_eq!(read(&behind), ["\u{e7}"]);
        let apart = [
            ("x", 0.0, 5.0, 0.0),
            ("^", 5.0, 5.0, 0.0),
            ("2", 10.0, 5.0, 0.0),
        ];
        assert_eq!(read(&apart), ["x^2"]);
    }
}
