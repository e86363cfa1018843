//! Text out of bytes that arrive in pieces: UTF-8, or UTF-16 with its mark. Never guesses another encoding: a
//! wrong guess would be stored, quoted and cited.

/// Why bytes are no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoText {
    /// The first byte that cannot be.
    #[error("is not UTF-8 text: byte {0} cannot be; convert it to UTF-8")]
    Utf8(u64),
    /// The code unit that cannot be.
    #[error("is not UTF-16 text although it begins like it")]
    Utf16,
    /// There is a NUL in it.
    #[error("is binary, not text")]
    Binary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16 { big: bool },
}

/// Turns pieces of bytes into text, however they are cut.
#[derive(Debug, Default)]
pub struct TextDecoder {
    encoding: Option<Encoding>,
    /// Bytes of a character that is not complete.
    rest: Vec<u8>,
    /// Bytes before `rest`.
    seen: u64,
}

impl TextDecoder {
    /// Adds a piece and appends the text that is complete to `out`.
    ///
    /// # Errors
    /// [`NoText`] for bytes that are no characters, and for a NUL. `out` has what came with the pieces before.
    pub fn push(&mut self, piece: &[u8], out: &mut String) -> Result<(), NoText> {
        self.rest.extend_from_slice(piece);
        let encoding = match self.encoding {
            Some(encoding) => encoding,
            None if self.rest.len() < 3 => return Ok(()),
            None => self.begin(),
        };
        let done = match encoding {
            Encoding::Utf8 => self.utf8(out)?,
            Encoding::Utf16 { big } => self.utf16(big, out)?,
        };
        self.rest.drain(..done);
        self.seen += done as u64;
        Ok(())
    }

    /// There are no more pieces.
    ///
    /// # Errors
    /// [`NoText`] where the last character is not complete, or as [`Self::push`].
    pub fn finish(mut self, out: &mut String) -> Result<(), NoText> {
        if self.encoding.is_none() {
            self.begin();
            self.push(&[], out)?;
        }
        match (self.rest.is_empty(), self.encoding) {
            (true, _) => Ok(()),
            (false, Some(Encoding::Utf16 { .. })) => Err(NoText::Utf16),
            (false, _) => Err(NoText::Utf8(self.seen)),
        }
    }

    /// Looks for a mark and takes it away.
    fn begin(&mut self) -> Encoding {
        let (encoding, mark) = match self.rest.as_slice() {
            [0xef, 0xbb, 0xbf, ..] => (Encoding::Utf8, 3),
            [0xff, 0xfe, ..] => (Encoding::Utf16 { big: false }, 2),
            [0xfe, 0xff, ..] => (Encoding::Utf16 { big: true }, 2),
            _ => (Encoding::Utf8, 0),
        };
        self.rest.drain(..mark);
        self.seen += mark as u64;
        self.encoding = Some(encoding);
        encoding
    }

    fn utf8(&self, out: &mut String) -> Result<usize, NoText> {
        let (good, bad) = match std::str::from_utf8(&self.rest) {
            Ok(text) => (text, false),
            Err(fault) => {
                let (good, _) = self.rest.split_at(fault.valid_up_to());
                // Valid up to here by the error's own word.
                let good = std::str::from_utf8(good).unwrap_or_default();
                (good, fault.error_len().is_some())
            }
        };
        if good.contains('\0') {
            return Err(NoText::Binary);
        }
        if bad {
            return Err(NoText::Utf8(self.seen + good.len() as u64));
        }
        out.push_str(good);
        Ok(good.len())
    }

    fn utf16(&self, big: bool, out: &mut String) -> Result<usize, NoText> {
        let units: Vec<u16> = self
            .rest
            .chunks_exact(2)
            .map(|pair| match big {
                true => u16::from_be_bytes([pair[0], pair[1]]),
                false => u16::from_le_bytes([pair[0], pair[1]]),
            })
            .collect();
        // A high surrogate at the end waits for its low one.
        let open = units
            .last()
            .is_some_and(|unit| (0xd800..0xdc00).contains(unit));
        let units = &units[..units.len() - usize::from(open)];
        for char in char::decode_utf16(units.iter().copied()) {
            match char {
                Ok('\0') => return Err(NoText::Binary),
                Ok(char) => out.push(char),
                Err(_) => return Err(NoText::Utf16),
            }
        }
        Ok(units.len() * 2)
    }
}

/// Line ends of all systems as line feeds; other control characters and blanks at both ends are dropped. For
/// text that was taken out of something else.
pub fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\r' => {
                chars.next_if_eq(&'\n');
                tidy.push('\n');
            }
            '\n' | '\t' => tidy.push(char),
            '\u{c}' => tidy.push('\n'),
            char if char.is_control() => {}
            char => tidy.push(char),
        }
    }
    let end = tidy.trim_end().len();
    tidy.truncate(end);
    let blank = tidy.len() - tidy.trim_start_matches('\n').len();
    tidy.drain(..blank);
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], piece: usize) -> Result<String, NoText> {
        let (mut decoder, mut out) = (TextDecoder::default(), String::new());
        for piece in bytes.chunks(piece) {
            decoder.push(piece, &mut out)?;
        }
        decoder.finish(&mut out)?;
        Ok(out)
    }

    #[test]
    fn pieces_may_be_cut_anywhere() {
        let text = "Zürich – 東京 𝄞 end";
        let sixteen = |big: bool| {
            let units = [0xfeff].into_iter().chain(text.encode_utf16());
            let bytes = |unit: u16| {
                if big {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                }
            };
            units.flat_map(bytes).collect::<Vec<u8>>()
        };
        let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
        for bytes in [
            text.as_bytes().to_vec(),
            marked,
            sixteen(true),
            sixteen(false),
        ] {
            for piece in 1..8 {
                assert_eq!(decode(&bytes, piece).as_deref(), Ok(text));
            }
        }
        assert_eq!(decode(b"", 1).as_deref(), Ok(""));
        assert_eq!(decode(b"a", 1).as_deref(), Ok("a"));
    }

    #[test]
    fn what_is_no_text_is_told() {
        assert_eq!(decode(b"caf\xe9 au lait", 4), Err(NoText::Utf8(3)));
        assert_eq!(
            decode("ab\u{20ac}".as_bytes().split_last().unwrap().1, 3),
            Err(NoText::Utf8(2))
        );
        assert_eq!(decode(b"ab\0cd", 3), Err(NoText::Binary));
        assert_eq!(decode(b"\xff\xfeh", 3), Err(NoText::Utf16));
        assert_eq!(decode(b"\xff\xfe\x00\xdc", 4), Err(NoText::Utf16));
    }

    #[test]
    fn text_from_elsewhere_is_tidied() {
        assert_eq!(tidy("\r\n\n  a\r\nb\u{0}\u{c}c\rd \n\n"), "  a\nb\nc\nd");
        assert_eq!(tidy(" \n\t"), "");
    }
}
