//! PDFs as people have them: written here by hand, and by the programs that people use.

mod columns;
mod fonts;
mod produced;

pub use produced::locked;

/// One of them.
pub struct Paper {
    pub name: &'static str,
    pub file: Vec<u8>,
    pub expected: Expected,
    /// Lines along the edges, which are no text. `#` stands for any number, `*` at the end for anything.
    pub edges: Vec<&'static str>,
    /// Pages of which something cannot be read.
    pub partly: Vec<u32>,
    /// Poppler reads it as well.
    pub poppler: bool,
    /// How Poppler is asked for it: `-layout` where rows are read as rows by that alone, `-raw`, the order in which it
    /// was drawn, where that is the order of reading and Poppler's own is not.
    pub asked: &'static str,
}

/// What comes of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Expected {
    /// This, word for word in this order.
    Text(String),
    /// Each of these, word for word without anything in between, in this order.
    Paragraphs(Vec<String>),
    /// The code of a fault.
    Error(u8),
}

impl Paper {
    fn new(name: &'static str, file: Vec<u8>, text: impl Into<String>) -> Self {
        Self {
            name,
            file,
            expected: Expected::Text(text.into()),
            edges: Vec::new(),
            partly: Vec::new(),
            poppler: true,
            asked: "-q",
        }
    }

    /// With these lines along its edges.
    fn without(self, edges: &[&'static str]) -> Self {
        Self {
            edges: edges.to_vec(),
            ..self
        }
    }

    fn refused(name: &'static str, file: Vec<u8>, fault: u8) -> Self {
        Self {
            expected: Expected::Error(fault),
            ..Self::new(name, file, "")
        }
    }
}

/// Those that have text, written by hand.
pub fn by_hand() -> Vec<Paper> {
    [columns::papers(), fonts::papers()]
        .into_iter()
        .flatten()
        .collect()
}

/// All that have text.
pub fn readable() -> Vec<Paper> {
    let mut papers = by_hand();
    papers.extend(produced::papers());
    papers
}

/// Those that have none, or give none.
pub fn unreadable() -> Vec<Paper> {
    let mut scanned = tg_testkit::pdf::Pdf::courier();
    scanned.page("q 500 0 0 700 50 50 cm /Image Do Q");
    let whole = columns::papers().swap_remove(0).file;
    let key = "00".repeat(32);
    let locked = format!(
        "/ID [<0011> <0011>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -44 /O <{key}> /U <{key}> >>"
    );
    let mut encrypted = tg_testkit::pdf::Pdf::courier();
    encrypted.page(&tg_testkit::pdf::line(60.0, 700.0, "secret"));
    vec![
        Paper::refused("scanned", scanned.finish(""), 14),
        Paper::refused("damaged", whole[..whole.len() / 2].to_vec(), 10),
        Paper::refused("encrypted", encrypted.finish(&locked), 11),
        Paper::refused("empty", Vec::new(), 10),
    ]
}
