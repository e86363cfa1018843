//! The text of a Word document as Markdown: paragraphs, headings, tables, text boxes and notes, as they stand once all
//! tracked changes are accepted. Pictures, comments, headers and footers are left out. No part of the package is read
//! beyond its limit.

use super::frames::DecodeError;
use super::limits::Limits;

mod body;
mod formula;
mod package;
mod styles;
mod symbols;

use body::Notes;
use package::Package;
use styles::Styles;

pub(super) fn decode(input: &[u8], limits: &Limits) -> Result<String, DecodeError> {
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
    let mut notes = Notes::default();
    for kind in ["footnotes", "endnotes"] {
        if let Some(part) = links.get(kind)
            && let Some(xml) = package.part(part)?
        {
            body::notes_of(&xml, &styles, &mut notes)?;
        }
    }
    body::text_of(&xml, &styles, notes)
}

#[cfg(test)]
mod tests;
