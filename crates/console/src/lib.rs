//! The page at `/` and what belongs to it, as built into the binary: what `make console` made of `console/`, or a plain
//! page that says how to make it; and the two descriptions of the endpoints. A table of bytes; it serves nothing.

use std::io::Read as _;
use std::sync::OnceLock;

use flate2::read::GzDecoder;

include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// A file.
#[derive(Debug)]
pub struct Asset {
    /// Its name, without a path.
    pub name: &'static str,
    /// A strong entity tag, with its quotes.
    pub tag: &'static str,
    /// Its bytes, compressed by Brotli.
    pub brotli: Option<&'static [u8]>,
    /// The same, compressed by gzip. The bytes themselves are not kept: nearly every client takes them compressed.
    pub gzip: &'static [u8],
    plain: OnceLock<Vec<u8>>,
}

/// Whether the console was built in; otherwise the pages are the plain ones.
pub fn is_built() -> bool {
    BUILT.iter().any(|asset| asset.name == "index.html")
}

/// The asset of a name.
pub fn find(name: &str) -> Option<&'static Asset> {
    BUILT
        .iter()
        .find(|asset| asset.name == name)
        .or_else(|| plain(name))
}

/// The same as a build without the console has it.
pub fn plain(name: &str) -> Option<&'static Asset> {
    ALWAYS.iter().find(|asset| asset.name == name)
}

impl Asset {
    /// A file, with its forms.
    pub const fn new(
        name: &'static str,
        tag: &'static str,
        brotli: Option<&'static [u8]>,
        gzip: &'static [u8],
    ) -> Self {
        Self {
            name,
            tag,
            brotli,
            gzip,
            plain: OnceLock::new(),
        }
    }

    /// Its bytes as they are: made when first asked for.
    pub fn plain(&self) -> &[u8] {
        self.plain.get_or_init(|| {
            let mut content = Vec::new();
            // What the build compressed can be read.
            let _ = GzDecoder::new(self.gzip).read_to_end(&mut content);
            content
        })
    }

    /// Its media type.
    pub fn kind(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("json") => "application/json",
            Some("svg") => "image/svg+xml",
            Some("yaml") => "application/yaml",
            Some("txt") => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        }
    }

    /// Whether its name says its content (`name-XXXXXXXX.ending`, as the build writes it), so that it never changes.
    pub fn is_forever(&self) -> bool {
        let stem = self.name.split('.').next().unwrap_or_default();
        stem.rsplit_once('-').is_some_and(|(_, print)| {
            let upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
            print.len() == 8 && print.bytes().all(upper)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &'static str) -> Asset {
        Asset::new(name, "", None, b"")
    }

    #[test]
    fn a_build_without_the_console_says_how_to_make_it() {
        for name in ["index.html", "docs.html"] {
            let page = plain(name).map(|page| page.plain()).unwrap_or_default();
            let page = String::from_utf8_lossy(page);
            assert!(page.contains("make console"), "{name}: {page}");
        }
    }

    #[test]
    fn a_build_without_the_console_says_what_else_there_is_and_is_styled() {
        let text = |name| {
            let page = plain(name).map(|page| page.plain()).unwrap_or_default();
            String::from_utf8_lossy(page)
        };
        let index = text("index.html");
        for wanted in ["tg add", "tg ask", "tg doctor", "cargo build", "/docs"] {
            assert!(index.contains(wanted), "{wanted}: {index}");
        }
        for page in [index, text("docs.html")] {
            assert!(page.contains("href=\"/assets/plain.css\""), "{page}");
        }
        let style = plain("plain.css").map(Asset::kind);
        assert_eq!(style, Some("text/css; charset=utf-8"));
    }

    #[test]
    fn both_pages_and_both_descriptions_are_always_there() {
        for name in ["index.html", "docs.html", "openapi.yaml", "asyncapi.yaml"] {
            for asset in [find(name), plain(name)] {
                let asset = asset.unwrap_or_else(|| panic!("{name} is missing"));
                assert!(!asset.plain().is_empty() && asset.tag.len() == 18, "{name}");
                assert!(!asset.is_forever(), "{name}");
            }
        }
    }

    #[test]
    fn nothing_in_a_page_runs_or_paints_by_itself() {
        for page in BUILT
            .iter()
            .chain(&ALWAYS)
            .filter(|asset| asset.name.ends_with(".html"))
        {
            let text = String::from_utf8_lossy(page.plain());
            for inline in [
                "<script>",
                "<style",
                " style=",
                " onclick=",
                "http://",
                "https://",
            ] {
                assert!(!text.contains(inline), "{} has {inline}", page.name);
            }
        }
    }

    #[test]
    fn descriptions_stand_alone() {
        for name in ["openapi.yaml", "asyncapi.yaml"] {
            let content = find(name).map(Asset::plain).unwrap_or_default();
            let text = String::from_utf8_lossy(content);
            for reference in text.split("$ref:").skip(1) {
                let target = reference.trim_start().trim_start_matches(['"', '\'']);
                assert!(target.starts_with("#/"), "{name}: {:.60}", target);
            }
        }
    }

    #[test]
    fn what_has_a_fingerprint_is_forever() {
        assert!(named("app-AB12CD34.js").is_forever());
        assert!(!named("app.js").is_forever());
        assert!(!named("app-abcdefgh.js").is_forever());
        assert_eq!(named("a.js").kind(), "text/javascript; charset=utf-8");
        assert_eq!(named("a").kind(), "application/octet-stream");
    }

    /// Of a build without the page this says nothing: what is served is held against what was built by a black-box test.
    #[test]
    fn what_travels_is_within_its_limit() {
        let sum: usize = BUILT.iter().map(|asset| asset.gzip.len()).sum();
        assert!(sum <= 400_000, "{sum} bytes");
    }
}
