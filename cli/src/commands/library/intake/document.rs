//! What is to be told of a document before it is added: kind, title, pages; or why nothing can read it. Large text is
//! looked at in pieces. A PDF has what is told of it anywhere: up to the size that is taken apart it is looked at whole.

use std::io;

use tg_document::kind::{self, Kind};
use tg_document::text::{NoText, TextDecoder, leniently};
use tg_document::{charset, pages, title, whole};
use tg_schemas::limits::DOCUMENT;

use crate::client::Error;
use crate::content::Content;
use crate::session::Session;
use crate::terminal::Bar;

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
    /// file, if somebody said it; `hash`: the SHA-256 of the content. The inner error says what is wrong with it, the outer
    /// one that it cannot be read.
    pub(in super::super) async fn look(
        name: &str,
        declared: &str,
        content: &Content,
        hash: &str,
    ) -> io::Result<Result<Self, String>> {
        let declared = match declared {
            "" => kind::declared(name).to_owned(),
            mime if mime.contains('/') => mime.to_owned(),
            ending => kind::declared(&format!(".{ending}")).to_owned(),
        };
        let mut known = content.piece(0, BEGINNING)?;
        let head = &known[..known.len().min(kind::HEAD)];
        let kind = match kind::detect(head, &declared) {
            Ok(kind) => kind,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let mut pages = None;
        if kind == Kind::Pdf && content.size() <= DOCUMENT as u64 {
            known = content.piece(0, DOCUMENT)?;
            if let Some(why) = whole::refusal(&known) {
                return Ok(Err(why.to_string()));
            }
            pages = pages::of(&known);
        }
        let charset = match kind {
            Kind::Text => match readable(content).await? {
                Ok(charset) => charset,
                Err(why) => return Ok(Err(why)),
            },
            Kind::Html => of_page(content, &known).await?,
            Kind::Pdf | Kind::Docx => UNICODE,
        };
        let mime = kind.mime(&declared);
        let title = title::title(kind, &mime, &known).unwrap_or_else(|| name.to_owned());
        Ok(Ok(Self {
            mime,
            title,
            pages,
            charset: (charset != UNICODE).then_some(charset),
            hash: hash.to_owned(),
        }))
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

/// Bytes in which text says what it is, and what it calls itself.
const BEGINNING: usize = 64 << 10;

/// The SHA-256 of content in hexadecimal digits. Of large content it is told how far that is.
pub(in super::super) async fn hash(
    session: &Session,
    name: &str,
    content: &Content,
) -> Result<String, Error> {
    let bar = match content.small() {
        Some(_) => Bar::hidden(),
        None => {
            let what = format!("{name}: reading");
            session.out.progress(&what, Some(content.size()))
        }
    };
    let hash = session.until_interrupted(content.hash(|read| bar.inc(read)));
    let hash = hash.await;
    bar.finish_and_clear();
    hash?.map_err(|error| Error::file(name, error))
}

/// The charset of a text and whether it is blank, from its beginning to its end.
async fn decoded(
    content: &Content,
    decoder: TextDecoder,
) -> io::Result<Result<(&'static str, bool), NoText>> {
    let (mut decoder, mut text) = (Ok(decoder), String::new());
    let mut blank = true;
    let each = content.each(|piece| {
        let pushed = match &mut decoder {
            Ok(decoder) => decoder.push(piece, &mut text),
            Err(_) => return,
        };
        if let Err(why) = pushed {
            decoder = Err(why);
        }
        blank &= text.trim().is_empty();
        text.clear();
    });
    each.await?;
    let ended = decoder.and_then(|decoder| decoder.finish(&mut text));
    Ok(ended.map(|charset| (charset, blank && text.trim().is_empty())))
}

/// Text that is read will be read to its end: whether that can be, and in which charset.
async fn readable(content: &Content) -> io::Result<Result<&'static str, String>> {
    Ok(match decoded(content, TextDecoder::default()).await? {
        Err(why) => Err(why.to_string()),
        Ok((_, true)) => Err("has no text".to_owned()),
        Ok((charset, false)) => Ok(charset),
    })
}

/// The charset of a web page, which is read whatever it is: as it declares, if it is that, else as its bytes suggest.
async fn of_page(content: &Content, beginning: &[u8]) -> io::Result<&'static str> {
    let declared = charset::of_html(beginning);
    let tried = [declared.map(TextDecoder::of), Some(TextDecoder::default())];
    for decoder in tried.into_iter().flatten() {
        if let Ok((charset, _)) = decoded(content, decoder).await? {
            return Ok(charset);
        }
    }
    Ok(leniently(beginning, declared).1)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;
    use crate::content::Spool;

    fn look(name: &str, declared: &str, bytes: &[u8]) -> Result<Document, String> {
        let mut content = Spool::default();
        content.push(bytes).expect("kept");
        let content = content.content();
        let looked = async {
            let hash = content.hash(|_| {}).await.expect("read");
            Document::look(name, declared, &content, &hash).await
        };
        futures::executor::block_on(looked).expect("read")
    }

    fn about(name: &str, declared: &str, content: &str) -> String {
        let document = look(name, declared, content.as_bytes());
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
        let hash = look("a", "", b"hello").expect("text").hash;
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

    /// A file as people have it, and what is to be said of it. The page says the same of the same table, but for a title
    /// in a charset that it would have to guess.
    #[derive(serde::Deserialize)]
    struct Case {
        name: String,
        #[serde(default)]
        text: String,
        base64: Option<String>,
        #[serde(default)]
        kind: String,
        #[serde(default)]
        title: String,
        refused: Option<String>,
    }

    #[test]
    fn what_is_said_of_a_file_is_what_the_page_says() {
        let table = include_str!("../../../../../console/test/kinds.json");
        let cases: Vec<Case> = serde_json::from_str(table).expect("cases");
        assert!(cases.len() > 60);
        for case in cases {
            let content = match &case.base64 {
                Some(packed) => STANDARD.decode(packed).expect("base64"),
                None => case.text.into_bytes(),
            };
            let said = look(&case.name, "", &content);
            let said = said.map(|document| (document.mime, document.title));
            let wanted = match case.refused {
                Some(why) => Err(why),
                None => Ok((case.kind, case.title)),
            };
            assert_eq!(said, wanted, "{}", case.name);
        }
    }

    #[test]
    fn charsets_of_old_are_taken_and_told() {
        let about = |name: &str, content: &[u8]| look(name, "", content).map(|it| it.about());
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
