//! What is to be told of a document before it is added: kind, title, pages; or why nothing can read it. Pure.

use sha2::{Digest, Sha256};
use tg_document::kind::{self, Kind};
use tg_document::text::{TextDecoder, leniently};
use tg_document::{charset, pages, title, whole};

/// A document that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Document {
    /// MIME type under which it is kept.
    pub(in super::super) mime: String,
    /// What it calls itself, else the name it came under.
    pub(in super::super) title: String,
    /// Of a PDF that says it.
    pub(in super::super) pages: Option<u64>,
    /// Name of its charset, of text that is not UTF-8.
    pub(in super::super) charset: Option<&'static str>,
    /// SHA-256 of its content.
    pub(in super::super) hash: String,
}

impl Document {
    /// Looks at content. `name`: the last part of its path; `declared`: its MIME type, or the ending of one's
    /// file, if somebody said it. The error says what is wrong with it.
    pub(in super::super) fn of(name: &str, declared: &str, content: &[u8]) -> Result<Self, String> {
        let declared = match declared {
            "" => kind::declared(name).to_owned(),
            mime if mime.contains('/') => mime.to_owned(),
            ending => kind::declared(&format!(".{ending}")).to_owned(),
        };
        let head = &content[..content.len().min(kind::HEAD)];
        let kind = kind::detect(head, &declared).map_err(|why| why.to_string())?;
        if kind == Kind::Pdf
            && let Some(why) = whole::refusal(content)
        {
            return Err(why.to_string());
        }
        let charset = match kind {
            Kind::Text => readable(content)?,
            Kind::Html => leniently(content, charset::of_html(content)).1,
            Kind::Pdf | Kind::Docx => UNICODE,
        };
        let mime = kind.mime(&declared);
        let title = title::title(kind, &mime, content).unwrap_or_else(|| name.to_owned());
        let pages = (kind == Kind::Pdf).then(|| pages::of(content)).flatten();
        Ok(Self {
            mime,
            title,
            pages,
            charset: (charset != UNICODE).then_some(charset),
            hash: hex::encode(Sha256::digest(content)),
        })
    }

    /// `"FHS 3.0", PDF, 50 pages`, or `"prices", CSV in windows-1252`.
    pub(in super::super) fn about(&self) -> String {
        let charset = self.charset.map(|charset| format!(" in {charset}"));
        let kind = format!("{}{}", kind::name(&self.mime), charset.unwrap_or_default());
        match self.pages {
            Some(1) => format!("\"{}\", {kind}, 1 page", self.title),
            Some(pages) => format!("\"{}\", {kind}, {pages} pages", self.title),
            None => format!("\"{}\", {kind}", self.title),
        }
    }
}

/// What needs no mention.
const UNICODE: &str = "UTF-8";

/// Text that is read will be read to its end: whether that can be, and in which charset.
fn readable(content: &[u8]) -> Result<&'static str, String> {
    let (mut decoder, mut text) = (TextDecoder::default(), String::new());
    let mut blank = true;
    for piece in content.chunks(1 << 20) {
        decoder
            .push(piece, &mut text)
            .map_err(|why| why.to_string())?;
        blank &= text.trim().is_empty();
        text.clear();
    }
    let charset = decoder.finish(&mut text).map_err(|why| why.to_string())?;
    match blank && text.trim().is_empty() {
        true => Err("has no text".to_owned()),
        false => Ok(charset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str, declared: &str, content: &str) -> String {
        let document = Document::of(name, declared, content.as_bytes());
        document.map_or_else(|why| format!("{name} {why}"), |document| document.about())
    }

    #[test]
    fn content_and_name_say_what_it_is() {
        assert_eq!(
            about("notes.md", "", "# Lamps\n\nBlue."),
            "\"Lamps\", Markdown"
        );
        assert_eq!(
            about("notes", "md", "# Lamps\n\nBlue."),
            "\"Lamps\", Markdown"
        );
        assert_eq!(about("notes", "", "# Lamps\n\nBlue."), "\"notes\", text");
        let page = "<!doctype html><title>Lamps &amp; shades</title><p>x";
        assert_eq!(about("a.txt", "", page), "\"Lamps & shades\", HTML");
        let pdf = "%PDF-1.4 1 0 obj << /Type /Pages /Count 50 >> endobj \
                   2 0 obj << /Title (FHS 3.0) >> endobj xref trailer << /Info 2 0 R >> startxref 91 %%EOF";
        assert_eq!(
            about("fhs.bin", "text/plain", pdf),
            "\"FHS 3.0\", PDF, 50 pages"
        );
        let hash = Document::of("a", "", b"hello").expect("text").hash;
        assert!(hash.starts_with("2cf24dba5fb0a30e"), "{hash}");
    }

    #[test]
    fn what_nothing_can_read_is_told() {
        for (name, content, why) in [
            ("a.txt", "", "is empty"),
            ("a.md", " \n\t\n", "has no text"),
            ("a.pdf", "words", "is declared as a PDF but is not a PDF"),
            ("a.pdf", "%PDF-1.4 1 0 obj <<", "is damaged or incomplete"),
            (
                "a.xlsx",
                "PK\x03\x04..xl/workbook.xml",
                "is a spreadsheet, which is not read; convert it to PDF or text",
            ),
            ("a.txt", "nul\0", "is binary, not text"),
        ] {
            assert_eq!(about(name, "", content), format!("{name} {why}"));
        }
    }

    #[test]
    fn charsets_of_old_are_taken_and_told() {
        let about =
            |name: &str, content: &[u8]| Document::of(name, "", content).map(|it| it.about());
        let told = |text: &str| Ok(text.to_owned());
        assert_eq!(
            about("a.txt", b"caf\xe9 au lait"),
            told("\"a.txt\", text in windows-1252")
        );
        let csv = b"Stra\xdfe;Gr\xf6\xdfe\nM\xfchlweg;gro\xdf\n";
        assert_eq!(about("a.csv", csv), told("\"a.csv\", CSV in windows-1252"));
        assert_eq!(
            about("a.txt", b"\xff\xfeh\0i\0"),
            told("\"a.txt\", text in UTF-16LE")
        );
        let page = b"<!doctype html><meta charset=shift_jis><title>\x93\x8c\x8b\x9e</title><p>x";
        assert_eq!(about("a.html", page), told("\"東京\", HTML in Shift_JIS"));
        let late = ["größe ".repeat(20_000).as_bytes(), b"caf\xe9 x"].concat();
        let refused = about("a.txt", &late).expect_err("refused");
        assert!(
            refused.starts_with("is not UTF-8 text: byte 160003"),
            "{refused}"
        );
    }
}
