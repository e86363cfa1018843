//! The text of a Word document as Markdown: paragraphs, headings, tables, text boxes and notes, as they stand once all
//! tracked changes are accepted. Parts in other formats stand in their place, and the numbers of lists before their
//! paragraphs. Pictures, comments, headers and footers are left out. No part of the package is read beyond its limit.

use tg_document::kind::{self, Kind};
use tg_document::text::leniently;

use super::frames::DecodeError;
use super::html;
use super::limits::Limits;

mod body;
mod formula;
mod message;
mod numbering;
mod package;
mod styles;
mod symbols;

use body::{Chunks, Notes};
use numbering::Numbering;
use package::Package;
use styles::Styles;

/// Documents within documents that are read.
const DEEPEST: usize = 4;

pub(super) fn decode(input: &[u8], limits: &Limits) -> Result<String, DecodeError> {
    within(input, limits, 0, &mut { limits.text_bytes })
}

/// `room` is what parts in other formats and their texts may still take, those of documents within documents among them.
fn within(
    input: &[u8],
    limits: &Limits,
    depth: usize,
    room: &mut u64,
) -> Result<String, DecodeError> {
    let mut package = Package::open(input, limits.text_bytes)?;
    let main = package.main()?;
    let links = package.links(&main)?;
    let xml = package.part(&main)?.ok_or(DecodeError::Damaged)?;
    let mut styles = Styles::default();
    if let Some(part) = links.get("styles")
        && let Some(xml) = package.part(part)?
    {
        styles = Styles::read(&xml)?;
    }
    let mut numbering = Numbering::default();
    // Without its numbers a text can still be read.
    if let Some(part) = links.get("numbering")
        && let Ok(Some(xml)) = package.part(part)
    {
        numbering = Numbering::read(&xml);
    }
    let mut notes = Notes::default();
    for kind in ["footnotes", "endnotes"] {
        if let Some(part) = links.get(kind)
            && let Some(xml) = package.part(part)?
        {
            body::notes_of(&xml, &styles, &mut notes)?;
        }
    }
    let chunks = chunks(&mut package, &main, limits, (depth, room))?;
    body::text_of(&xml, &styles, numbering, (notes, chunks))
}

/// The texts of the parts in other formats (`w:altChunk`). One that cannot be read is left out.
fn chunks(
    package: &mut Package<'_>,
    main: &str,
    limits: &Limits,
    (depth, room): (usize, &mut u64),
) -> Result<Chunks, DecodeError> {
    let mut chunks = Chunks::new();
    for (id, name) in package.chunks(main)? {
        let Some(part) = package.part(&name)? else {
            continue;
        };
        // Many may lead to one part, and each of them reads it again.
        take(room, part.len())?;
        if let Some(text) = chunk(&part, &name, limits, (depth, &mut *room)) {
            take(room, text.len())?;
            chunks.insert(id, text);
        }
    }
    Ok(chunks)
}

fn take(room: &mut u64, bytes: usize) -> Result<(), DecodeError> {
    *room = room
        .checked_sub(bytes as u64)
        .ok_or(DecodeError::TooLarge)?;
    Ok(())
}

/// The text of a part, by its content: Word, a page alone or in a message, or plain text by its name. Other kinds have none.
fn chunk(
    part: &[u8],
    name: &str,
    limits: &Limits,
    (depth, room): (usize, &mut u64),
) -> Option<String> {
    let head = part.get(..kind::HEAD).unwrap_or(part);
    let is_text = name.to_ascii_lowercase().ends_with(".txt");
    if part.starts_with(b"PK\x03\x04") {
        return (depth < DEEPEST)
            .then(|| within(part, limits, depth + 1, room).ok())
            .flatten();
    }
    if is_text {
        let is_read = matches!(
            kind::detect(head, "text/plain"),
            Ok(Kind::Text | Kind::Html)
        );
        return is_read.then(|| leniently(part, None).0);
    }
    if let Some((page, charset)) = message::page(part) {
        return html::decode_as(&page, charset).ok();
    }
    match kind::detect(head, "text/html") {
        Ok(Kind::Html) => html::decode(part).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
