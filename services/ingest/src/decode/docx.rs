//! The text of a Word document: paragraphs, headings and tables as Markdown. Pictures, notes and
//! comments are left out. Reads one entry of the archive, and no more of it than the limit.

use std::io::{Cursor, Read};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use tg_document::text::tidy;
use zip::ZipArchive;
use zip::result::ZipError;

use super::frames::DecodeError;
use super::limits::Limits;

const BODY: &str = "word/document.xml";

pub(super) fn decode(input: &[u8], limits: &Limits) -> Result<String, DecodeError> {
    let mut archive = ZipArchive::new(Cursor::new(input)).map_err(of_zip)?;
    let mut entry = archive.by_name(BODY).map_err(of_zip)?;
    let most = limits.text_bytes;
    if entry.size() > most {
        return Err(DecodeError::TooLarge);
    }
    let mut xml = Vec::new();
    let read = entry.by_ref().take(most + 1).read_to_end(&mut xml);
    let read = read.map_err(|_| DecodeError::Damaged)?;
    if read as u64 > most {
        return Err(DecodeError::TooLarge);
    }
    text_of(&xml)
}

fn of_zip(error: ZipError) -> DecodeError {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => DecodeError::Encrypted,
        _ => DecodeError::Damaged,
    }
}

#[derive(Default)]
struct Body {
    text: String,
    /// Inside `w:t`.
    in_text: bool,
    /// Depth of tables.
    tables: usize,
    /// Rows of the outermost table, and cells of its row.
    rows: usize,
    cells: usize,
}

impl Body {
    fn open(&mut self, tag: &BytesStart<'_>) {
        match tag.local_name().as_ref() {
            b"t" => self.in_text = true,
            b"tab" => self.text.push('\t'),
            b"br" | b"cr" if self.tables > 0 => self.text.push(' '),
            b"br" | b"cr" => self.text.push('\n'),
            b"noBreakHyphen" => self.text.push('-'),
            b"tbl" => {
                self.tables += 1;
                self.rows = if self.tables == 1 { 0 } else { self.rows };
            }
            b"tr" if self.tables == 1 => {
                self.cells = 0;
                self.text.push_str("| ");
            }
            b"pStyle" if self.tables == 0 => self.style(tag),
            _ => {}
        }
    }

    /// A paragraph's style comes before its text.
    fn style(&mut self, tag: &BytesStart<'_>) {
        // Unchecked: to look for names that stand twice takes the square of their number.
        let value = tag
            .attributes()
            .with_checks(false)
            .flatten()
            .find(|attribute| attribute.key.local_name().as_ref() == b"val");
        let Some(value) = value else { return };
        let name = String::from_utf8_lossy(&value.value).to_ascii_lowercase();
        let level = match name.strip_prefix("heading").map(str::trim) {
            Some(level) => level.parse().unwrap_or(0),
            None => usize::from(name == "title"),
        };
        if (1..=6).contains(&level) {
            self.text.push_str(&"#".repeat(level));
            self.text.push(' ');
        }
    }

    /// Ends a row; the first has the names of the columns.
    fn row(&mut self) {
        self.text.truncate(self.text.trim_end().len());
        self.text.push('\n');
        self.rows += 1;
        if self.rows == 1 {
            self.text.push('|');
            self.text.push_str(&" --- |".repeat(self.cells));
            self.text.push('\n');
        }
    }

    fn close(&mut self, name: &[u8]) {
        let in_table = self.tables > 0;
        match name {
            b"t" => self.in_text = false,
            b"p" if in_table => self.text.push(' '),
            b"p" => self.text.push_str("\n\n"),
            // A table within a cell is a part of its text.
            b"tc" | b"tr" if self.tables > 1 => self.text.push(' '),
            b"tc" => {
                self.cells += 1;
                self.text.push_str("| ");
            }
            b"tr" => self.row(),
            b"tbl" => {
                self.tables = self.tables.saturating_sub(1);
                self.text.push('\n');
            }
            _ => {}
        }
    }
}

fn text_of(xml: &[u8]) -> Result<String, DecodeError> {
    let mut reader = Reader::from_reader(xml);
    let mut body = Body::default();
    loop {
        match reader.read_event().map_err(|_| DecodeError::Damaged)? {
            Event::Start(tag) => body.open(&tag),
            Event::Empty(tag) => {
                body.open(&tag);
                body.in_text = false;
            }
            Event::End(tag) => body.close(tag.local_name().as_ref()),
            Event::Text(text) if body.in_text => {
                // Entities beyond XML's own five do not exist here.
                body.text
                    .push_str(&text.unescape().map_err(|_| DecodeError::Damaged)?);
            }
            Event::CData(text) if body.in_text => {
                body.text.push_str(&String::from_utf8_lossy(&text));
            }
            Event::Eof => return Ok(tidy(&body.text)),
            _ => {}
        }
    }
}
