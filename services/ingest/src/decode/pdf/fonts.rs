//! The characters and widths of a font. What a simple font encodes is asked of the PDF library, one font at a time and
//! caught where it panics, so that a font it cannot take costs nothing but what that font says.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GBK, SHIFT_JIS, UTF_16BE};
use pdf_extract::{
    Dictionary, Document, MediaBox, Object, ObjectId, OutputDev, OutputError, Stream, Transform,
    output_doc_page,
};

use super::cmap::CMap;
use super::objects::{at, content, dictionary, get, name, number, numbers};

/// What one code of a font shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Shown {
    pub(super) text: String,
    /// In thousandths of the font's size.
    pub(super) width: f64,
    /// Whether word spacing counts.
    pub(super) space: bool,
    /// Nothing says which characters these are.
    pub(super) unknown: bool,
}

/// A font, ready to read its strings.
#[derive(Debug)]
pub(super) enum Font {
    /// A byte is a code.
    Simple {
        codes: Vec<Shown>,
        /// The library could not take it: what it shows may be wrong.
        doubtful: bool,
        names: Option<CMap>,
    },
    /// Codes of two bytes, or of an encoding of East Asia.
    Composite(Composite),
}

/// A font of many characters.
#[derive(Debug)]
pub(super) struct Composite {
    names: Option<CMap>,
    encoding: Option<&'static Encoding>,
    widths: HashMap<u32, f64>,
    usual: f64,
}

/// Where LaTeX has the bullet of its lists, mostly alone in a font.
const BULLET: usize = 0x88;
/// Most widths of one font that are kept.
const MOST_WIDTHS: i64 = 1 << 16;

impl Font {
    /// Reads a font of a document, which has its probe.
    pub(super) fn read(document: &mut Document, probe: ObjectId, font: &Dictionary) -> Self {
        let names = match get(document, font, b"ToUnicode") {
            Some(Object::Stream(stream)) => Some(CMap::parse(&content(stream))),
            _ => None,
        };
        match name(document, font, b"Subtype") {
            Some(b"Type0") => Self::Composite(Composite::read(document, font, names)),
            Some(b"Type3") => {
                let scale = numbers(document, font, b"FontMatrix");
                let scale = scale.and_then(|matrix| matrix.first().copied());
                let scale = scale.unwrap_or(0.001) * 1000.0;
                let numbered = numbered(document, font);
                let mut plain = plain(document, font);
                plain.set("Subtype", Object::Name(b"Type1".to_vec()));
                plain.remove(b"FontDescriptor");
                let mut font = Self::simple(document, probe, plain, names, scale);
                font.unname(&numbered);
                font
            }
            _ => {
                let plain = plain(document, font);
                Self::simple(document, probe, plain, names, 1.0)
            }
        }
    }

    fn simple(
        document: &mut Document,
        probe: ObjectId,
        mut font: Dictionary,
        names: Option<CMap>,
        scale: f64,
    ) -> Self {
        let mut doubtful = false;
        let mut asked = ask_all(document, probe, &font);
        for without in ["FontDescriptor", "Encoding", "Widths"] {
            if asked.is_some() {
                break;
            }
            doubtful = true;
            font.remove(without.as_bytes());
            font.set("BaseFont", Object::Name(b"Helvetica".to_vec()));
            asked = ask_all(document, probe, &font);
        }
        let mut codes = asked.unwrap_or_else(|| vec![Shown::default(); 256]);
        encode(document, probe, font, &mut codes);
        for shown in &mut codes {
            shown.width *= scale;
        }
        Self::Simple {
            codes,
            doubtful,
            names,
        }
    }

    /// Takes back what was guessed of codes whose glyphs have numbers for names.
    fn unname(&mut self, numbered: &[usize]) {
        let Self::Simple { codes, .. } = self else {
            return;
        };
        for code in numbered {
            codes[*code].text.clear();
            match numbered {
                [BULLET] => codes[*code].text.push('\u{2022}'),
                _ => codes[*code].unknown = true,
            }
        }
    }

    /// What a string shows.
    pub(super) fn shows(&self, string: &[u8], mut tell: impl FnMut(Shown)) {
        match self {
            Self::Simple {
                codes,
                doubtful,
                names,
            } => {
                for byte in string {
                    let mut shown = codes[usize::from(*byte)].clone();
                    let named = names.as_ref().and_then(|names| names.get(u32::from(*byte)));
                    shown.unknown = (shown.unknown || *doubtful) && named.is_none();
                    if let Some(named) = named {
                        named.clone_into(&mut shown.text);
                    }
                    shown.space = *byte == b' ';
                    tell(shown);
                }
            }
            Self::Composite(font) => font.shows(string, tell),
        }
    }
}

impl Composite {
    fn read(document: &Document, font: &Dictionary, names: Option<CMap>) -> Self {
        let descendant = get(document, font, b"DescendantFonts")
            .and_then(|fonts| fonts.as_array().ok())
            .and_then(|fonts| at(document, fonts.first()?)?.as_dict().ok());
        let usual = descendant.and_then(|font| number(get(document, font, b"DW")?));
        Self {
            names,
            encoding: name(document, font, b"Encoding").and_then(of_east_asia),
            widths: descendant.map_or_else(HashMap::new, |font| widths(document, font)),
            usual: usual.unwrap_or(1000.0),
        }
    }

    fn shows(&self, string: &[u8], mut tell: impl FnMut(Shown)) {
        let mut rest = string;
        while let [first, after @ ..] = rest {
            let one = self.encoding.is_some_and(|encoding| {
                encoding != UTF_16BE && (*first < 0x80 || encoding == SHIFT_JIS && half(*first))
            });
            let length = if one || after.is_empty() { 1 } else { 2 };
            let (code, after) = rest.split_at(length);
            rest = after;
            let number = code
                .iter()
                .fold(0, |number, byte| number << 8 | u32::from(*byte));
            let named = self.names.as_ref().and_then(|names| names.get(number));
            let text = named.map(str::to_owned).or_else(|| {
                let encoding = self.encoding?;
                let text = encoding.decode_without_bom_handling_and_without_replacement(code);
                text.map(std::borrow::Cow::into_owned)
            });
            tell(Shown {
                unknown: text.is_none(),
                text: text.unwrap_or_default(),
                width: self.widths.get(&number).copied().unwrap_or(self.usual),
                space: length == 1 && *first == b' ',
            });
        }
    }
}

/// Katakana of one byte in Shift JIS.
fn half(byte: u8) -> bool {
    (0xa1..=0xdf).contains(&byte)
}

/// The encoding behind the name of a table of codes that PDF readers bring along. `None` for two bytes that number
/// glyphs.
fn of_east_asia(name: &[u8]) -> Option<&'static Encoding> {
    let name = std::str::from_utf8(name).ok()?;
    let known: [(&str, &'static Encoding); 9] = [
        ("UCS2", UTF_16BE),
        ("UTF16", UTF_16BE),
        ("RKSJ", SHIFT_JIS),
        ("GBK", GBK),
        ("GB-EUC", GBK),
        ("GBpc", GBK),
        ("B5", BIG5),
        ("KSC", EUC_KR),
        ("EUC-", EUC_JP),
    ];
    let found = known.iter().find(|(part, _)| name.contains(part));
    found.map(|(_, encoding)| *encoding)
}

/// Widths by code: `first [width …]` or `first last width`.
fn widths(document: &Document, font: &Dictionary) -> HashMap<u32, f64> {
    let mut widths = HashMap::new();
    let array = get(document, font, b"W").and_then(|array| array.as_array().ok());
    let array = array.map_or(&[][..], Vec::as_slice);
    let code = |object: &Object| at(document, object).and_then(|object| object.as_i64().ok());
    let mut rest = array;
    while let [first, second, after @ ..] = rest {
        let Some(first) = code(first) else { break };
        match at(document, second) {
            Some(Object::Array(each)) => {
                for (place, width) in (first..).zip(each).take(1 << 16) {
                    let width = at(document, width).and_then(number);
                    if let Some((place, width)) = u32::try_from(place).ok().zip(width) {
                        widths.insert(place, width);
                    }
                }
                rest = after;
            }
            Some(last) => {
                let (Ok(last), [width, after @ ..]) = (last.as_i64(), after) else {
                    break;
                };
                let width = at(document, width).and_then(number).unwrap_or(1000.0);
                for place in first..=last.min(first.saturating_add(MOST_WIDTHS)) {
                    if let Ok(place) = u32::try_from(place) {
                        widths.insert(place, width);
                    }
                }
                rest = after;
            }
            None => break,
        }
        if widths.len() > (1 << 17) {
            break;
        }
    }
    widths
}

/// A simple font as the library is asked about it: without its table of characters, which is read here, and with an
/// encoding that the library knows.
fn plain(document: &Document, font: &Dictionary) -> Dictionary {
    let mut plain = font.clone();
    plain.remove(b"ToUnicode");
    if !plain.has(b"BaseFont") {
        plain.set("BaseFont", Object::Name(b"Helvetica".to_vec()));
    }
    match get(document, font, b"Encoding") {
        Some(Object::Name(name)) if known(name) => {}
        Some(Object::Name(name)) if name == b"StandardEncoding" => {
            plain.set("Encoding", standard());
        }
        Some(Object::Dictionary(encoding)) => {
            let mut encoding = encoding.clone();
            if !name(document, &encoding, b"BaseEncoding").is_some_and(known) {
                encoding.remove(b"BaseEncoding");
            }
            let differences = get(document, &encoding, b"Differences").cloned();
            if let Some(Object::Array(differences)) = differences {
                encoding.set("Differences", tidied(document, &differences));
            }
            plain.set("Encoding", encoding);
        }
        _ => {
            plain.remove(b"Encoding");
        }
    }
    plain
}

fn known(encoding: &[u8]) -> bool {
    [
        &b"WinAnsiEncoding"[..],
        b"MacRomanEncoding",
        b"MacExpertEncoding",
    ]
    .contains(&encoding)
}

/// Names of glyphs by what they stand for: `a.sc` is an `a`, `f_f_i` the same as `ffi`. Codes beyond a byte go.
fn tidied(document: &Document, differences: &[Object]) -> Object {
    let mut tidied = Vec::new();
    let mut code = 0_i64;
    for entry in differences {
        match at(document, entry) {
            Some(Object::Integer(number)) => {
                code = *number;
                tidied.push(Object::Integer(code.clamp(0, 255)));
            }
            Some(Object::Name(name)) if (0..256).contains(&code) => {
                let stem = name.split(|byte| *byte == b'.').next().unwrap_or_default();
                let stem: Vec<u8> = match stem {
                    b"" => name.clone(),
                    stem if stem.starts_with(b"f_") => {
                        stem.iter().copied().filter(|byte| *byte != b'_').collect()
                    }
                    stem => stem.to_vec(),
                };
                tidied.push(Object::Name(stem));
                code += 1;
            }
            _ => code += 1,
        }
    }
    Object::Array(tidied)
}

/// What Adobe's standard encoding has elsewhere than Windows has it.
fn standard() -> Dictionary {
    const PARTS: [(i64, &str); 6] = [
        (39, "quoteright"),
        (96, "quoteleft"),
        (
            161,
            "exclamdown cent sterling fraction yen florin section currency quotesingle quotedblleft \
             guillemotleft guilsinglleft guilsinglright fi fl",
        ),
        (
            177,
            "endash dagger daggerdbl periodcentered .notdef paragraph bullet quotesinglbase \
             quotedblbase quotedblright guillemotright ellipsis perthousand .notdef questiondown",
        ),
        (208, "emdash"),
        (
            225,
            "AE .notdef ordfeminine .notdef .notdef .notdef .notdef Lslash Oslash OE ordmasculine \
               .notdef .notdef .notdef .notdef .notdef ae .notdef .notdef .notdef dotlessi .notdef \
               .notdef lslash oslash oe germandbls",
        ),
    ];
    let mut differences = Vec::new();
    for (code, names) in PARTS {
        differences.push(Object::Integer(code));
        let names = names.split_whitespace();
        differences.extend(names.map(|name| Object::Name(name.as_bytes().to_vec())));
    }
    let mut encoding = Dictionary::new();
    encoding.set("BaseEncoding", Object::Name(b"WinAnsiEncoding".to_vec()));
    encoding.set("Differences", Object::Array(differences));
    encoding
}

/// Gives a document a page of ours in place of its tree, on which fonts are tried. Its own pages stay where they are.
pub(super) fn probe(document: &mut Document) -> ObjectId {
    let page = document.new_object_id();
    let tree = document.new_object_id();
    let mut pages = Dictionary::new();
    pages.set("Type", Object::Name(b"Pages".to_vec()));
    pages.set("Kids", Object::Array(vec![Object::Reference(page)]));
    pages.set("Count", Object::Integer(1));
    document.objects.insert(tree, Object::Dictionary(pages));
    let mut catalog = Dictionary::new();
    catalog.set("Type", Object::Name(b"Catalog".to_vec()));
    catalog.set("Pages", Object::Reference(tree));
    let root = document.add_object(catalog);
    document.trailer.set("Root", Object::Reference(root));
    page
}

/// What a font is said to encode goes before what a program in it says of itself, which the library prefers.
fn encode(document: &mut Document, probe: ObjectId, mut font: Dictionary, codes: &mut [Shown]) {
    let program = dictionary(document, &font, b"FontDescriptor");
    if !program.is_some_and(|program| program.has(b"FontFile3")) {
        return;
    }
    let said: Vec<usize> = match get(document, &font, b"Encoding") {
        Some(Object::Dictionary(encoding)) if !encoding.has(b"BaseEncoding") => {
            let differences = get(document, encoding, b"Differences");
            differing(differences.and_then(|array| array.as_array().ok()))
        }
        Some(_) => (0..256).collect(),
        None => return,
    };
    font.remove(b"FontDescriptor");
    font.set("BaseFont", Object::Name(b"Helvetica".to_vec()));
    if let Some(plain) = ask_all(document, probe, &font) {
        for code in said {
            if !plain[code].text.is_empty() {
                codes[code].text.clone_from(&plain[code].text);
            }
        }
    }
}

/// Codes of a font of pictures from LaTeX beyond ASCII and Latin-1, whose names (`a136`) say nothing: which characters
/// they are depends on an encoding that is not told.
fn numbered(document: &Document, font: &Dictionary) -> Vec<usize> {
    let differences = dictionary(document, font, b"Encoding")
        .and_then(|encoding| get(document, encoding, b"Differences"))
        .and_then(|differences| differences.as_array().ok());
    let mut codes = Vec::new();
    let mut code = 0_usize;
    for entry in differences.into_iter().flatten() {
        if let Object::Integer(number) = entry {
            code = usize::try_from(*number).unwrap_or(usize::MAX);
            continue;
        }
        let named = entry
            .as_name()
            .is_ok_and(|name| name == format!("a{code}").as_bytes());
        if named && (0x80..0xa0).contains(&code) {
            codes.push(code);
        }
        code = code.saturating_add(1);
    }
    codes
}

/// The codes that differences name.
fn differing(differences: Option<&Vec<Object>>) -> Vec<usize> {
    let mut codes = Vec::new();
    let mut code = 0_i64;
    for entry in differences.into_iter().flatten() {
        if let Object::Integer(number) = entry {
            code = *number;
        } else {
            codes.extend(usize::try_from(code).ok().filter(|code| *code < 256));
            code += 1;
        }
    }
    codes
}

/// All codes of a simple font; what the library does not take of them shows nothing. `None` where it does not take the
/// font.
fn ask_all(document: &mut Document, probe: ObjectId, font: &Dictionary) -> Option<Vec<Shown>> {
    ask(document, probe, font, &[])?;
    let all: Vec<u8> = (0..=u8::MAX).collect();
    let mut codes = Vec::with_capacity(all.len());
    let mut waiting = vec![all.as_slice()];
    while let Some(part) = waiting.pop() {
        match ask(document, probe, font, part) {
            Some(shown) => codes.extend(shown),
            None if part.len() == 1 => codes.push(Shown::default()),
            None => {
                let (before, after) = part.split_at(part.len() / 2);
                waiting.extend([after, before]);
            }
        }
    }
    Some(codes)
}

/// Some codes of a simple font. `None` where the library does not take one.
fn ask(
    document: &mut Document,
    probe: ObjectId,
    font: &Dictionary,
    codes: &[u8],
) -> Option<Vec<Shown>> {
    let mut string = b"BT /P 1 Tf <".to_vec();
    string.extend_from_slice(hex::encode(codes).as_bytes());
    string.extend_from_slice(b"> Tj ET");
    let content = document.add_object(Stream::new(Dictionary::new(), string));
    let mut fonts = Dictionary::new();
    fonts.set("P", font.clone());
    let mut resources = Dictionary::new();
    resources.set("Font", fonts);
    let mut page = Dictionary::new();
    page.set("Type", Object::Name(b"Page".to_vec()));
    let corners = [0, 0, 100, 100].map(Object::Integer);
    page.set("MediaBox", Object::Array(corners.to_vec()));
    page.set("Resources", resources);
    page.set("Contents", Object::Reference(content));
    document.objects.insert(probe, Object::Dictionary(page));
    let mut told = GlyphCollector(Vec::new());
    let asked = AssertUnwindSafe(|| output_doc_page(document, &mut told, 1).is_ok());
    let good = catch_unwind(asked).unwrap_or(false);
    document.objects.remove(&content);
    (good && told.0.len() == codes.len()).then_some(told.0)
}

/// Hears what the library says of each code.
struct GlyphCollector(Vec<Shown>);

impl OutputDev for GlyphCollector {
    fn begin_page(
        &mut self,
        _: u32,
        _: &MediaBox,
        _: Option<(f64, f64, f64, f64)>,
    ) -> Result<(), OutputError> {
        Ok(())
    }

    fn end_page(&mut self) -> Result<(), OutputError> {
        Ok(())
    }

    fn output_character(
        &mut self,
        _: &Transform,
        width: f64,
        _: f64,
        _: f64,
        text: &str,
    ) -> Result<(), OutputError> {
        self.0.push(Shown {
            text: text.chars().filter(|char| *char != '\0').collect(),
            width: width * 1000.0,
            ..Shown::default()
        });
        Ok(())
    }

    fn begin_word(&mut self) -> Result<(), OutputError> {
        Ok(())
    }

    fn end_word(&mut self) -> Result<(), OutputError> {
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), OutputError> {
        Ok(())
    }
}
