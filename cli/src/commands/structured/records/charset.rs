//! The characters of a file as UTF-8, whatever they are in the file. What cannot be a character ends the reading; nothing
//! is replaced.

use std::io::{self, Read};

use encoding_rs::{Decoder, DecoderResult, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE};

/// Bytes that are decoded at once.
const READ: usize = 64 << 10;

/// How characters are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Encoding {
    /// Also what ASCII is. A byte order mark is passed over.
    Utf8,
    /// What one platform or region had before it. ISO 8859-1 is read as Windows-1252, which is the same but for 32 control
    /// characters that no text has: where they stand, the writer meant the euro sign, dashes and quotes.
    Other(&'static encoding_rs::Encoding),
}

impl Encoding {
    /// The encoding of a name, as Python and the web know them. UTF-16 is none.
    pub(in super::super) fn named(name: &str) -> Option<Self> {
        let plain = name.trim().to_ascii_lowercase();
        match plain.replace('_', "-").as_str() {
            "" | "utf-8" | "utf8" | "utf-8-sig" | "ascii" | "us-ascii" => return Some(Self::Utf8),
            "latin-1" => return Self::named("latin1"),
            _ => {}
        }
        let known = encoding_rs::Encoding::for_label(plain.as_bytes())?;
        match known {
            wide if wide == UTF_16LE || wide == UTF_16BE || wide == REPLACEMENT => None,
            known if known == UTF_8 => Some(Self::Utf8),
            known => Some(Self::Other(known)),
        }
    }
}

/// A text in some charset, read as UTF-8.
pub(super) struct Decoded<R> {
    inner: R,
    decoder: Decoder,
    name: &'static str,
    bytes: Vec<u8>,
    /// Decoded, and how much of it was handed over.
    text: Vec<u8>,
    given: usize,
    ended: bool,
}

impl<R: Read> Decoded<R> {
    pub(super) fn new(inner: R, charset: &'static encoding_rs::Encoding) -> Self {
        Self {
            inner,
            decoder: charset.new_decoder_without_bom_handling(),
            name: charset.name(),
            bytes: vec![0; READ],
            text: Vec::new(),
            given: 0,
            ended: false,
        }
    }

    fn refill(&mut self) -> io::Result<()> {
        let read = self.inner.read(&mut self.bytes)?;
        self.ended = read == 0;
        let most = self
            .decoder
            .max_utf8_buffer_length_without_replacement(read);
        self.text.resize(most.unwrap_or(READ * 4), 0);
        let (outcome, taken, written) = self.decoder.decode_to_utf8_without_replacement(
            &self.bytes[..read],
            &mut self.text,
            self.ended,
        );
        self.text.truncate(written);
        self.given = 0;
        match outcome {
            DecoderResult::InputEmpty if taken == read => Ok(()),
            _ => {
                let text = format!("is not text in {}", self.name);
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
        }
    }
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() && !self.ended {
            self.refill()?;
        }
        let ready = &self.text[self.given..];
        let count = ready.len().min(into.len());
        into[..count].copy_from_slice(&ready[..count]);
        self.given += count;
        Ok(count)
    }
}
