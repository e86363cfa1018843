//! Running heads, feet and page numbers: what stands at the same place, above or below the text, on most of the pages
//! around, and numbers that count pages wherever they stand there. They are no part of the text, and would stand in the middle of its sentences.

use std::collections::{HashMap, VecDeque};

use super::layout::{Row, rows};
use super::words::Word;

/// Pages before and after that a page is compared with.
const AROUND: usize = 6;
/// Rows at the top and at the bottom of a page that may be of this kind.
const ROWS: usize = 3;
/// Pages on which such a row stands at least.
const LEAST: usize = 3;
/// Points by which its place may differ.
const PLACE: f64 = 2.0;

/// A row that may be one, by what it says and where.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    text: String,
    place: i64,
}

#[derive(Debug)]
struct Page {
    number: u32,
    partly: bool,
    words: Vec<Word>,
    candidates: Vec<Candidate>,
}

/// A row at an edge.
#[derive(Debug)]
struct Candidate {
    key: Key,
    /// The first and last line of its words.
    top: f64,
    bottom: f64,
    /// How far the numbers in it are from the number of the page.
    offsets: Vec<i64>,
    /// Those of them that stand at one of its ends.
    outer: Vec<i64>,
    /// It is a number and nothing else.
    bare: bool,
}

/// A page without what runs along its edges.
#[derive(Debug)]
pub(super) struct Bare {
    pub(super) number: u32,
    pub(super) partly: bool,
    pub(super) words: Vec<Word>,
}

/// Pages on their way, each of which waits for those behind it.
#[derive(Debug, Default)]
pub(super) struct Margins {
    pages: VecDeque<Page>,
    /// Place of the next page to go in `pages`.
    next: usize,
}

impl Margins {
    /// The next page came. Gives a page that may go.
    pub(super) fn put(&mut self, number: u32, partly: bool, words: Vec<Word>) -> Option<Bare> {
        let candidates = candidates(number, &words);
        self.pages.push_back(Page {
            number,
            partly,
            words,
            candidates,
        });
        (self.pages.len() > self.next + AROUND)
            .then(|| self.go())
            .flatten()
    }

    /// A page that waits, once no more come.
    pub(super) fn go(&mut self) -> Option<Bare> {
        let page = self.pages.get(self.next)?;
        let mut running: Vec<(f64, f64)> = Vec::new();
        for candidate in &page.candidates {
            if self.runs(page.number, &candidate.key) || self.counts(candidate) {
                running.push((candidate.top, candidate.bottom));
            }
        }
        let turned = turned(&page.words);
        let runs = |word: &Word| {
            let on = |(top, bottom): &(f64, f64)| (*top..=*bottom).contains(&word.y);
            word.turned == turned && running.iter().any(on)
        };
        // A page that says nothing else keeps it.
        let bare = match page.words.iter().all(runs) {
            true => page.words.clone(),
            false => page
                .words
                .iter()
                .filter(|word| !runs(word))
                .cloned()
                .collect(),
        };
        let bare = Bare {
            number: page.number,
            partly: page.partly,
            words: bare,
        };
        self.next += 1;
        if self.next > AROUND {
            self.pages.pop_front();
            self.next -= 1;
        }
        Some(bare)
    }

    /// Whether a row counts pages, as numbers at the edges of most pages around do: a number and nothing else, wherever
    /// it stands, or one at an end of a head whose words change from chapter to chapter.
    fn counts(&self, candidate: &Candidate) -> bool {
        let pages = |holds: &dyn Fn(&Candidate) -> bool| {
            let has = |page: &&Page| page.candidates.iter().any(holds);
            self.pages.iter().filter(has).count()
        };
        let agreed = |offset: i64| {
            let found = pages(&|other| other.offsets.contains(&offset));
            // The number of the page itself is believed sooner.
            let least = if offset == 0 { 2 } else { LEAST };
            found >= least && found * 2 > self.pages.len()
        };
        let beside = |offset: i64| {
            pages(&|other| {
                let near = (other.key.place - candidate.key.place).abs() <= 1;
                near && other.outer.contains(&offset)
            })
        };
        match candidate.offsets.as_slice() {
            [offset] if candidate.bare => agreed(*offset),
            _ => candidate
                .outer
                .iter()
                .any(|offset| beside(*offset) >= LEAST && agreed(*offset)),
        }
    }

    /// Whether a row stands on most pages around, or on most of those on the same side of the sheet.
    fn runs(&self, number: u32, key: &Key) -> bool {
        let has = |page: &&Page| {
            let same = |other: &Candidate| {
                other.key.text == key.text && (other.key.place - key.place).abs() <= 1
            };
            page.candidates.iter().any(same)
        };
        let found = self.pages.iter().filter(has).count();
        let side = || {
            self.pages
                .iter()
                .filter(|page| page.number % 2 == number % 2)
        };
        let on_side = side().filter(has).count();
        let most = found * 2 > self.pages.len();
        found >= LEAST && (most || on_side >= LEAST && on_side * 2 > side().count())
    }
}

/// The way most words of a page are turned.
fn turned(words: &[Word]) -> u8 {
    let mut counts: HashMap<u8, usize> = HashMap::new();
    for word in words {
        *counts.entry(word.turned).or_default() += 1;
    }
    let most = counts
        .into_iter()
        .max_by_key(|(turned, count)| (*count, u8::MAX - turned));
    most.map_or(0, |(turned, _)| turned)
}

/// The outermost rows of a page, as far as they stand apart from what is inside.
fn candidates(number: u32, words: &[Word]) -> Vec<Candidate> {
    let turned = turned(words);
    let rows = rows(
        words
            .iter()
            .filter(|word| word.turned == turned)
            .cloned()
            .collect(),
    );
    let mut found = Vec::new();
    let apart = |outer: &Row, inner: Option<&Row>| {
        inner.is_none_or(|inner| (inner.y - outer.y).abs() > 1.3 * outer.size.max(inner.size))
    };
    // Rows from the edge inwards, up to the last that stands apart.
    let mut edge = |rows: Vec<&Row>| {
        let until = (0..rows.len().min(ROWS))
            .rev()
            .find(|at| apart(rows[*at], rows.get(at + 1).copied()));
        for row in rows.iter().take(until.map_or(0, |at| at + 1)) {
            found.push(candidate(number, row));
        }
    };
    edge(rows.iter().take(ROWS + 1).collect());
    edge(rows.iter().rev().take(ROWS + 1).collect());
    found
}

fn candidate(number: u32, row: &Row) -> Candidate {
    #[allow(clippy::cast_possible_truncation)]
    let place = (row.y / PLACE).round() as i64;
    let lines = row.words.iter().map(|word| word.y);
    let (top, bottom) = lines.fold((f64::MAX, f64::MIN), |(top, bottom), y| {
        (top.min(y), bottom.max(y))
    });
    let text = row.text();
    Candidate {
        offsets: offsets(number, &text),
        outer: outer(number, &text),
        bare: !text.chars().any(char::is_alphabetic),
        key: Key {
            text: pattern(&text),
            place,
        },
        top,
        bottom,
    }
}

/// How far the numbers of a text are from the number of its page.
fn offsets(number: u32, text: &str) -> Vec<i64> {
    let numbers = text.split(|char: char| !char.is_ascii_digit());
    let numbers = numbers.filter_map(|digits| digits.parse::<u32>().ok());
    let mut offsets: Vec<i64> = numbers
        .map(|found| i64::from(found) - i64::from(number))
        .collect();
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

/// What a row says but for its numbers.
fn pattern(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        let roman = word.chars().all(|char| "ivxlc".contains(char));
        let mut digits = false;
        for char in word.chars() {
            let number = roman || char.is_numeric();
            if !number {
                out.push(char);
            } else if !digits {
                out.push('#');
            }
            digits = number;
        }
        out.push(' ');
    }
    out
}

/// Those of the numbers that are the first or the last word.
fn outer(number: u32, text: &str) -> Vec<i64> {
    let mut words = text.split_whitespace();
    let ends = [words.next(), words.next_back()];
    let numbers = ends.into_iter().flatten();
    let whole = numbers.filter_map(|word| word.parse::<u32>().ok());
    whole
        .map(|found| i64::from(found) - i64::from(number))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str, x: f64, y: f64) -> Word {
        Word {
            text: text.to_owned(),
            x,
            end: x + 50.0,
            y,
            size: 10.0,
            turned: 0,
            blank: false,
            leftwards: false,
        }
    }

    fn bare(pages: Vec<Vec<Word>>) -> Vec<String> {
        let mut margins = Margins::default();
        let mut out = Vec::new();
        for (number, words) in (1..).zip(pages) {
            out.extend(margins.put(number, false, words));
        }
        out.extend(std::iter::from_fn(|| margins.go()));
        let said = |page: Bare| {
            let words: Vec<String> = page.words.into_iter().map(|word| word.text).collect();
            words.join(" ")
        };
        out.into_iter().map(said).collect()
    }

    #[test]
    fn what_stands_on_most_pages_goes() {
        let page = |number: usize| {
            let head = if number.is_multiple_of(2) {
                "Even"
            } else {
                "Odd"
            };
            vec![
                word(head, 0.0, 10.0),
                word(&format!("body{number}"), 0.0, 100.0),
                word("same", 0.0, 112.0),
                word("again", 0.0, 124.0),
                word("and", 0.0, 136.0),
                word(&number.to_string(), 0.0, 700.0),
            ]
        };
        let said = bare((1..=20).map(page).collect());
        assert_eq!(said.len(), 20);
        for (number, said) in (1..).zip(said) {
            assert_eq!(said, format!("body{number} same again and"));
        }
    }

    #[test]
    fn numbers_that_count_pages_go_wherever_they_stand() {
        let body = |number: usize| {
            let first = format!("body{}", "x".repeat(number));
            let lines = [first.as_str(), "same", "again", "and", "again", "same"];
            let lines = (0_u32..).zip(lines);
            lines
                .map(|(row, text)| word(text, 0.0, 100.0 + 12.0 * f64::from(row)))
                .collect::<Vec<_>>()
        };
        let said = |number: usize| format!("body{} same again and again same", "x".repeat(number));
        // Chapters begin on pages without a head, with the number at their foot; heads change with the chapter.
        let page = |number: usize| {
            let mut words = body(number);
            let counted = (number + 10).to_string();
            match number % 4 {
                1 => words.push(word(&counted, 0.0, 700.0)),
                _ => {
                    words.push(word(&"Of ".repeat(number / 4 + 1), 0.0, 10.0));
                    words.push(word(&counted, 100.0, 10.0));
                }
            }
            words
        };
        let wanted: Vec<String> = (1..=9).map(said).collect();
        assert_eq!(bare((1..=9).map(page).collect()), wanted);
        // Two pages are enough for what is the number of the page, and for nothing else.
        let foot = |offset: usize| {
            let page = |number: usize| {
                let mut words = body(number);
                words.push(word(&format!("-{}-", number + offset), 0.0, 700.0));
                words
            };
            bare((1..=2).map(page).collect())
        };
        assert_eq!(foot(0), [said(1), said(2)]);
        assert_eq!(foot(5), [said(1) + " -6-", said(2) + " -7-"]);
        let years = |number: usize| {
            let mut words = body(number);
            words.push(word(
                &(1900 + 31 * number).to_string(),
                0.0,
                300.0 + f64::from(u32::try_from(number.pow(3)).unwrap()),
            ));
            words
        };
        let kept = bare((1..=4).map(years).collect());
        assert!(kept[1].ends_with(" 1962"), "{kept:?}");
    }

    #[test]
    fn what_a_page_says_alone_stays() {
        let only = bare(vec![vec![word("Slide", 0.0, 10.0)]; 5]);
        assert_eq!(only, vec!["Slide"; 5]);
        let two = |number: usize| {
            vec![
                word("Head", 0.0, 10.0),
                word(&format!("b{number}"), 0.0, 90.0),
            ]
        };
        assert_eq!(bare((1..=2).map(two).collect()), ["Head b1", "Head b2"]);
        // The head of a table goes on with its rows.
        let table = |number: usize| {
            vec![
                word("Name", 0.0, 10.0),
                word(&format!("n{number}"), 0.0, 22.0),
                word("x", 0.0, 34.0),
                word("y", 0.0, 46.0),
                word("z", 0.0, 58.0),
            ]
        };
        let said = bare((1..=4).map(table).collect());
        assert!(
            said.iter().all(|said| said.starts_with("Name n")),
            "{said:?}"
        );
    }
}
