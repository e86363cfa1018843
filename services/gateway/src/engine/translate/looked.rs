//! Which keys of a request were looked at, and which of those that were sent were not: a word that is misspelled is told
//! of, though never refused, as clients of other releases send what this one does not know.

use std::collections::BTreeSet;
use std::ops::Bound;

use parking_lot::Mutex;
use serde_json::Value;

use super::fields::Body;

/// Warnings of one request at most.
const MOST: usize = 8;
/// Of a key so much is repeated.
const KEY: usize = 64;

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
    pub(super) fn note(&self, path: &str) {
        let path = path.replace("[0]", "[]");
        self.0.lock().insert(path);
    }

    /// All paths.
    #[cfg(test)]
    pub(crate) fn paths(&self) -> BTreeSet<String> {
        self.0.lock().clone()
    }

    /// A sentence for each key of a body that nobody looked at.
    pub fn warnings(&self, body: &Body) -> Vec<Value> {
        let paths = self.0.lock();
        let mut told = Vec::new();
        unread(&paths, body, "", &mut told);
        told.into_iter().map(Value::String).collect()
    }
}

fn unread(paths: &BTreeSet<String>, body: &Body, within: &str, told: &mut Vec<String>) {
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

#[cfg(test)]
mod tests {
    use super::super::fields::Fields;
    use super::*;
    use serde_json::json;

    fn told(body: Value) -> Vec<Value> {
        let body = body.as_object().cloned().unwrap();
        let looked = Looked::default();
        let fields = Fields::watched(&body, &looked);
        fields.text("doc-limit").ok();
        fields.text_map("options").ok();
        for key in fields.objects("keys").unwrap() {
            key.text("type").ok();
        }
        if let Some(user) = fields.object("inner").unwrap() {
            user.text("name").ok();
        }
        looked.warnings(&body)
    }

    #[test]
    fn what_nobody_reads_is_told_with_what_is_meant() {
        assert_eq!(
            told(json!({"doc-limits": 3, "doc_limit": 1, "what": null, "nonsense": 1})),
            [
                "doc-limits: is not read here; doc-limit is",
                "doc_limit: is not read here; doc-limit is",
                "nonsense: is not read here",
            ]
        );
        let deep = json!({"keys": [{"type": "a", "typ": "b"}, {"x": 1}], "inner": {"names": 1},
                          "options": {"any": 1}, "workspace": "w", "user": "u"});
        assert_eq!(
            told(deep),
            [
                "keys[].typ: is not read here; type is",
                "inner.names: is not read here; name is",
            ]
        );
    }

    #[test]
    fn warnings_are_few_and_short() {
        let many: Body = (0..50)
            .map(|n| (format!("{n}{}", "x".repeat(500)), json!(1)))
            .collect();
        let told = told(Value::Object(many));
        assert_eq!(told.len(), MOST);
        assert!(told[0].as_str().unwrap().len() < 2 * KEY);
    }
}
