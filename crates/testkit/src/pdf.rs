//! PDFs made by hand, for what writers of PDFs do and a library would not: odd fonts, columns drawn line by line, damage.

use std::io::Write;

/// Points between the left edge of a page and its text.
pub const LEFT: f64 = 60.0;
/// Size of the text.
pub const SIZE: f64 = 10.0;
/// Width of a character of [`Pdf::courier`] at that size.
pub const CHARACTER: f64 = 6.0;

/// A PDF that grows.
#[derive(Debug, Clone)]
pub struct Pdf {
    objects: Vec<Vec<u8>>,
    pages: Vec<usize>,
    fonts: String,
    forms: String,
}

impl Default for Pdf {
    fn default() -> Self {
        Self::new()
    }
}

impl Pdf {
    /// One without pages and fonts.
    pub fn new() -> Self {
        // The catalog and the page tree come first; the tree is written in the end.
        let catalog = b"<< /Type /Catalog /Pages 2 0 R >>".to_vec();
        Self {
            objects: vec![catalog, Vec::new()],
            pages: Vec::new(),
            fonts: String::new(),
            forms: String::new(),
        }
    }

    /// One with the font `F` in which all characters are [`CHARACTER`] wide.
    pub fn courier() -> Self {
        let mut pdf = Self::new();
        pdf.font(
            "F",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>",
        );
        pdf
    }

    /// Adds an object and gives its number.
    pub fn object(&mut self, body: impl Into<Vec<u8>>) -> usize {
        self.objects.push(body.into());
        self.objects.len()
    }

    /// Adds a stream; `entries` stand in its dictionary.
    pub fn stream(&mut self, entries: &str, content: &[u8]) -> usize {
        let head = format!("<< {entries} /Length {} >>\nstream\n", content.len());
        let body = [head.as_bytes(), content, b"\nendstream"].concat();
        self.object(body)
    }

    /// Adds a font under a name.
    pub fn font(&mut self, name: &str, dictionary: &str) {
        let at = self.object(dictionary);
        self.fonts.push_str(&format!("/{name} {at} 0 R "));
    }

    /// Adds a form, which pages draw as `/name Do`.
    pub fn form(&mut self, name: &str, matrix: &str, content: &str) {
        let fonts = self.fonts.clone();
        let entries = format!(
            "/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Matrix [{matrix}] \
             /Resources << /Font << {fonts} >> >>"
        );
        let at = self.stream(&entries, content.as_bytes());
        self.forms.push_str(&format!("/{name} {at} 0 R "));
    }

    /// Adds a page that draws this.
    pub fn page(&mut self, content: &str) {
        self.turned_page(content, 0);
    }

    /// Adds a page that is shown turned.
    pub fn turned_page(&mut self, content: &str, degrees: u32) {
        self.page_with(content, &format!("/Rotate {degrees}"));
    }

    /// Adds a page with these entries in its dictionary.
    pub fn page_with(&mut self, content: &str, entries: &str) {
        let content = self.stream("", content.as_bytes());
        let (fonts, forms) = (self.fonts.clone(), self.forms.clone());
        let page = self.object(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {entries} /Contents {content} 0 R \
             /Resources << /Font << {fonts} >> /XObject << {forms} >> >> >>"
        ));
        self.pages.push(page);
    }

    /// The file. `trailer` is put into its trailer.
    pub fn finish(mut self, trailer: &str) -> Vec<u8> {
        let kids: Vec<String> = self.pages.iter().map(|at| format!("{at} 0 R")).collect();
        let (kids, count) = (kids.join(" "), self.pages.len());
        self.objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {count} >>").into_bytes();
        let mut file = b"%PDF-1.5\n".to_vec();
        let mut places = Vec::new();
        for (at, object) in (1..).zip(&self.objects) {
            places.push(file.len());
            let head = format!("{at} 0 obj\n");
            file.extend_from_slice(&[head.as_bytes(), object, b"\nendobj\n"].concat());
        }
        let table = file.len();
        let size = self.objects.len() + 1;
        let mut end = format!("xref\n0 {size}\n0000000000 65535 f \n");
        for place in places {
            end.push_str(&format!("{place:010} 00000 n \n"));
        }
        end.push_str(&format!(
            "trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{table}\n%%EOF\n"
        ));
        // A vector takes all.
        let _ = file.write_all(end.as_bytes());
        file
    }
}

/// Operators that draw a line of text in the font `F`.
pub fn line(x: f64, y: f64, text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('(', "\\(")
        .replace(')', "\\)");
    format!("BT /F {SIZE} Tf 1 0 0 1 {x} {y} Tm ({escaped}) Tj ET\n")
}

/// Prose of so many words that is always the same for the same number, without a word twice in a row.
pub fn prose(number: usize, words: usize) -> String {
    const WORDS: &[&str] = &[
        "the",
        "northern",
        "ferry",
        "leaves",
        "harbour",
        "before",
        "morning",
        "while",
        "keepers",
        "carry",
        "lanterns",
        "along",
        "granite",
        "piers",
        "and",
        "count",
        "every",
        "vessel",
        "that",
        "passes",
        "under",
        "bridge",
        "toward",
        "open",
        "water",
        "where",
        "currents",
        "meet",
        "stones",
        "with",
        "copper",
        "bells",
        "mark",
        "shallow",
        "ground",
        "merchants",
        "write",
        "letters",
        "about",
        "weather",
        "prices",
        "salt",
        "timber",
        "wool",
        "grain",
        "from",
        "distant",
        "islands",
        "their",
        "clerks",
    ];
    let mut state = number as u64 * 7919 + 13;
    let mut said = Vec::new();
    let mut last = usize::MAX;
    for at in 0..words {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let mut pick = usize::try_from(state >> 33).unwrap_or(0) % WORDS.len();
        if pick == last {
            pick = (pick + 1) % WORDS.len();
        }
        last = pick;
        let end = if at % 11 == 10 { "." } else { "" };
        said.push(format!("{}{end}", WORDS[pick]));
    }
    said.join(" ")
}

/// Text in lines of at most so many characters.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut();
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
