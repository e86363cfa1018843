//! What a document would become, counted with what takes documents apart and cuts them, and nothing of it kept.

use std::collections::HashSet;

use tg_clients::library::Content;
use tg_provenance::text_hash;
use tg_schemas::msg::{MeasureResponse, in_context};

use crate::cut::slices;
use crate::engine::chunks::Cutting;
use crate::engine::outline::{Outline, Start};
use crate::engine::structure::Structure;
use crate::error::{IngestError, unfinished};
use crate::parts::{TakesParts, of_page};
use crate::source::TextOrigin;
use crate::texts::Texts;

/// Bytes of text that are cut; of a longer text the rest is reckoned from these.
const READ: u64 = 64 << 20;
/// Characters of chunks that are looked at: chunks that share nearly all of their text have many times those of the text.
const LOOKED_AT: u64 = 256 << 20;
/// Bytes of all chunks told, so that they fit into a message.
const TOLD: usize = 256 << 10;
/// Chunks whose tokens are counted, each; after that of one in [`EVERY`], and the others by their length.
const COUNTED: u64 = 2_000;
const EVERY: u64 = 32;
/// Chunks told.
const SAMPLES: usize = 8;
/// The second, fourth … chunk that is told: so that they are not all of its beginning.
const STRIDE: u64 = 2;
/// Chunks of which it is remembered that they were there.
const REMEMBERED: usize = 1 << 20;

/// Counts the parts of one document.
pub(crate) struct Measuring {
    cutting: Cutting,
    title: String,
    pages: u64,
    parts: usize,
    /// Bytes of text that was cut, and of all that came.
    length: u64,
    came: u64,
    /// Whether the document was read to its end.
    ended: bool,
    last_page: u32,
    told: Told,
}

/// What was counted of chunks.
#[derive(Default)]
struct Told {
    chunks: u64,
    asked: u64,
    /// Characters of all chunks, of those that are asked about, and of those whose tokens were counted.
    characters: u64,
    asked_characters: u64,
    counted_characters: u64,
    counted: u64,
    seen: HashSet<u64>,
    samples: Vec<String>,
    /// How far apart samples are now.
    stride: u64,
}

impl Told {
    fn add(&mut self, context: &str, chunk: &str) {
        let read = in_context(context, chunk);
        let characters = read.chars().count() as u64;
        self.chunks += 1;
        self.characters += characters;
        if self.chunks <= COUNTED || self.chunks.is_multiple_of(EVERY) {
            self.counted_characters += characters;
            self.counted += tg_tokens::count(&read);
        }
        if !chunk.chars().any(char::is_alphanumeric) {
            return;
        }
        let hash = u64::from_str_radix(&text_hash(&read)[..16], 16).unwrap_or(0);
        if self.seen.len() < REMEMBERED && !self.seen.insert(hash) {
            return;
        }
        self.sample(&read);
        self.asked += 1;
        self.asked_characters += characters;
    }

    /// Keeps every so manieth; once there are enough, every other one of them goes.
    fn sample(&mut self, read: &str) {
        if !self.asked.is_multiple_of(self.stride.max(1)) {
            return;
        }
        if self.samples.len() == SAMPLES {
            let mut at = 0;
            self.samples.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride = self.stride.max(1) * STRIDE;
            if !self.asked.is_multiple_of(self.stride) {
                return;
            }
        }
        self.samples.push(read.to_owned());
    }

    fn tokens(&self, characters: u64) -> i64 {
        let counted = u128::from(self.counted) * u128::from(characters);
        let tokens = counted / u128::from(self.counted_characters.max(1));
        i64::try_from(tokens).unwrap_or(i64::MAX)
    }
}

impl Measuring {
    /// Of a document with this title, cut as these settings say.
    pub(crate) fn new(cutting: Cutting, title: String) -> Self {
        Self {
            cutting,
            title,
            pages: 0,
            parts: 0,
            length: 0,
            came: 0,
            ended: false,
            last_page: 0,
            told: Told::default(),
        }
    }

    /// Cuts a text that is not taken apart.
    pub(crate) async fn text(&mut self, root: &str, pieces: Content) -> Result<(), IngestError> {
        let mut texts = Texts::new(root, pieces);
        let structure = Structure::of("");
        let mut outline = Outline::new(structure, self.start());
        while let Some(window) = texts.next().await? {
            self.window(structure, &mut outline, window).await?;
            if self.has_enough() {
                return Ok(());
            }
        }
        self.ended = true;
        Ok(())
    }

    async fn window(
        &mut self,
        structure: Structure,
        outline: &mut Outline,
        text: String,
    ) -> Result<(), IngestError> {
        self.came += text.len() as u64;
        if self.has_enough() {
            return Ok(());
        }
        let (slices, contexts) = slices(self.cutting, structure, outline, &text).await?;
        let mut told = std::mem::take(&mut self.told);
        let counted = tokio::task::spawn_blocking(move || {
            let mut reached = text.len();
            for (slice, context) in slices.iter().zip(contexts) {
                if told.characters >= LOOKED_AT {
                    reached = slice.bytes.start;
                    break;
                }
                told.add(&context, &text[slice.bytes.clone()]);
            }
            (told, reached)
        });
        let (told, reached) = counted.await.map_err(unfinished)?;
        self.told = told;
        self.length += reached as u64;
        Ok(())
    }

    async fn part(&mut self, text: String, place: TextOrigin) -> Result<(), IngestError> {
        self.parts += 1;
        let structure = Structure::of(&place.kind);
        let mut outline = Outline::new(structure, place.start);
        self.window(structure, &mut outline, text).await
    }

    /// What was counted. Of a document that was read to its end what was not cut is reckoned from what was; how much there is of
    /// one that was not, who asks knows.
    pub(crate) fn told(self) -> MeasureResponse {
        let bytes = if self.ended { 0 } else { self.length };
        let (came, cut) = match self.ended && self.length > 0 {
            true => (u128::from(self.came), u128::from(self.length)),
            false => (1, 1),
        };
        let mut told = self.told;
        let all = |number: i64| {
            let all = u128::try_from(number).unwrap_or(0) * came / cut;
            i64::try_from(all).unwrap_or(i64::MAX)
        };
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let mut room = TOLD;
        told.samples.retain_mut(|sample| {
            let mut end = sample.len().min(room);
            while !sample.is_char_boundary(end) {
                end -= 1;
            }
            sample.truncate(end);
            room -= end;
            end > 0
        });
        MeasureResponse {
            bytes: number(bytes),
            pages: number(self.pages),
            chunks: all(number(told.chunks)),
            asked: all(number(told.asked)),
            tokens: all(told.tokens(told.characters)),
            asked_tokens: all(told.tokens(told.asked_characters)),
            samples: told.samples,
            ..MeasureResponse::default()
        }
    }
}

impl TakesParts for Measuring {
    fn start(&self) -> Start {
        Start {
            title: self.title.clone(),
            ..Start::default()
        }
    }

    fn is_empty(&self) -> bool {
        self.parts == 0
    }

    fn last_page(&self) -> u32 {
        self.last_page
    }

    fn has_enough(&self) -> bool {
        self.length >= READ || self.told.characters >= LOOKED_AT
    }

    async fn page(&mut self, number: u32, text: String) -> Result<(), IngestError> {
        self.last_page = number;
        if text.trim().is_empty() {
            return Ok(());
        }
        self.pages += 1;
        self.part(text, of_page(self.start(), number)).await
    }

    async fn section(&mut self, text: String, place: TextOrigin) -> Result<(), IngestError> {
        if text.trim().is_empty() {
            return Ok(());
        }
        self.part(text, place).await
    }

    async fn finish(&mut self) -> Result<(), IngestError> {
        self.ended = true;
        Ok(())
    }
}
