//! The package that a Word document is: a ZIP archive whose parts are found by relationships, not by their names.

use std::collections::HashMap;
use std::io::{Cursor, Read};

use encoding_rs::{UTF_16BE, UTF_16LE};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use zip::ZipArchive;
use zip::result::ZipError;

use crate::decode::frames::DecodeError;

/// Where the main part usually is. Some writers leave the relationships out.
const USUAL: &str = "word/document.xml";
/// Relationships of one part that are read.
const LINKS: usize = 10_000;

pub(super) struct Package<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    /// Largest part, unpacked.
    most: u64,
}

/// A relationship of one part to another in the package.
struct Link {
    id: String,
    /// The last word of its type.
    kind: String,
    target: String,
}

impl<'a> Package<'a> {
    pub(super) fn open(input: &'a [u8], most: u64) -> Result<Self, DecodeError> {
        let archive = ZipArchive::new(Cursor::new(input)).map_err(of_zip)?;
        Ok(Self { archive, most })
    }

    /// The name of the part that holds the document: `word/document.xml`, `word/document2.xml`, …
    pub(super) fn main(&mut self) -> Result<String, DecodeError> {
        let linked = self.links("")?.remove("officeDocument");
        let there = linked.filter(|part| self.find(part).is_some());
        Ok(there.unwrap_or_else(|| USUAL.to_owned()))
    }

    /// The parts that a part refers to, by the last word of the relationship's type. Of several the first counts.
    /// The empty name is the package itself.
    pub(super) fn links(&mut self, part: &str) -> Result<HashMap<String, String>, DecodeError> {
        let mut links = HashMap::new();
        self.each_link(part, |link| {
            links.entry(link.kind).or_insert(link.target);
            links.len() < LINKS
        })?;
        Ok(links)
    }

    /// The parts in other formats that stand in a part, by the ids of their relationships.
    pub(super) fn chunks(&mut self, part: &str) -> Result<Vec<(String, String)>, DecodeError> {
        let mut chunks = Vec::new();
        self.each_link(part, |link| {
            if link.kind == "aFChunk" {
                chunks.push((link.id, link.target));
            }
            chunks.len() < LINKS
        })?;
        Ok(chunks)
    }

    /// Hands over the relationships of a part to others in the package, for as long as more are wanted.
    fn each_link(
        &mut self,
        part: &str,
        mut take: impl FnMut(Link) -> bool,
    ) -> Result<(), DecodeError> {
        let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
        let slash = if folder.is_empty() { "" } else { "/" };
        let Some(xml) = self.part(&format!("{folder}{slash}_rels/{name}.rels"))? else {
            return Ok(());
        };
        let mut reader = Reader::from_reader(xml.as_slice());
        // A broken list of relationships ends where it breaks: the usual names hold.
        while let Ok(event) = reader.read_event() {
            match event {
                Event::Start(tag) | Event::Empty(tag) => {
                    let inside = attribute(&tag, b"TargetMode").as_deref() != Some("External");
                    if let (true, Some(kind), Some(target)) =
                        (inside, attribute(&tag, b"Type"), attribute(&tag, b"Target"))
                    {
                        let link = Link {
                            id: attribute(&tag, b"Id").unwrap_or_default(),
                            kind: kind.rsplit('/').next().unwrap_or_default().to_owned(),
                            target: within(folder, &target),
                        };
                        if !take(link) {
                            break;
                        }
                    }
                }
                Event::Eof => break,
                _ => {}
            }
        }
        Ok(())
    }

    /// A part; `None` if there is none of that name.
    pub(super) fn part(&mut self, name: &str) -> Result<Option<Vec<u8>>, DecodeError> {
        let Some(at) = self.find(name) else {
            return Ok(None);
        };
        let mut entry = self.archive.by_index(at).map_err(of_zip)?;
        if entry.size() > self.most {
            return Err(DecodeError::TooLarge);
        }
        let mut bytes = Vec::new();
        let read = entry.by_ref().take(self.most + 1).read_to_end(&mut bytes);
        let read = read.map_err(|_| DecodeError::Damaged)?;
        if read as u64 > self.most {
            return Err(DecodeError::TooLarge);
        }
        let wide = match bytes.get(..2) {
            Some(b"\xff\xfe") => UTF_16LE,
            Some(b"\xfe\xff") => UTF_16BE,
            _ => return Ok(Some(bytes)),
        };
        Ok(Some(wide.decode(&bytes).0.into_owned().into_bytes()))
    }

    /// Names of parts are compared without regard to case; some writers part folders by backslashes.
    fn find(&self, name: &str) -> Option<usize> {
        let exact = self.archive.index_for_name(name);
        exact.or_else(|| {
            let same = |known: &str| known.replace('\\', "/").eq_ignore_ascii_case(name);
            let name_of = |at: usize| self.archive.name_for_index(at)?.ok();
            (0..self.archive.len()).find(|at| name_of(*at).is_some_and(|known| same(&known)))
        })
    }
}

fn of_zip(error: ZipError) -> DecodeError {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => DecodeError::Encrypted,
        _ => DecodeError::Damaged,
    }
}

/// A target as seen from a folder: `styles.xml`, `/word/styles.xml`, `../word/styles.xml`.
fn within(folder: &str, target: &str) -> String {
    let mut steps: Vec<&str> = match target.starts_with('/') {
        true => Vec::new(),
        false => folder.split('/').filter(|step| !step.is_empty()).collect(),
    };
    for step in target.split(['/', '\\']) {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    steps.join("/")
}

/// The value of an attribute, whatever its namespace.
pub(super) fn attribute(tag: &BytesStart<'_>, name: &[u8]) -> Option<String> {
    // Unchecked: to look for names that stand twice takes the square of their number.
    let mut all = tag.attributes();
    let found = all
        .with_checks(false)
        .flatten()
        .find(|attribute| attribute.key.local_name().as_ref() == name)?;
    let value = found.unescape_value().ok()?;
    Some(value.into_owned())
}

/// Whether a property is on: it is, unless its value denies it.
pub(super) fn is_on(tag: &BytesStart<'_>) -> bool {
    attribute(tag, b"val").is_none_or(|said| !matches!(&*said, "0" | "false" | "off"))
}
