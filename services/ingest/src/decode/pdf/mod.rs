//! The text of a PDF, page by page: what is drawn ([`content`]) with which characters ([`fonts`]), to words with their places
//! ([`words`]), without what runs along the edges ([`margins`]), in the order of reading ([`layout`]). What cannot be
//! read costs itself: a font, else a page.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pdf_extract::xref::XrefEntry;
use pdf_extract::{Document, Error, Object, ObjectId};
use tg_document::repair::repaired;
use tg_document::text::tidy;

use super::frames::{DecodeError, Writer};
use super::limits::Limits;
use content::{Drawn, Fonts, Reader};
use margins::{Bare, Margins};

mod cmap;
mod content;
mod fonts;
#[cfg(test)]
mod fuzz;
mod layout;
mod margins;
mod objects;
#[cfg(test)]
mod tests;
mod words;

pub(super) fn decode<W: Write>(
    input: &[u8],
    limits: &Limits,
    output: &mut Writer<W>,
) -> Result<(), DecodeError> {
    let mut document = open(input)?;
    let pages: Vec<(u32, ObjectId)> = document.get_pages().into_iter().collect();
    if pages.len() > limits.pages as usize {
        return Err(DecodeError::TooManyPages(
            u32::try_from(pages.len()).unwrap_or(u32::MAX),
        ));
    }
    if pages.is_empty() {
        return Err(DecodeError::Damaged);
    }
    let probe = fonts::probe(&mut document);
    let mut reader = Reader {
        document: &mut document,
        probe,
        fonts: Fonts::new(),
        most: limits.page_bytes,
    };
    let mut said = Said {
        limits,
        output,
        some: false,
        bad: 0,
    };
    let mut margins = Margins::default();
    let count = pages.len();
    for (number, page) in pages {
        let drawn = catch_unwind(AssertUnwindSafe(|| reader.page(page)));
        match drawn {
            Ok(Some(Drawn { words, partly })) => {
                if let Some(bare) = margins.put(number, partly, words.done()) {
                    said.page(bare)?;
                }
            }
            _ => said.bad(number)?,
        }
    }
    while let Some(bare) = margins.go() {
        said.page(bare)?;
    }
    match said.some {
        true => Ok(()),
        false if said.bad == count => Err(DecodeError::Damaged),
        false => Err(DecodeError::NoText),
    }
}

/// Opens a file, made whole first where it is damaged and that helps.
fn open(input: &[u8]) -> Result<Document, DecodeError> {
    let first = load(input);
    let missing = match &first {
        Err(DecodeError::Damaged) => Missing::All,
        Err(_) => return first,
        Ok(document) => missing(document),
    };
    if matches!(missing, Missing::Nothing) {
        return first;
    }
    let again = match repaired(input).map(|whole| load(&whole)) {
        Some(Ok(again)) => again,
        Some(Err(DecodeError::Encrypted)) if first.is_err() => return Err(DecodeError::Encrypted),
        _ => return first,
    };
    let pages = again.get_pages().len();
    let better = match (&first, missing) {
        (Ok(document), Missing::Some(ids)) => {
            let found = |id: &ObjectId| again.objects.get(id).is_some_and(is_whole);
            ids.iter().any(found) && pages >= document.get_pages().len()
        }
        _ => pages > 0,
    };
    if better { Ok(again) } else { first }
}

/// What a file has no objects for, though its table names them.
enum Missing {
    Nothing,
    Some(Vec<ObjectId>),
    /// Nothing leads to a page.
    All,
}

fn missing(document: &Document) -> Missing {
    if document.get_pages().is_empty() {
        return Missing::All;
    }
    if document.was_encrypted() {
        return Missing::Nothing;
    }
    let named = document.reference_table.entries.iter();
    let ids = named.filter_map(|(number, entry)| match entry {
        XrefEntry::Normal { generation, .. } => Some((*number, *generation)),
        _ => None,
    });
    let missing: Vec<ObjectId> = ids
        .filter(|id| !document.objects.get(id).is_some_and(is_whole))
        .collect();
    match missing.is_empty() {
        true => Missing::Nothing,
        false => Missing::Some(missing),
    }
}

/// Of a stream whose length is not known there is no content, only a place; of one whose length is wrong only the dictionary.
fn is_whole(object: &Object) -> bool {
    match object {
        Object::Stream(stream) => {
            let empty = stream.dict.get(b"Length").and_then(Object::as_i64);
            !stream.content.is_empty()
                || stream.start_position.is_none()
                || empty.is_ok_and(|length| length == 0)
        }
        Object::Dictionary(dictionary) => !dictionary.has(b"Length"),
        _ => true,
    }
}

fn load(input: &[u8]) -> Result<Document, DecodeError> {
    let document = Document::load_mem(input).map_err(|error| match error {
        Error::InvalidPassword | Error::Decryption(_) => DecodeError::Encrypted,
        _ => DecodeError::Damaged,
    })?;
    // Loading has tried the empty password.
    if document.trailer.has(b"Encrypt") && !document.was_encrypted() {
        return Err(DecodeError::Encrypted);
    }
    Ok(document)
}

/// What is told of the pages.
struct Said<'a, W> {
    limits: &'a Limits,
    output: &'a mut Writer<W>,
    some: bool,
    bad: usize,
}

impl<W: Write> Said<'_, W> {
    fn page(&mut self, page: Bare) -> Result<(), DecodeError> {
        let laid = catch_unwind(AssertUnwindSafe(|| layout::text(page.words)));
        let Ok(text) = laid else {
            return self.bad(page.number);
        };
        let text = clip(tidy(&text), self.limits.page_bytes);
        self.some |= !text.is_empty();
        if page.partly {
            self.output.partly(page.number)?;
        }
        self.output.page(page.number, &text, self.limits)
    }

    fn bad(&mut self, number: u32) -> Result<(), DecodeError> {
        self.bad += 1;
        self.output.bad_page(number)
    }
}

fn clip(mut text: String, most: usize) -> String {
    if text.len() > most {
        let mut at = most;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        text.truncate(at);
    }
    text
}
