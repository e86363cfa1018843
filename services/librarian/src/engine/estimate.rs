//! What processing a document will cost, told beforehand. Rough on purpose: nothing is extracted for it.

use std::collections::BTreeMap;

use tg_document::pages::Pages;

/// Characters in a chunk, and shared with the one before, unless the flow says otherwise.
const CHUNK: u64 = 2000;
const OVERLAP: u64 = 100;
/// Characters on a page of which only the number is known: of a manual or a standard. Each page is cut by itself.
const PAGE: u64 = 2800;
/// Characters in a token, about.
const TOKEN: u64 = 4;

/// What a flow does with text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Treatment {
    /// Characters in a chunk.
    pub(crate) chunk: u64,
    /// Characters that neighbouring chunks share.
    pub(crate) overlap: u64,
    /// Processors that ask a model about each chunk.
    pub(crate) extractors: u64,
}

impl Treatment {
    /// From the flow's parameters.
    pub(crate) fn new(chunk: Option<u64>, overlap: Option<u64>, extractors: u64) -> Self {
        let chunk = chunk.filter(|chunk| *chunk > 0).unwrap_or(CHUNK);
        Self {
            chunk,
            overlap: overlap.unwrap_or(OVERLAP).min(chunk - 1),
            extractors,
        }
    }

    fn chunks(&self, characters: u64) -> u64 {
        match characters {
            0 => 0,
            few if few <= self.chunk => 1,
            many => 1 + (many - self.chunk).div_ceil(self.chunk - self.overlap),
        }
    }
}

/// Measures a document that comes in pieces.
#[derive(Debug)]
pub(crate) enum Measure {
    /// Text: its characters.
    Text(u64),
    /// A PDF: its pages.
    Pdf(Pages),
    /// Anything else.
    Other,
}

impl Measure {
    /// Chooses by MIME type.
    pub(crate) fn of(kind: &str) -> Self {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        match kind {
            "application/pdf" => Self::Pdf(Pages::default()),
            "application/json" | "application/xml" | "application/csv" => Self::Text(0),
            text if text.starts_with("text/") => Self::Text(0),
            _ => Self::Other,
        }
    }

    /// Whether the content has to be looked at.
    pub(crate) fn looks(&self) -> bool {
        !matches!(self, Self::Other)
    }

    /// The next piece.
    pub(crate) fn feed(&mut self, piece: &[u8]) {
        match self {
            // Each character has one byte that does not continue another.
            Self::Text(characters) => {
                *characters += piece.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64;
            }
            Self::Pdf(pages) => pages.feed(piece),
            Self::Other => {}
        }
    }
}

/// The estimate. What is unknown is left out.
pub(crate) fn estimate(bytes: u64, measure: Measure, how: Treatment) -> BTreeMap<String, i64> {
    let mut told = BTreeMap::new();
    let mut tell = |key: &str, number: u64| {
        told.insert(key.to_owned(), i64::try_from(number).unwrap_or(i64::MAX));
    };
    tell("bytes", bytes);
    let known = match measure {
        Measure::Text(characters) => Some((how.chunks(characters), characters)),
        Measure::Pdf(pages) => pages.number().map(|pages| {
            tell("pages", pages);
            (pages * how.chunks(PAGE), pages * PAGE)
        }),
        Measure::Other => None,
    };
    if let Some((chunks, characters)) = known {
        let read = characters + chunks.saturating_sub(1) * how.overlap;
        tell("chunks", chunks);
        tell("model-calls", chunks * how.extractors);
        tell("tokens", read.div_ceil(TOKEN) * how.extractors);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: &str, content: &str, how: Treatment) -> Vec<(String, i64)> {
        let mut measure = Measure::of(kind);
        measure.feed(content.as_bytes());
        estimate(content.len() as u64, measure, how)
            .into_iter()
            .collect()
    }

    fn pair(key: &str, value: i64) -> (String, i64) {
        (key.to_owned(), value)
    }

    #[test]
    fn text_is_counted_in_characters_and_cut_as_the_flow_says() {
        let how = Treatment::new(Some(10), Some(2), 3);
        // 26 characters: 10, then 8 more each time.
        let text = "äbcdefghijklmnopqrstuvwxyz";
        assert_eq!(
            told("text/markdown; charset=utf-8", text, how),
            [
                pair("bytes", 27),
                pair("chunks", 3),
                pair("model-calls", 9),
                pair("tokens", 8 * 3)
            ]
        );
        assert_eq!(told("text/plain", "", how)[1], pair("chunks", 0));
        assert_eq!(told("text/plain", "abc", how)[1], pair("chunks", 1));
    }

    #[test]
    fn a_pdf_is_counted_in_pages_and_the_rest_in_bytes() {
        let how = Treatment::new(None, None, 2);
        assert_eq!((how.chunk, how.overlap), (2000, 100));
        let pdf = "1 0 obj << /Type /Pages /Count 5 >> endobj";
        let told_of = told("application/pdf", pdf, how);
        assert!(told_of.contains(&pair("pages", 5)) && told_of.contains(&pair("model-calls", 20)));
        assert_eq!(told("application/zip", "PK", how), [pair("bytes", 2)]);
        assert_eq!(told("application/pdf", "?", how), [pair("bytes", 1)]);
        let silly = Treatment::new(Some(5), Some(50), 1);
        assert_eq!(silly.overlap, 4);
    }
}
