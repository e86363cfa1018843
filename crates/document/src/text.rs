//! Text out of bytes that arrive in pieces: UTF-8, UTF-16 with its mark, and the charsets of old, as declared or as the
//! bytes suggest. It is decided once, from the beginning of what is not ASCII; where the rest does not fit, the text is
//! refused: a wrong guess would be stored, quoted and cited.

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};

use crate::charset;

/// Bytes, from the first that is not ASCII, from which the charset is guessed.
const EVIDENCE: usize = 64 << 10;

/// Why bytes are no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoText {
    /// The charset, and the first byte that cannot be.
    #[error("is not {0} text: byte {1} cannot be; convert it to UTF-8")]
    Charset(&'static str, u64),
    /// There is a NUL in it, or it reads like nothing that people write.
    #[error("is binary, not text")]
    Binary,
}

/// Turns pieces of bytes into text, however they are cut. Holds at most one piece and 64 KiB.
#[derive(Default)]
pub struct TextDecoder {
    /// What the text is known to be from elsewhere; its own mark goes before.
    declared: Option<&'static Encoding>,
    state: State,
    /// Bytes before those that are held or decoded next.
    seen: u64,
}

enum State {
    /// Nothing is known yet; all bytes so far.
    New(Vec<u8>),
    /// All so far was ASCII, whose text is out; what is not, is held.
    Ascii(Vec<u8>),
    Decided(Decoder),
}

impl Default for State {
    fn default() -> Self {
        Self::New(Vec::new())
    }
}

impl TextDecoder {
    /// A decoder of text in this charset, unless its mark says another.
    pub fn of(charset: &'static Encoding) -> Self {
        Self {
            declared: Some(charset),
            ..Self::default()
        }
    }

    /// The name of the charset, such as `UTF-8` or `windows-1252`. Text that was all ASCII so far is UTF-8.
    pub fn charset(&self) -> &'static str {
        match &self.state {
            State::Decided(decoder) => decoder.encoding().name(),
            _ => UTF_8.name(),
        }
    }

    /// Adds a piece and appends the text that is complete to `out`.
    ///
    /// # Errors
    /// [`NoText`] for bytes that are no characters, and for a NUL. `out` has what came with the pieces before.
    pub fn push(&mut self, piece: &[u8], out: &mut String) -> Result<(), NoText> {
        self.step(piece, false, out)
    }

    /// There are no more pieces. The name of the charset.
    ///
    /// # Errors
    /// [`NoText`] where the last character is not complete, or as [`Self::push`].
    pub fn finish(mut self, out: &mut String) -> Result<&'static str, NoText> {
        self.step(&[], true, out)?;
        Ok(self.charset())
    }

    fn step(&mut self, piece: &[u8], last: bool, out: &mut String) -> Result<(), NoText> {
        match std::mem::take(&mut self.state) {
            State::New(mut held) => {
                held.extend_from_slice(piece);
                // An XML declaration is waited for, as a mark is, and what shows UTF-16 without one.
                let declares = held.starts_with(b"<?xml") && held.len() < charset::DECLARED_WITHIN;
                if !last && (held.len() < charset::PAIRS || declares) {
                    self.state = State::New(held);
                    return Ok(());
                }
                self.begin(held, last, out)
            }
            State::Ascii(held) => self.ascii(held, piece, last, out),
            State::Decided(decoder) => self.decode(decoder, piece, last, out),
        }
    }

    /// Looks for what the text says of itself.
    fn begin(&mut self, held: Vec<u8>, last: bool, out: &mut String) -> Result<(), NoText> {
        let mark = Encoding::for_bom(&held);
        let declared = self.declared.or_else(|| charset::of_xml(&held));
        let declared = declared.or_else(|| charset::of_pairs(&held));
        match (mark, declared) {
            (Some((encoding, mark)), _) => {
                self.seen += mark as u64;
                let decoder = encoding.new_decoder_without_bom_handling();
                self.decode(decoder, &held[mark..], last, out)
            }
            (None, Some(encoding)) => {
                let decoder = encoding.new_decoder_without_bom_handling();
                self.decode(decoder, &held, last, out)
            }
            (None, None) => self.ascii(Vec::new(), &held, last, out),
        }
    }

    /// Lets ASCII pass, holds what is not, and decides when that is enough.
    fn ascii(
        &mut self,
        mut held: Vec<u8>,
        piece: &[u8],
        last: bool,
        out: &mut String,
    ) -> Result<(), NoText> {
        let mut rest = piece;
        if held.is_empty() {
            let plain = rest.iter().take_while(|byte| byte.is_ascii()).count();
            let (ascii, other) = rest.split_at(plain);
            if ascii.contains(&0) {
                return Err(NoText::Binary);
            }
            // ASCII is UTF-8.
            out.push_str(std::str::from_utf8(ascii).unwrap_or_default());
            self.seen += plain as u64;
            rest = other;
        }
        held.extend_from_slice(rest);
        if !(last || held.len() >= EVIDENCE) {
            self.state = State::Ascii(held);
            return Ok(());
        }
        let evidence = &held[..held.len().min(EVIDENCE)];
        let guess = charset::guess(evidence, last && held.len() <= EVIDENCE);
        // What a guess reads into bytes that are no text is odd.
        let odd = |guess: &'static Encoding| {
            charset::is_odd(&guess.decode_without_bom_handling(evidence).0)
        };
        if guess.is_some_and(odd) {
            return Err(NoText::Binary);
        }
        let decoder = guess.unwrap_or(UTF_8).new_decoder_without_bom_handling();
        self.decode(decoder, &held, last, out)
    }

    fn decode(
        &mut self,
        mut decoder: Decoder,
        bytes: &[u8],
        last: bool,
        out: &mut String,
    ) -> Result<(), NoText> {
        let before = out.len();
        let most = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
        out.reserve(most.unwrap_or(bytes.len()));
        let (result, read) = decoder.decode_to_string_without_replacement(bytes, out, last);
        if out[before..].contains('\0') {
            out.truncate(before);
            return Err(NoText::Binary);
        }
        let read = read as u64;
        match result {
            DecoderResult::InputEmpty => {
                self.seen += read;
                self.state = State::Decided(decoder);
                Ok(())
            }
            DecoderResult::Malformed(bad, after) => {
                let at = (self.seen + read).saturating_sub(u64::from(bad) + u64::from(after));
                Err(NoText::Charset(decoder.encoding().name(), at))
            }
            // Does not happen: there is room.
            DecoderResult::OutputFull => Err(NoText::Binary),
        }
    }
}

/// A whole text, as it declares itself or as its bytes suggest; what cannot be in it shows as a sign for that. For what
/// people can see to be wrong, such as a web page, and for looks at a beginning.
pub fn leniently(bytes: &[u8], declared: Option<&'static Encoding>) -> (String, &'static str) {
    let read = |mut decoder: TextDecoder| {
        let mut text = String::new();
        decoder.push(bytes, &mut text)?;
        let charset = decoder.finish(&mut text)?;
        Ok::<_, NoText>((text, charset))
    };
    if let Some(declared) = declared
        && let Ok(read) = read(TextDecoder::of(declared))
    {
        return read;
    }
    if let Ok(read) = read(TextDecoder::default()) {
        return read;
    }
    let guess = || charset::guess(&bytes[..bytes.len().min(EVIDENCE)], false);
    let fallback = declared.or_else(guess).unwrap_or(UTF_8);
    let (text, used, _) = fallback.decode(bytes);
    (text.into_owned(), used.name())
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
    fn sixteen_bits_are_known_without_their_mark() {
        let text = "Zürich, 3 March: all lamps are lit – 東京.";
        let units = || text.encode_utf16();
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        for piece in [1, 7, 1000] {
            assert_eq!(decode(&little, piece).as_deref(), Ok(text));
            assert_eq!(decode(&big, piece).as_deref(), Ok(text));
        }
        let mixed = [&little[..16], &big[..16]].concat();
        assert_eq!(decode(&mixed, 1000), Err(NoText::Binary));
    }

    #[test]
    fn what_is_no_text_is_told() {
        assert_eq!(
            decode("ab\u{20ac}".as_bytes().split_last().unwrap().1, 3),
            Err(NoText::Charset("UTF-8", 2)),
            "one euro sign that is not whole"
        );
        assert_eq!(decode(b"ab\0cd", 3), Err(NoText::Binary));
        assert_eq!(decode(b"caf\xe9\0cd", 3), Err(NoText::Binary));
        let sixteen = |at| Err(NoText::Charset("UTF-16LE", at));
        assert_eq!(decode(b"\xff\xfeh", 3), sixteen(2));
        assert_eq!(decode(b"\xff\xfe\x00\xdc", 4), sixteen(2));
        let noise: Vec<u8> = (0..4000u32).map(|n| (n * 97 % 255 + 1) as u8).collect();
        assert!(decode(&noise, 7).is_err());
        // A fault in UTF-8 stays one, however late it comes.
        let long = ["größe ".repeat(20_000).as_bytes(), b"caf\xe9 x"].concat();
        assert_eq!(
            decode(&long, 1 << 16),
            Err(NoText::Charset("UTF-8", 20_000 * 8 + 3))
        );
    }

    /// Texts of people, in the charset that they had.
    const OLD: [(&str, &str); 6] = [
        (
            "windows-1252",
            "Café au lait – 3 €, “très bien”, déjà vu à l’hôtel.",
        ),
        (
            "windows-1252",
            "Straße,Größe\nGärtnerweg 3,groß\nMühlstraße 1,klein\n",
        ),
        (
            "Shift_JIS",
            "東京の古い橋は1429年に石で作られました。川を渡る人が多い。カタカナも。",
        ),
        (
            "EUC-JP",
            "東京の古い橋は1429年に石で作られました。川を渡る人が多い。カタカナも。",
        ),
        (
            "GBK",
            "这座古老的桥建于一四二九年,用石头建成。很多人每天从桥上走过。",
        ),
        (
            "windows-1251",
            "Старый мост был построен из камня в 1429 году над рекой.",
        ),
    ];

    #[test]
    fn charsets_of_old_are_found_however_the_bytes_are_cut() {
        for (name, text) in OLD {
            let charset = Encoding::for_label(name.as_bytes()).unwrap();
            let (bytes, _, unmappable) = charset.encode(text);
            assert!(!unmappable, "{name}");
            for piece in [1, 3, 1000] {
                let (mut decoder, mut out) = (TextDecoder::default(), String::new());
                for piece in bytes.chunks(piece) {
                    decoder.push(piece, &mut out).unwrap();
                }
                let found = decoder.finish(&mut out);
                assert_eq!((found, out.as_str()), (Ok(name), text));
            }
        }
    }

    #[test]
    fn memory_is_bounded_and_ascii_does_not_wait() {
        let (mut decoder, mut out) = (TextDecoder::default(), String::new());
        for _ in 0..100 {
            decoder.push(&[b'a'; 1000], &mut out).unwrap();
        }
        assert_eq!(out.len(), 100_000);
        for _ in 0..200 {
            decoder.push(b"caf\xe9 au lait, ", &mut out).unwrap();
        }
        // Not yet enough to tell.
        assert_eq!((out.len(), decoder.charset()), (100_003, "UTF-8"));
        for _ in 0..EVIDENCE {
            decoder.push(b"caf\xe9 au lait, ", &mut out).unwrap();
            if let State::Ascii(held) = &decoder.state {
                assert!(held.len() < EVIDENCE + 100);
            }
        }
        assert_eq!(decoder.charset(), "windows-1252");
        assert!(out.ends_with("café au lait, "));
    }

    #[test]
    fn a_declaration_goes_before_a_guess_and_a_mark_before_both() {
        let xml = b"<?xml version=\"1.0\" encoding=\"windows-1251\"?><a>\xcc\xee\xf1\xf2</a>";
        for piece in [1, 7, 1000] {
            let text = decode(xml, piece).unwrap();
            assert!(text.ends_with("<a>Мост</a>"), "{text}");
        }
        let declared = |charset: &'static Encoding, bytes: &[u8]| {
            let (mut decoder, mut out) = (TextDecoder::of(charset), String::new());
            decoder.push(bytes, &mut out)?;
            decoder.finish(&mut out).map(|found| (out, found))
        };
        let iso = encoding_rs::ISO_8859_2;
        assert_eq!(
            declared(iso, b"\xb3\xf3d\xbc"),
            Ok(("łódź".to_owned(), "ISO-8859-2"))
        );
        assert_eq!(
            declared(iso, b"\xef\xbb\xbf\xc3\xa9"),
            Ok(("é".to_owned(), "UTF-8"))
        );
        // What does not fit is guessed, and read all the same where people see it.
        let wrong = leniently(b"<p>caf\xe9 au lait</p>", Some(UTF_8));
        assert_eq!(wrong, ("<p>café au lait</p>".to_owned(), "windows-1252"));
        assert_eq!(leniently(b"a\0b", None).0, "a\0b");
    }

    #[test]
    fn text_from_elsewhere_is_tidied() {
        assert_eq!(tidy("\r\n\n  a\r\nb\u{0}\u{c}c\rd \n\n"), "  a\nb\nc\nd");
        assert_eq!(tidy(" \n\t"), "");
    }
}
