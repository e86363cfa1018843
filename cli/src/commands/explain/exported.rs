//! Traces in files: N-Quads, or a bundle of `tg export-workspace`, which also has the texts.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use tg_provenance::Stored;
use tg_schemas::Triple;

use super::fetch::RETRIEVAL;
use crate::client::{Error, Result};
use crate::commands::graph::quads_of;
use crate::commands::workspace::bundle::Member;
use crate::files::read_bytes;

/// What every gzip file begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// A longer text is none of a trace.
const LONGEST: u64 = 64 << 20;

/// What files say of traces.
#[derive(Default)]
pub(super) struct Exported {
    /// By collection.
    pub(super) traces: BTreeMap<String, Stored>,
    /// Texts by their ids, where a bundle was among the files.
    pub(super) texts: Option<BTreeMap<String, String>>,
}

/// Reads files. What N-Quads say is of one collection, which they do not name.
pub(super) fn read(files: &[PathBuf], collection: &str) -> Result<Exported> {
    let mut said: BTreeMap<String, Vec<Triple>> = BTreeMap::new();
    let mut texts = None;
    for file in files {
        let bytes = read_bytes(file)?;
        if bytes.starts_with(&GZIP) {
            let texts = texts.get_or_insert_with(BTreeMap::new);
            bundle(&bytes, file, &mut said, texts)?;
        } else {
            let quads = quads_of(bytes.as_slice(), RETRIEVAL, file)?;
            said.entry(collection.to_owned()).or_default().extend(quads);
        }
    }
    let traces = said.into_iter();
    Ok(Exported {
        traces: traces
            .map(|(collection, said)| (collection, said.into_iter().collect()))
            .collect(),
        texts,
    })
}

fn bundle(
    bytes: &[u8],
    file: &Path,
    said: &mut BTreeMap<String, Vec<Triple>>,
    texts: &mut BTreeMap<String, String>,
) -> Result<()> {
    let failed = |error: std::io::Error| Error::file(file, error);
    let mut tar = tar::Archive::new(GzDecoder::new(bytes));
    for entry in tar.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let path = entry.path().map_err(failed)?.to_string_lossy().into_owned();
        match Member::read(&path) {
            Some(Member::Triples(collection, _)) => {
                let quads = quads_of(&mut entry, RETRIEVAL, file)?;
                said.entry(collection).or_default().extend(quads);
            }
            Some(Member::Content(id)) if entry.size() <= LONGEST => {
                let mut text = Vec::new();
                entry.read_to_end(&mut text).map_err(failed)?;
                if let Ok(text) = String::from_utf8(text) {
                    texts.insert(id, text);
                }
            }
            _ => {}
        }
    }
    Ok(())
}
