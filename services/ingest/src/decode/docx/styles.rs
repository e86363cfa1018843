//! Which styles of a Word document are headings, which hide their text, and which number it. Styles have ids that a
//! translated Word makes up (`berschrift1`); what they are is said by their name, which no translation changes, by their
//! level in the outline, or by the style that they are based on.

use std::collections::HashMap;

use quick_xml::Reader;
use quick_xml::events::Event;

use super::package::{attribute, is_on};
use crate::decode::frames::DecodeError;

/// Styles that are kept; nobody has more.
const MOST: usize = 10_000;
/// Styles that are based on one another.
const DEEPEST: usize = 16;
/// The level in the outline of what is no heading.
const BODY: usize = 9;

#[derive(Default)]
struct Style {
    /// By its name: 1 to 6, or 0.
    named: usize,
    /// As it is written, from 0.
    outline: Option<usize>,
    /// Its text is not shown, as far as it says so.
    hidden: Option<bool>,
    /// The list that its paragraphs are of, and the level in it.
    list: Option<String>,
    list_level: Option<usize>,
    based_on: String,
}

/// The styles of a document.
#[derive(Default)]
pub(super) struct Styles(HashMap<String, Style>);

impl Styles {
    pub(super) fn read(xml: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::from_reader(xml);
        let mut all = HashMap::new();
        let mut open: Option<(String, Style)> = None;
        loop {
            let event = reader.read_event().map_err(|_| DecodeError::Damaged)?;
            match event {
                Event::Start(tag) | Event::Empty(tag) => {
                    let name = tag.local_name();
                    if name.as_ref() == b"style" {
                        let id = attribute(&tag, b"styleId").unwrap_or_default();
                        open = Some((id, Style::default()));
                    } else if let Some((_, style)) = &mut open {
                        let value = || attribute(&tag, b"val").unwrap_or_default();
                        match name.as_ref() {
                            b"name" => style.named = by_name(&value()),
                            b"basedOn" => style.based_on = value(),
                            b"outlineLvl" => style.outline = value().trim().parse().ok(),
                            b"numId" => style.list = Some(value()),
                            b"ilvl" => style.list_level = value().trim().parse().ok(),
                            b"vanish" => style.hidden = Some(is_on(&tag)),
                            _ => {}
                        }
                    }
                }
                Event::End(tag) if tag.local_name().as_ref() == b"style" => {
                    if let Some((id, style)) = open.take()
                        && all.len() < MOST
                    {
                        all.insert(id, style);
                    }
                }
                Event::Eof => return Ok(Self(all)),
                _ => {}
            }
        }
    }

    /// The level of a heading with this style; 0 for what is none.
    pub(super) fn level(&self, id: &str) -> usize {
        let mut here = id;
        for _ in 0..DEEPEST {
            let Some(style) = self.0.get(here) else {
                // Where it is not declared its id is what there is.
                return by_name(here);
            };
            if style.named > 0 {
                return style.named;
            }
            if let Some(outline) = style.outline {
                return of_outline(outline);
            }
            if style.based_on.is_empty() {
                return 0;
            }
            here = &style.based_on;
        }
        0
    }

    /// Whether a style hides its text.
    pub(super) fn hides(&self, id: &str) -> bool {
        self.chain(id)
            .find_map(|style| style.hidden)
            .unwrap_or(false)
    }

    /// The list that paragraphs of a style are of, and their level in it.
    pub(super) fn list(&self, id: &str) -> (Option<&str>, Option<usize>) {
        let list = self.chain(id).find_map(|style| style.list.as_deref());
        (list, self.chain(id).find_map(|style| style.list_level))
    }

    /// A style and those that it is based on.
    fn chain(&self, id: &str) -> impl Iterator<Item = &Style> {
        let first = self.0.get(id);
        std::iter::successors(first, |style| self.0.get(&style.based_on)).take(DEEPEST)
    }
}

/// The level of a heading by its level in the outline, which begins with 0.
pub(super) fn of_outline(level: usize) -> usize {
    match level {
        0..=5 => level + 1,
        6..BODY => 6,
        _ => 0,
    }
}

fn by_name(name: &str) -> usize {
    let name = name.to_ascii_lowercase();
    let level = match name.strip_prefix("heading").map(str::trim) {
        Some(level) => level.parse().unwrap_or(0),
        None => usize::from(name == "title"),
    };
    if (1..=6).contains(&level) { level } else { 0 }
}
