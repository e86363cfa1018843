//! What processing a document will cost, estimated beforehand: from what its chunker and its extractors say, and where those cannot
//! be asked roughly from its size.

use std::collections::BTreeMap;

use tg_document::pages::Pages;
use tg_schemas::msg::MeasureResponse;

/// Characters in a chunk, and shared with the one before, unless the flow says otherwise.
const CHUNK: u64 = 2000;
const OVERLAP: u64 = 100;
/// Characters on a page of which only the number is known: of a manual or a standard. Each page is cut by itself.
const PAGE: u64 = 2800;
/// Characters in a token, about.
const TOKEN: u64 = 4;

/// Tokens of a reply for each hundred of the text that it is about, where no run of the flow has told: facts are about half as
/// long as what they are found in.
const REPLY: i128 = 50;
/// Prices are told in millionths of a dollar.
const MILLION: f64 = 1_000_000.0;

/// What an extractor would ask about some chunks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extraction {
    /// How many chunks.
    pub(crate) samples: u64,
    /// Model calls about them.
    pub(crate) calls: i64,
    /// Tokens of the prompts, with the chunks in them.
    pub(crate) prompts: i64,
    /// Tokens of the chunks in them.
    pub(crate) texts: i64,
}

/// What model calls took before.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Past {
    pub(crate) calls: i64,
    /// Tokens of the replies.
    pub(crate) written: i64,
}

/// Dollars for a token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prices {
    pub(crate) read: f64,
    pub(crate) written: f64,
}

/// What those say who would do it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Estimate {
    /// How the document would be cut.
    pub(crate) cut: MeasureResponse,
    pub(crate) extractions: Vec<Extraction>,
    /// Whether vectors are made of chunks.
    pub(crate) embedded: bool,
    pub(crate) past: Past,
    pub(crate) prices: Option<Prices>,
}

impl Estimate {
    /// Of a document of this size.
    pub(crate) fn of(&self, size: u64) -> BTreeMap<String, i64> {
        let cut = &self.cut;
        let whole = i128::from(size);
        // Of a long text only the beginning was read.
        let all = |number: i64| match i128::from(cut.bytes) {
            read if read > 0 && read < whole => i128::from(number) * whole / read,
            _ => i128::from(number),
        };
        let mut told = BTreeMap::new();
        let mut tell = |key: &str, number: i128| {
            told.insert(key.to_owned(), i64::try_from(number).unwrap_or(i64::MAX));
        };
        let (asked, texts) = (all(cut.asked), all(cut.asked_tokens));
        let (mut calls, mut read, mut about) = (0, 0, 0);
        for one in self.extractions.iter().filter(|one| one.samples > 0) {
            let samples = i128::from(one.samples);
            let each = |number: i128| number * asked / samples;
            calls += each(i128::from(one.calls));
            let around = each(i128::from(one.prompts) - i128::from(one.texts));
            let inside = texts * i128::from(one.calls) / samples;
            read += around + inside;
            about += inside;
        }
        let written = match self.past.calls {
            0 => about * REPLY / 100,
            before => calls * i128::from(self.past.written) / i128::from(before),
        };
        tell("bytes", whole);
        if cut.pages > 0 {
            tell("pages", i128::from(cut.pages));
        }
        tell("chunks", all(cut.chunks));
        tell("model-calls", calls);
        tell("tokens", read + written);
        tell("tokens-in", read);
        tell("tokens-out", written);
        tell("calls-learnt-from", i128::from(self.past.calls));
        if self.embedded {
            tell("tokens-embedded", all(cut.tokens));
        }
        if let Some(prices) = self.prices {
            let dollars = read as f64 * prices.read + written as f64 * prices.written;
            tell("microdollars", (dollars * MILLION).round() as i128);
        }
        told
    }
}

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

/// The name under which a model has its price: a text completion says it behind the provider and before the temperature.
pub(crate) fn priced(model: &str) -> &str {
    let name = model.split_once('/').map_or(model, |(_, name)| name);
    name.rsplit_once(" at ").map_or(name, |(name, _)| name)
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

    fn counted() -> Estimate {
        Estimate {
            cut: MeasureResponse {
                chunks: 10,
                asked: 8,
                tokens: 1000,
                asked_tokens: 800,
                ..MeasureResponse::default()
            },
            // Two calls about each chunk, with 50 tokens around it.
            extractions: vec![Extraction {
                samples: 4,
                calls: 8,
                prompts: 1200,
                texts: 800,
            }],
            embedded: true,
            ..Estimate::default()
        }
    }

    #[test]
    fn what_those_say_who_would_do_it_is_added_up() {
        let told = counted().of(100);
        let all = [
            pair("bytes", 100),
            pair("calls-learnt-from", 0),
            pair("chunks", 10),
            pair("model-calls", 16),
            pair("tokens", 3200),
            pair("tokens-embedded", 1000),
            pair("tokens-in", 2400),
            pair("tokens-out", 800),
        ];
        assert_eq!(told.into_iter().collect::<Vec<_>>(), all);
        let learnt = Estimate {
            past: Past {
                calls: 4,
                written: 40,
            },
            prices: Some(Prices {
                read: 3e-6,
                written: 15e-6,
            }),
            ..counted()
        };
        let told = learnt.of(100);
        assert_eq!((told["tokens-out"], told["calls-learnt-from"]), (160, 4));
        assert_eq!(told["microdollars"], 2400 * 3 + 160 * 15);
    }

    #[test]
    fn of_a_long_text_the_beginning_stands_for_the_whole() {
        let mut part = counted();
        part.cut.bytes = 50;
        let told = part.of(100);
        assert_eq!(
            (told["chunks"], told["model-calls"], told["tokens-in"]),
            (20, 32, 4800)
        );
        assert_eq!(Estimate::default().of(0)["model-calls"], 0);
    }

    #[test]
    fn a_model_has_its_price_under_its_own_name() {
        assert_eq!(priced("openai/gpt-x at 0.7"), "gpt-x");
        assert_eq!(priced("ollama/a/b"), "a/b");
        assert_eq!(priced("m"), "m");
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
