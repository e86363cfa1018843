//! The text of a PDF, page by page. A page that cannot be read costs that page.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pdf_extract::{Document, Error, PlainTextOutput, output_doc_page};
use tg_document::text::tidy;

use super::frames::{Fault, Writer};
use super::limits::Limits;

pub(super) fn decode<W: Write>(
    input: &[u8],
    limits: &Limits,
    output: &mut Writer<W>,
) -> Result<(), Fault> {
    let document = Document::load_mem(input).map_err(|error| match error {
        Error::InvalidPassword | Error::Decryption(_) => Fault::Encrypted,
        _ => Fault::Damaged,
    })?;
    // Loading has tried the empty password.
    if document.trailer.has(b"Encrypt") && !document.was_encrypted() {
        return Err(Fault::Encrypted);
    }
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    if pages.len() > limits.pages as usize {
        return Err(Fault::TooManyPages(
            u32::try_from(pages.len()).unwrap_or(u32::MAX),
        ));
    }
    if pages.is_empty() {
        return Err(Fault::Damaged);
    }
    let (mut some, mut bad) = (false, 0);
    for number in &pages {
        let page = AssertUnwindSafe(|| page(&document, *number));
        match catch_unwind(page) {
            Ok(Some(text)) => {
                let text = clip(tidy(&text), limits.page_bytes);
                some |= !text.is_empty();
                output.page(*number, &text, limits)?;
            }
            _ => {
                bad += 1;
                output.bad_page(*number)?;
            }
        }
    }
    match some {
        true => Ok(()),
        false if bad == pages.len() => Err(Fault::Damaged),
        false => Err(Fault::NoText),
    }
}

fn page(document: &Document, number: u32) -> Option<String> {
    let mut text = String::new();
    let mut output = PlainTextOutput::new(&mut text);
    output_doc_page(document, &mut output, number).ok()?;
    Some(text)
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
