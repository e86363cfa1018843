//! Which keys of a request were looked at, and which of those that were sent were not: a word that is misspelled is told
//! of, though never refused, as clients of other releases send what this one does not know.

use std::collections::BTreeSet;
use std::ops::Bound;

use parking_lot::Mutex;
use serde_json::{Map, Value};

/// Warnings of one request at most.
pub(super) const MOST: usize = 8;
/// Of a key so much is repeated.
pub(super) const KEY: usize = 64;

/// What endpoints read themselves, whatever the service.
const OF_THE_GATEWAY: [&str; 7] = [
    "blob-parts",
    "explainable",
    "operation",
    "streaming",
    "user",
    "user.workspace",
    "workspace",
];

/// Paths of keys: `document-metadata.tags`, `keys[].type`. One that ends in `*` was taken whole. Of a list the first
/// item stands for all.
#[derive(Debug, Default)]
pub struct Looked(Mutex<BTreeSet<String>>);

impl Looked {
    /// Notes a path as errors write it.
    pub(super) fn note(&self, path: String) {
        let path = match path.contains('[') {
            true => path.replace("[0]", "[]"),
            false => path,
        };
        self.0.lock().insert(path);
    }

    /// All paths.
    #[cfg(test)]
    pub(crate) fn paths(&self) -> BTreeSet<String> {
        self.0.lock().clone()
    }

    /// A sentence for each key of a body that nobody looked at.
    pub fn warnings(&self, body: &Map<String, Value>) -> Vec<Value> {
        let paths = self.0.lock();
        let mut told = Vec::new();
        unread(&paths, body, "", &mut told);
        told.into_iter().map(Value::String).collect()
    }
}

fn unread(
    paths: &BTreeSet<String>,
    body: &Map<String, Value>,
    within: &str,
    told: &mut Vec<String>,
) {
    if paths.contains(&format!("{within}*")) {
        return;
    }
    for (key, value) in body.iter().filter(|(_, value)| !value.is_null()) {
        if told.len() == MOST {
            return;
        }
        let path = format!("{within}{key}");
        if !paths.contains(&path) {
            if !OF_THE_GATEWAY.contains(&path.as_str()) {
                told.push(sentence(paths, within, key));
            }
            continue;
        }
        let (inner, deeper) = match value {
            Value::Object(inner) => (Some(inner), format!("{path}.")),
            Value::Array(items) => (
                items.first().and_then(Value::as_object),
                format!("{path}[]."),
            ),
            _ => continue,
        };
        // What nobody looked into was taken as it is.
        let looked_into = below(paths, &deeper).next().is_some();
        if let Some(inner) = inner.filter(|_| looked_into) {
            unread(paths, inner, &deeper, told);
        }
    }
}

fn below<'a>(paths: &'a BTreeSet<String>, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    let from = paths.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
    from.map(String::as_str)
        .take_while(move |path| path.starts_with(prefix))
}

/// `doc-limits: is not read here; doc-limit is`.
fn sentence(paths: &BTreeSet<String>, within: &str, key: &str) -> String {
    let shown: String = key.chars().take(KEY).collect();
    let said = format!("{within}{shown}: is not read here");
    let mut known = below(paths, within).map(|path| &path[within.len()..]);
    match known.find(|known| is_like(known, key)) {
        Some(known) => format!("{said}; {known} is"),
        None => said,
    }
}

/// The same word in another spelling, or with a little more or less at its end.
fn is_like(known: &str, key: &str) -> bool {
    let plain = |text: &str| text.replace('_', "-").to_lowercase();
    let (known, key) = (plain(known), plain(key));
    let near = known.len().abs_diff(key.len()) <= 2;
    known == key || near && (known.starts_with(&key) || key.starts_with(&known))
}
