//! The numbers of lists and of headings. Word does not write them into the text: a paragraph names a list and a level, and
//! its number follows from the paragraphs before it. This module never reads text of a paragraph.

use std::collections::{HashMap, HashSet};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::package::{attribute, is_on};

/// Lists, and kinds of lists, that are kept; nobody has more.
const MOST: usize = 10_000;
/// Most characters of what stands around the numbers of a level.
const LONGEST: usize = 100;
/// The highest number that is written in letters.
const LETTERED: u32 = 3_999;

/// How a number is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Format {
    #[default]
    Decimal,
    /// With two digits at least.
    Padded,
    LowerLetter,
    UpperLetter,
    LowerRoman,
    UpperRoman,
    /// Not at all: the level has its text alone.
    Nothing,
    /// A sign in place of a number, or numbers of another script.
    Other,
}

impl Format {
    fn named(name: &str) -> Self {
        match name {
            "decimal" => Self::Decimal,
            "decimalZero" => Self::Padded,
            "lowerLetter" => Self::LowerLetter,
            "upperLetter" => Self::UpperLetter,
            "lowerRoman" => Self::LowerRoman,
            "upperRoman" => Self::UpperRoman,
            "none" => Self::Nothing,
            _ => Self::Other,
        }
    }

    /// A number in this format; `None` if it has none.
    fn written(self, number: u32) -> Option<String> {
        let upper = matches!(self, Self::UpperLetter | Self::UpperRoman);
        let text = match self {
            Self::Decimal => return Some(number.to_string()),
            Self::Padded => return Some(format!("{number:02}")),
            Self::Nothing => return Some(String::new()),
            Self::Other => return None,
            _ if !(1..=LETTERED).contains(&number) => return None,
            Self::LowerLetter | Self::UpperLetter => letters(number),
            Self::LowerRoman | Self::UpperRoman => roman(number),
        };
        Some(if upper { text.to_uppercase() } else { text })
    }
}

/// `a` to `z`, then `aa` to `zz`, `aaa` and so on.
fn letters(number: u32) -> String {
    let (times, at) = ((number - 1) / 26 + 1, (number - 1) % 26);
    let letter = ('a'..='z').nth(at as usize).unwrap_or_default();
    (0..times).map(|_| letter).collect()
}

fn roman(mut number: u32) -> String {
    const SIGNS: [(u32, &str); 13] = [
        (1000, "m"),
        (900, "cm"),
        (500, "d"),
        (400, "cd"),
        (100, "c"),
        (90, "xc"),
        (50, "l"),
        (40, "xl"),
        (10, "x"),
        (9, "ix"),
        (5, "v"),
        (4, "iv"),
        (1, "i"),
    ];
    let mut text = String::new();
    for (value, sign) in SIGNS {
        while number >= value {
            text.push_str(sign);
            number -= value;
        }
    }
    text
}

/// A level of a list.
#[derive(Debug, Clone)]
struct Level {
    start: u32,
    format: Format,
    /// What stands there, with `%1` for the number of the first level.
    text: String,
    /// All numbers in it are decimal.
    decimal: bool,
    /// It begins anew behind a paragraph of these levels only: so many from the first one on.
    restart: Option<usize>,
    /// Word counts with it and does not show it.
    hidden: bool,
}

impl Default for Level {
    fn default() -> Self {
        Self {
            start: 1,
            format: Format::default(),
            text: String::new(),
            decimal: false,
            restart: None,
            hidden: false,
        }
    }
}

type Levels = HashMap<usize, Level>;

/// A list. Several of one kind count together.
#[derive(Debug, Default)]
struct List {
    kind: String,
    /// Levels that are not those of its kind.
    own: Levels,
    /// Levels that it begins anew, and with which number.
    starts: HashMap<usize, u32>,
    /// Those that it has begun.
    begun: HashSet<usize>,
}

/// What the properties of a paragraph say of its list.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) style: String,
    pub(super) list: Option<String>,
    pub(super) level: Option<usize>,
}

/// The lists of a document, and how far each kind has counted.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    kinds: HashMap<String, Levels>,
    lists: HashMap<String, List>,
    counts: HashMap<String, HashMap<usize, u32>>,
}

impl Numbering {
    /// Reads the part with the lists, as far as it can be read.
    pub(super) fn read(xml: &[u8]) -> Self {
        let mut reader = Reader::from_reader(xml);
        reader.config_mut().expand_empty_elements = true;
        let mut all = Self::default();
        let mut open = Open::default();
        while let Ok(event) = reader.read_event() {
            match event {
                Event::Start(tag) => open.begin(&tag),
                Event::End(tag) => open.end(tag.local_name().as_ref(), &mut all),
                Event::Eof => break,
                _ => {}
            }
        }
        all
    }

    /// What stands before the next paragraph of a list at a level. `None` if that is no number, or one that is not known.
    pub(super) fn next(&mut self, list: &str, level: usize) -> Option<String> {
        let list = self.lists.get_mut(list)?;
        let kind = self.kinds.get(&list.kind)?;
        let anew = list.starts.contains_key(&level) && list.begun.insert(level);
        let list = &*list;
        let of = |at: usize| list.own.get(&at).or_else(|| kind.get(&at));
        let start = |at: usize| {
            let own = list.starts.get(&at).copied();
            own.or_else(|| of(at).map(|level| level.start)).unwrap_or(1)
        };
        let here = of(level)?;
        let counts = self.counts.entry(list.kind.clone()).or_default();
        let number = match counts.get(&level) {
            Some(last) if !anew => last.saturating_add(1),
            _ => start(level),
        };
        counts.insert(level, number);
        counts.retain(|at, _| {
            let stays = |deeper: &Level| deeper.restart.is_some_and(|below| level >= below);
            *at <= level || of(*at).is_none_or(stays)
        });
        if here.format == Format::Other || here.hidden {
            return None;
        }
        let mut label = String::new();
        let mut chars = here.text.chars().peekable();
        while let Some(char) = chars.next() {
            let place = chars.peek().and_then(|next| next.to_digit(10));
            match place.and_then(|place| place.checked_sub(1)) {
                Some(place) if char == '%' => {
                    chars.next();
                    let at = place as usize;
                    let number = counts.get(&at).copied().unwrap_or_else(|| start(at));
                    let format = match here.decimal {
                        true => Format::Decimal,
                        false => of(at)?.format,
                    };
                    label.push_str(&format.written(number)?);
                }
                _ => label.push(char),
            }
        }
        let label = label.trim();
        (!label.is_empty()).then(|| label.to_owned())
    }
}

/// What is being read.
#[derive(Debug, Default)]
struct Open {
    kind: Option<(String, Levels)>,
    list: Option<(String, List)>,
    level: Option<(usize, Level)>,
    /// The level that a list has otherwise than its kind.
    otherwise: usize,
}

impl Open {
    fn begin(&mut self, tag: &BytesStart<'_>) {
        let name = tag.local_name();
        let text = |name: &[u8]| attribute(tag, name).unwrap_or_default();
        let number = |name: &[u8]| text(name).trim().parse::<u32>().ok();
        let level = || number(b"ilvl").map_or(0, |level| level as usize);
        match name.as_ref() {
            b"abstractNum" => self.kind = Some((text(b"abstractNumId"), Levels::new())),
            b"num" => self.list = Some((text(b"numId"), List::default())),
            b"lvl" => self.level = Some((level(), Level::default())),
            b"lvlOverride" => self.otherwise = level(),
            _ => {}
        }
        if let Some((_, list)) = &mut self.list {
            match name.as_ref() {
                b"abstractNumId" => list.kind = text(b"val"),
                b"startOverride" => {
                    list.starts
                        .insert(self.otherwise, number(b"val").unwrap_or(1));
                }
                _ => {}
            }
        }
        let Some((_, level)) = &mut self.level else {
            return;
        };
        match name.as_ref() {
            b"start" => level.start = number(b"val").unwrap_or(1),
            b"numFmt" => level.format = Format::named(&text(b"val")),
            b"lvlText" => level.text = text(b"val").chars().take(LONGEST).collect(),
            b"vanish" => level.hidden = is_on(tag),
            b"isLgl" => level.decimal = is_on(tag),
            b"lvlRestart" => level.restart = number(b"val").map(|level| level as usize),
            _ => {}
        }
    }

    fn end(&mut self, name: &[u8], all: &mut Numbering) {
        match name {
            b"lvl" => {
                let Some((at, level)) = self.level.take() else {
                    return;
                };
                if let Some((_, list)) = &mut self.list {
                    list.own.insert(at, level);
                } else if let Some((_, levels)) = &mut self.kind {
                    levels.insert(at, level);
                }
            }
            b"abstractNum" if all.kinds.len() < MOST => all.kinds.extend(self.kind.take()),
            b"num" if all.lists.len() < MOST => all.lists.extend(self.list.take()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(at: usize, format: &str, text: &str, more: &str) -> String {
        format!(
            "<w:lvl w:ilvl=\"{at}\"><w:numFmt w:val=\"{format}\"/><w:lvlText w:val=\"{text}\"/>{more}</w:lvl>"
        )
    }

    /// Lists 1 and 2 of one kind; what `second` says the second has otherwise.
    fn lists(levels: &[String], second: &str) -> Numbering {
        let levels = levels.concat();
        let list = |id: u8, more: &str| {
            format!("<w:num w:numId=\"{id}\"><w:abstractNumId w:val=\"7\"/>{more}</w:num>")
        };
        let lists = [list(1, ""), list(2, second)].concat();
        let kind = format!("<w:abstractNum w:abstractNumId=\"7\">{levels}</w:abstractNum>");
        Numbering::read(format!("<w:numbering>{kind}{lists}</w:numbering>").as_bytes())
    }

    /// The labels of paragraphs of these lists at these levels; `-` where there is none.
    fn labels(numbering: &mut Numbering, paragraphs: &[(&str, usize)]) -> String {
        let labels = paragraphs.iter().map(|(list, level)| {
            let label = numbering.next(list, *level);
            label.unwrap_or_else(|| "-".to_owned())
        });
        labels.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn deeper_levels_begin_anew_and_say_the_numbers_above_them() {
        let levels = [
            level(0, "decimal", "%1.", ""),
            level(1, "decimal", "%1.%2", ""),
            level(2, "lowerLetter", "(%3)", ""),
        ];
        let mut all = lists(&levels, "");
        let paragraphs = [0, 1, 1, 2, 2, 0, 1, 2].map(|level| ("1", level));
        assert_eq!(
            labels(&mut all, &paragraphs),
            "1. 1.1 1.2 (a) (b) 2. 2.1 (a)"
        );
        // The second list goes on where the first one ended, as they are of one kind.
        assert_eq!(labels(&mut all, &[("2", 1), ("2", 0)]), "2.2 3.");
        // A level below one that had no paragraph.
        assert_eq!(
            labels(&mut lists(&levels, ""), &[("1", 1), ("1", 0)]),
            "1.1 1."
        );
    }

    #[test]
    fn a_list_may_begin_anew_and_a_level_may_go_on() {
        let levels = [
            level(0, "decimal", "%1)", "<w:start w:val=\"3\"/>"),
            level(1, "decimal", "%2", "<w:lvlRestart w:val=\"0\"/>"),
        ];
        let anew = "<w:lvlOverride w:ilvl=\"0\"><w:startOverride w:val=\"1\"/></w:lvlOverride>";
        let mut all = lists(&levels, anew);
        let paragraphs = [("1", 0), ("1", 1), ("1", 0), ("1", 1), ("2", 0), ("2", 0)];
        assert_eq!(labels(&mut all, &paragraphs), "3) 1 4) 2 1) 2)");
        let other = format!(
            "<w:lvlOverride w:ilvl=\"0\">{}</w:lvlOverride>",
            level(0, "upperRoman", "Art. %1", "")
        );
        let mut all = lists(&levels, &other);
        assert_eq!(labels(&mut all, &[("2", 0), ("1", 0)]), "Art. I 2)");
    }

    #[test]
    fn numbers_are_written_in_their_format() {
        for (format, number, wanted) in [
            (Format::Padded, 7, "07"),
            (Format::LowerLetter, 26, "z"),
            (Format::UpperLetter, 28, "BB"),
            (Format::LowerRoman, 1994, "mcmxciv"),
            (Format::UpperRoman, 4, "IV"),
            (Format::Nothing, 4, ""),
        ] {
            assert_eq!(
                format.written(number).as_deref(),
                Some(wanted),
                "{format:?}"
            );
        }
        assert_eq!(Format::LowerRoman.written(4_000), None);
        assert_eq!(Format::UpperLetter.written(0), None);
        let levels = [
            level(0, "upperRoman", "%1", ""),
            level(1, "decimal", "%1.%2", "<w:isLgl/>"),
            level(2, "bullet", "\u{f0b7}", ""),
            level(3, "chineseCounting", "%4", ""),
            level(4, "none", "Note:", ""),
            level(5, "decimal", "%6", "<w:rPr><w:vanish/></w:rPr>"),
        ];
        let paragraphs = [0, 1, 2, 3, 4, 5, 6].map(|level| ("1", level));
        assert_eq!(
            labels(&mut lists(&levels, ""), &paragraphs),
            "I 1.1 - - Note: - -"
        );
        assert_eq!(labels(&mut lists(&levels, ""), &[("3", 0)]), "-");
    }

    #[test]
    fn broken_lists_are_read_as_far_as_they_go() {
        let seed = "<w:numbering><w:abstractNum w:abstractNumId=\"7\"><w:lvl w:ilvl=\"0\"><w:numFmt w:val=\"lowerRoman\"/>\
            <w:lvlText w:val=\"%1.\"/></w:lvl></w:abstractNum><w:num w:numId=\"1\"><w:abstractNumId w:val=\"7\"/></w:num>\
            </w:numbering>";
        tg_testkit::fuzz::run("lists of Word", &[seed.as_bytes()], |bytes| {
            let mut all = Numbering::read(bytes);
            for level in [0, 1, 0] {
                let _ = all.next("1", level);
            }
        });
    }
}
