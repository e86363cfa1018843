//! What a child sends its parent: pages, texts, faults. A frame is a tag, a number and a length, then so many
//! bytes of UTF-8.

use std::io::Write;

use super::limits::Limits;

/// Bytes before a frame's text.
pub(crate) const HEADER: usize = 9;
/// Longest text of a frame.
pub(crate) const LONGEST: usize = 8 << 20;
/// Tag of what concerns the parent alone: the system refused limits of the child, a bit for each.
pub(crate) const UNCONFINED: u8 = 6;
/// Bytes of a text that are sent in one frame.
const PIECE: usize = 1 << 20;

/// One thing that a child says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A page with its number, from 1.
    Page(u32, String),
    /// A page that could not be read.
    BadPage(u32),
    /// A page of which a part could not be read; the rest of it comes, too.
    PartlyPage(u32),
    /// The next piece of a document without pages.
    Text(String),
    /// That was all.
    End,
    /// The document could not be read.
    Error(DecodeError),
}

/// Why a document could not be taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Its structure is broken, or its end is missing.
    #[error("is damaged or incomplete")]
    Damaged,
    /// It needs a password.
    #[error("is encrypted; save a copy that opens without a password")]
    Encrypted,
    /// It has more pages than the limit.
    #[error("has too many pages ({0})")]
    TooManyPages(u32),
    /// It is, or unpacks to, more than the limit.
    #[error("is too large, or unpacks to too much")]
    TooLarge,
    /// There is no text in it, e.g. only scanned images.
    #[error("has no text; scanned pages need text recognition first")]
    NoText,
    /// It took longer than the limit.
    #[error("took too long to read")]
    TooSlow,
    /// The child died of it: too much memory, or nesting too deep.
    #[error("could not be read within the memory allowed")]
    Died,
}

impl DecodeError {
    fn code(self) -> (u8, u32) {
        match self {
            Self::Damaged => (10, 0),
            Self::Encrypted => (11, 0),
            Self::TooManyPages(pages) => (12, pages),
            Self::TooLarge => (13, 0),
            Self::NoText => (14, 0),
            Self::TooSlow => (15, 0),
            Self::Died => (16, 0),
        }
    }

    fn from_code(code: u8, number: u32) -> Option<Self> {
        Some(match code {
            10 => Self::Damaged,
            11 => Self::Encrypted,
            12 => Self::TooManyPages(number),
            13 => Self::TooLarge,
            14 => Self::NoText,
            15 => Self::TooSlow,
            16 => Self::Died,
            _ => return None,
        })
    }
}

/// Reads a header: tag, number, length. `None` for what is no header.
pub(crate) fn header(bytes: &[u8; HEADER]) -> Option<(u8, u32, usize)> {
    let [tag, n0, n1, n2, n3, l0, l1, l2, l3] = *bytes;
    let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
    (length <= LONGEST).then(|| (tag, u32::from_be_bytes([n0, n1, n2, n3]), length))
}

/// Puts a frame together.
pub(crate) fn frame(tag: u8, number: u32, text: Vec<u8>) -> Option<Frame> {
    let text = || String::from_utf8(text).ok();
    Some(match tag {
        1 => Frame::Page(number, text()?),
        2 => Frame::BadPage(number),
        3 => Frame::Text(text()?),
        4 => Frame::End,
        5 => Frame::PartlyPage(number),
        code => Frame::Error(DecodeError::from_code(code, number)?),
    })
}

/// Writes frames.
pub(crate) struct Writer<W> {
    to: W,
    /// Bytes of text so far.
    sent: u64,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, sent: 0 }
    }

    /// A page. An error when nobody listens any more, or when it is too much.
    pub(crate) fn page(
        &mut self,
        number: u32,
        text: &str,
        limits: &Limits,
    ) -> Result<(), DecodeError> {
        self.count(text, limits)?;
        self.put(1, number, text.as_bytes())
    }

    /// A page that could not be read.
    pub(crate) fn bad_page(&mut self, number: u32) -> Result<(), DecodeError> {
        self.put(2, number, b"")
    }

    /// A page of which a part could not be read.
    pub(crate) fn partly(&mut self, number: u32) -> Result<(), DecodeError> {
        self.put(5, number, b"")
    }

    /// The system refused limits, a bit for each. An error when nobody listens any more.
    pub(crate) fn unconfined(&mut self, bits: u32) -> Result<(), DecodeError> {
        self.put(UNCONFINED, bits, b"")
    }

    /// A text without pages, in pieces.
    pub(crate) fn texts(&mut self, mut text: &str, limits: &Limits) -> Result<(), DecodeError> {
        if text.is_empty() {
            return Err(DecodeError::NoText);
        }
        self.count(text, limits)?;
        while !text.is_empty() {
            let mut at = text.len().min(PIECE);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let (piece, rest) = text.split_at(at);
            self.put(3, 0, piece.as_bytes())?;
            text = rest;
        }
        Ok(())
    }

    /// All is said. Whether the parent heard it.
    pub(crate) fn end(&mut self) -> bool {
        self.put(4, 0, b"").is_ok()
    }

    /// The document could not be read. Whether the parent heard it.
    pub(crate) fn fault(&mut self, fault: DecodeError) -> bool {
        let (code, number) = fault.code();
        self.put(code, number, b"").is_ok()
    }

    fn count(&mut self, text: &str, limits: &Limits) -> Result<(), DecodeError> {
        self.sent += text.len() as u64;
        if self.sent > limits.text_bytes {
            return Err(DecodeError::TooLarge);
        }
        Ok(())
    }

    fn put(&mut self, tag: u8, number: u32, text: &[u8]) -> Result<(), DecodeError> {
        let length = u32::try_from(text.len()).map_err(|_| DecodeError::TooLarge)?;
        let mut header = [0; HEADER];
        header[0] = tag;
        header[1..5].copy_from_slice(&number.to_be_bytes());
        header[5..].copy_from_slice(&length.to_be_bytes());
        let put = self.to.write_all(&header);
        let put = put.and_then(|()| self.to.write_all(text));
        put.and_then(|()| self.to.flush())
            .map_err(|_| DecodeError::Died)
    }
}
