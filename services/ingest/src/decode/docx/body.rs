//! The text of one part of a Word document. What tracked changes put in counts, what they took out does not; content that
//! is there in several forms for programs of several ages counts once.

use std::collections::HashMap;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use tg_document::text::tidy;

use super::formula::Formula;
use super::numbering::{Listed, Numbering};
use super::package::{attribute, is_on};
use super::styles::{Styles, of_outline};
use super::symbols::sign;
use crate::decode::frames::DecodeError;
use crate::decode::raised::{is_base, is_exponent};

/// How deep elements may be nested. No document that people write comes near it.
const DEEPEST: usize = 1024;

/// Most columns that a cell spans: Word has no more in a table.
const COLUMNS: usize = 63;
/// Characters of a text that is written again in each row that it spans; of a longer one the column stays empty there.
const LABEL: usize = 100;

/// Notes by their kind (`f` or `e`) and id. Each is told once, where it is referred to first.
pub(super) type Notes = HashMap<(u8, String), String>;

/// Texts of parts in other formats, by the ids by which the main part refers to them.
pub(super) type Chunks = HashMap<String, String>;

/// The text of the main part.
pub(super) fn text_of(
    xml: &[u8],
    styles: &Styles,
    numbering: Numbering,
    (notes, chunks): (Notes, Chunks),
) -> Result<String, DecodeError> {
    let mut body = Body::new(styles, notes);
    (body.numbering, body.chunks) = (numbering, chunks);
    body.walk(xml)?;
    body.flush();
    Ok(tidy(&body.here.text))
}

/// Adds the notes of a part that holds such.
pub(super) fn notes_of(xml: &[u8], styles: &Styles, notes: &mut Notes) -> Result<(), DecodeError> {
    let mut body = Body::new(styles, Notes::default());
    body.walk(xml)?;
    notes.extend(body.read);
    Ok(())
}

/// A text that grows: the document's, a note's, or a text box's.
#[derive(Default)]
struct Here {
    text: String,
    /// What comes behind the paragraph, or behind the table.
    behind: String,
    /// The level of a heading whose text has not begun.
    heading: usize,
    /// The paragraph goes on in the next: the mark at its end was taken out.
    joins: bool,
    /// The style of the paragraph hides its text.
    hides: bool,
    /// The number of the paragraph, until its text begins.
    label: Option<String>,
}

/// How a cell stands to the one above it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Merge {
    #[default]
    None,
    /// It spans rows below.
    Begins,
    /// It is spanned by one above.
    GoesOn,
}

/// A cell of the outermost table.
#[derive(Default)]
struct Cell {
    /// Where its text begins.
    begin: usize,
    /// Columns that it spans beside its own.
    more: usize,
    merge: Merge,
}

/// How a run of letters looks, as far as that changes what it says.
#[derive(Default)]
struct Look {
    /// A run is open.
    within: bool,
    /// Word does not show it, or does whatever the styles say.
    hidden: Option<bool>,
    /// The style of the run hides it.
    styled: bool,
    raised: bool,
}

struct Body<'a> {
    styles: &'a Styles,
    notes: Notes,
    numbering: Numbering,
    listed: Listed,
    /// Parts in other formats that were not referred to yet.
    chunks: Chunks,
    /// Notes that were read, of a part that holds such.
    read: Notes,
    note: Option<(u8, String)>,
    /// Notes that were told.
    told: usize,
    here: Here,
    /// What is around the text box.
    around: Vec<Here>,
    depth: usize,
    /// Depth of elements within one that does not count.
    skipped: usize,
    /// Within the properties of a paragraph, of a row.
    of_paragraph: bool,
    of_row: bool,
    /// Inside `w:t`.
    in_text: bool,
    look: Look,
    /// Where a raised run ended: what is raised directly behind it goes on with it.
    raised_to: usize,
    formula: Option<Formula>,
    /// Letters so far.
    letters: u64,
    /// Letters before each set of alternatives.
    alternatives: Vec<u64>,
    /// Depth of tables.
    tables: usize,
    /// Rows of the outermost table, and cells of its row.
    rows: usize,
    cells: usize,
    cell: Cell,
    /// By columns, what cells say that span rows.
    above: Vec<String>,
    /// Where each open row begins, and whether it was taken out.
    open_rows: Vec<(usize, bool)>,
}

impl<'a> Body<'a> {
    fn new(styles: &'a Styles, notes: Notes) -> Self {
        Self {
            styles,
            notes,
            numbering: Numbering::default(),
            listed: Listed::default(),
            chunks: Chunks::default(),
            read: Notes::default(),
            note: None,
            told: 0,
            here: Here::default(),
            around: Vec::new(),
            depth: 0,
            skipped: 0,
            of_paragraph: false,
            of_row: false,
            in_text: false,
            look: Look::default(),
            raised_to: 0,
            formula: None,
            letters: 0,
            alternatives: Vec::new(),
            tables: 0,
            rows: 0,
            cells: 0,
            cell: Cell::default(),
            above: Vec::new(),
            open_rows: Vec::new(),
        }
    }

    fn walk(&mut self, xml: &[u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::from_reader(xml);
        reader.config_mut().expand_empty_elements = true;
        loop {
            match reader.read_event().map_err(|_| DecodeError::Damaged)? {
                Event::Start(tag) => {
                    self.depth += 1;
                    if self.depth > DEEPEST {
                        return Err(DecodeError::Damaged);
                    }
                    self.open(&tag);
                }
                Event::End(tag) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.close(tag.local_name().as_ref());
                }
                Event::Text(text) if self.in_text => {
                    // Entities beyond XML's own five do not exist here.
                    self.say(&text.unescape().map_err(|_| DecodeError::Damaged)?);
                }
                Event::CData(text) if self.in_text => self.say(&String::from_utf8_lossy(&text)),
                Event::Eof => return Ok(()),
                _ => {}
            }
        }
    }

    /// Adds text of a run. In a table a bar is escaped, as it would part columns.
    fn say(&mut self, text: &str) {
        let begins = self.look.raised && self.raised_to != self.here.text.len();
        if begins && is_exponent(text) && is_base(&self.here.text) {
            self.put("^");
        }
        match self.tables > 0 && text.contains('|') {
            true => self.put(&text.replace('|', "\\|")),
            false => self.put(text),
        }
        if self.look.raised {
            self.raised_to = self.here.text.len();
        }
    }

    /// Adds text to the paragraph.
    fn put(&mut self, text: &str) {
        // Of two styles that hide a text, the one takes back what the other does.
        let by_styles = self.look.styled != self.here.hides;
        if text.is_empty() || self.look.hidden.unwrap_or(by_styles) {
            return;
        }
        let heading = std::mem::take(&mut self.here.heading);
        let begins = self.here.text.is_empty() || self.here.text.ends_with('\n');
        if heading > 0 && self.tables == 0 && begins {
            self.here.text.push_str(&"#".repeat(heading));
            self.here.text.push(' ');
        }
        self.label();
        self.here.text.push_str(text);
        self.letters += text.chars().filter(|one| !one.is_whitespace()).count() as u64;
    }

    /// Adds the number of a paragraph whose text begins.
    fn label(&mut self) {
        if let Some(label) = self.here.label.take() {
            self.here.text.push_str(&label);
            self.here.text.push(' ');
        }
    }

    fn open(&mut self, tag: &BytesStart<'_>) {
        if self.skipped > 0 {
            self.skipped += 1;
            return;
        }
        let name = tag.local_name();
        match name.as_ref() {
            b"pPr" => self.of_paragraph = true,
            b"trPr" => self.of_row = true,
            b"pStyle" if self.of_paragraph => {
                let style = attribute(tag, b"val").unwrap_or_default();
                self.here.hides = self.styles.hides(&style);
                if self.tables == 0 {
                    self.here.heading = self.styles.level(&style);
                }
                self.listed.style = style;
            }
            b"numId" if self.of_paragraph => self.listed.list = attribute(tag, b"val"),
            b"ilvl" if self.of_paragraph => self.listed.level = Some(number(tag)),
            b"outlineLvl" if self.of_paragraph && self.tables == 0 => {
                let level = attribute(tag, b"val").and_then(|level| level.trim().parse().ok());
                self.here.heading = level.map_or(0, of_outline);
            }
            // A mark among the properties says so of the end of the paragraph, or of the row.
            b"del" | b"moveFrom" if self.of_paragraph => self.here.joins = true,
            b"del" if self.of_row => {
                if let Some(row) = self.open_rows.last_mut() {
                    row.1 = true;
                }
            }
            // What was taken out or moved away; how it looked before; where tabs stop; how characters are read aloud.
            b"del" | b"moveFrom" | b"pPrChange" | b"rPrChange" | b"tblPrChange" | b"trPrChange"
            | b"tcPrChange" | b"sectPrChange" | b"tabs" | b"rt" => self.skipped = 1,
            b"AlternateContent" => self.alternatives.push(self.letters),
            // The first that says something.
            b"Choice" | b"Fallback"
                if self
                    .alternatives
                    .last()
                    .is_some_and(|before| *before < self.letters) =>
            {
                self.skipped = 1;
            }
            b"txbxContent" => self.around.push(std::mem::take(&mut self.here)),
            b"footnote" | b"endnote" => self.begin_note(tag, name.as_ref()[0]),
            b"footnoteReference" | b"endnoteReference" => self.refer(tag, name.as_ref()[0]),
            b"altChunk" => self.take_in(tag),
            b"t" => self.in_text = true,
            // Indented it would be no heading.
            b"tab" if self.here.heading > 0 => {}
            b"tab" => self.here.text.push('\t'),
            b"br" | b"cr" => self
                .here
                .text
                .push(if self.tables > 0 { ' ' } else { '\n' }),
            b"noBreakHyphen" => self.put("-"),
            b"tbl" => {
                self.tables += 1;
                if self.tables == 1 {
                    self.rows = 0;
                    self.above.clear();
                }
            }
            b"gridBefore" if self.of_row && self.tables == 1 => self.columns(number(tag)),
            b"tc" if self.tables == 1 => {
                self.cell = Cell {
                    begin: self.here.text.len(),
                    ..Cell::default()
                };
            }
            b"gridSpan" if self.tables == 1 => self.cell.more = number(tag).saturating_sub(1),
            b"vMerge" if self.tables == 1 => {
                self.cell.merge = match attribute(tag, b"val").as_deref() {
                    Some("restart") => Merge::Begins,
                    _ => Merge::GoesOn,
                };
            }
            b"tr" => {
                self.open_rows.push((self.here.text.len(), false));
                if self.tables == 1 {
                    self.cells = 0;
                    self.here.text.push_str("| ");
                }
            }
            _ => {}
        }
        if self.skipped == 0 {
            self.open_within(name.as_ref(), tag);
        }
    }

    /// The same for what is within a line: how letters look, signs, formulas.
    fn open_within(&mut self, name: &[u8], tag: &BytesStart<'_>) {
        let value = || attribute(tag, b"val");
        if let Some(formula) = &mut self.formula {
            let value = value().map(|said| match self.tables {
                0 => said,
                _ => said.replace('|', "\\|"),
            });
            formula.open(name, value, &mut self.here.text);
        }
        match name {
            b"r" => {
                self.look = Look {
                    within: true,
                    ..Look::default()
                };
            }
            b"vanish" if self.look.within && !self.of_paragraph => {
                self.look.hidden = Some(is_on(tag));
            }
            b"rStyle" if self.look.within && !self.of_paragraph => {
                self.look.styled = self.styles.hides(&value().unwrap_or_default());
            }
            b"vertAlign" if self.look.within && !self.of_paragraph => {
                self.look.raised = value().is_some_and(|said| said == "superscript");
            }
            // It moves to a margin: what is behind it is another word.
            b"ptab" if self.here.heading == 0 => self.here.text.push('\t'),
            b"sym" => {
                let font = attribute(tag, b"font").unwrap_or_default();
                let place = attribute(tag, b"char").unwrap_or_default();
                if let Some(sign) = sign(&font, &place) {
                    self.say(&sign.to_string());
                }
            }
            // The letters of one that is a heading stay as they are: its text has not begun.
            b"oMath" if self.here.heading == 0 => {
                self.label();
                self.formula = Some(Formula::default());
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &[u8]) {
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        let in_table = self.tables > 0;
        match name {
            b"oMath" => self.formula = None,
            name => {
                if let Some(formula) = &mut self.formula {
                    formula.close(name, &mut self.here.text);
                }
            }
        }
        match name {
            b"r" => self.look = Look::default(),
            b"pPr" => {
                self.of_paragraph = false;
                self.count();
            }
            b"trPr" => self.of_row = false,
            b"t" => self.in_text = false,
            b"p" => self.end_paragraph(),
            b"AlternateContent" => drop(self.alternatives.pop()),
            b"txbxContent" => self.end_box(),
            b"footnote" | b"endnote" => self.end_note(),
            // A table within a cell is a part of its text.
            b"tc" if self.tables > 1 => self.here.text.push(' '),
            b"tc" if in_table => self.end_cell(),
            b"tr" => self.end_row(),
            b"tbl" => {
                self.tables = self.tables.saturating_sub(1);
                self.here.text.push('\n');
                if self.tables == 0 {
                    self.flush();
                }
            }
            _ => {}
        }
    }

    /// The properties of a paragraph are complete: it has the next number of its list.
    fn count(&mut self) {
        let Listed { style, list, level } = std::mem::take(&mut self.listed);
        let text = &self.here.text;
        let begins = self.tables > 0 || text.is_empty() || text.ends_with('\n');
        // Of paragraphs whose marks were taken out the last one counts, and in the middle of a text there is no number.
        if self.here.joins {
            return;
        }
        let (of_style, style_level) = self.styles.list(&style);
        let Some(list) = list.as_deref().or(of_style) else {
            return;
        };
        let level = level.or(style_level).unwrap_or(0);
        let label = self.numbering.next(list, level);
        self.here.label = label.filter(|_| begins);
    }

    fn end_paragraph(&mut self) {
        let joins = std::mem::take(&mut self.here.joins);
        self.here.hides = false;
        self.here.label = None;
        if self.tables > 0 {
            self.here.text.push(' ');
        } else if !joins {
            self.here.heading = 0;
            self.here.text.push_str("\n\n");
            self.flush();
        }
    }

    /// Ends a cell, with what the one above says that spans it.
    fn end_cell(&mut self) {
        let Cell { begin, more, merge } = std::mem::take(&mut self.cell);
        let own = self.here.text.get(begin..).unwrap_or_default().trim();
        let (column, blank) = (self.cells, own.is_empty());
        if self.above.len() <= column {
            self.above.resize(column + 1, String::new());
        }
        if let Some(above) = self.above.get_mut(column) {
            match merge {
                Merge::Begins if own.chars().nth(LABEL).is_none() => *above = own.to_owned(),
                Merge::GoesOn => {}
                _ => above.clear(),
            }
            if merge == Merge::GoesOn && blank && !above.is_empty() {
                self.here.text.truncate(begin);
                self.here.text.push_str(above);
                self.here.text.push(' ');
            }
        }
        self.columns(1 + more);
    }

    /// Ends so many columns of a row.
    fn columns(&mut self, many: usize) {
        self.cells += many;
        self.here.text.push_str(&"| ".repeat(many));
    }

    /// Ends a row; the first has the names of the columns.
    fn end_row(&mut self) {
        let (begin, gone) = self.open_rows.pop().unwrap_or_default();
        let text = &mut self.here.text;
        if gone {
            if text.is_char_boundary(begin) {
                text.truncate(begin);
            }
            return;
        }
        if self.tables > 1 {
            text.push(' ');
            return;
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        self.rows += 1;
        if self.rows == 1 {
            text.push('|');
            text.push_str(&" --- |".repeat(self.cells));
            text.push('\n');
        }
    }

    /// Puts what comes behind a paragraph or a table there.
    fn flush(&mut self) {
        let behind = std::mem::take(&mut self.here.behind);
        self.here.text.push_str(&behind);
    }

    /// The text of a box stands behind the paragraph that it hangs on; in a table it is a part of the cell.
    fn end_box(&mut self) {
        self.flush();
        let Some(around) = self.around.pop() else {
            return;
        };
        let inside = std::mem::replace(&mut self.here, around).text;
        let inside = inside.trim();
        if inside.is_empty() {
            return;
        }
        match self.tables > 0 {
            true => {
                self.here.text.push(' ');
                self.here.text.push_str(inside);
                self.here.text.push(' ');
            }
            false => {
                self.here.behind.push_str(inside);
                self.here.behind.push_str("\n\n");
            }
        }
    }

    fn begin_note(&mut self, tag: &BytesStart<'_>, kind: u8) {
        let usual = attribute(tag, b"type").is_none_or(|kind| kind == "normal");
        self.here = Here::default();
        self.note = attribute(tag, b"id").filter(|_| usual).map(|id| (kind, id));
    }

    fn end_note(&mut self) {
        self.flush();
        let text = std::mem::take(&mut self.here).text;
        let text = text.trim();
        if let Some(note) = self.note.take()
            && !text.is_empty()
        {
            // One paragraph, as lines that begin at the margin are no part of a note.
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let lines = lines.into_iter().filter(|line| !line.is_empty());
            self.read.insert(note, lines.collect::<Vec<_>>().join(" "));
        }
    }

    /// Puts a part in another format here, once: between paragraphs, or as a line of the cell.
    fn take_in(&mut self, tag: &BytesStart<'_>) {
        let id = attribute(tag, b"id").unwrap_or_default();
        let Some(chunk) = self.chunks.remove(&id) else {
            return;
        };
        match self.tables > 0 {
            true => {
                let words: Vec<&str> = chunk.split_whitespace().collect();
                self.say(&words.join(" "));
                self.here.text.push(' ');
            }
            false => {
                self.put(&chunk);
                self.here.text.push_str("\n\n");
            }
        }
    }

    /// A mark here, and the note behind the paragraph.
    fn refer(&mut self, tag: &BytesStart<'_>, kind: u8) {
        let id = attribute(tag, b"id").unwrap_or_default();
        let Some(note) = self.notes.remove(&(kind, id)) else {
            return;
        };
        self.told += 1;
        let mark = format!("[^{}]", self.told);
        self.put(&mark);
        self.here.behind.push_str(&format!("{mark}: {note}\n\n"));
    }
}

/// A number of columns.
fn number(tag: &BytesStart<'_>) -> usize {
    let told = attribute(tag, b"val");
    let told: Option<usize> = told.and_then(|told| told.trim().parse().ok());
    told.unwrap_or(0).min(COLUMNS)
}
