//! What determines a reply: the key under which it is kept.

use serde_json::{Map, Value};
use tg_mesh::config_view::Rows;
use tg_provenance::text_hash;
use tg_schemas::determinants::prompt_rows;

pub(crate) use tg_schemas::determinants::PROMPTS;
/// Hex digits of a version that people see.
const SHOWN: usize = 16;

/// Version of a prompt: follows from its template and the system prompt, whoever changes them.
pub(crate) fn prompt_version(rows: &Rows, templates: &[&str]) -> String {
    let mut all = String::new();
    for name in prompt_rows(templates) {
        let row = rows.get(&name).map_or("", |row| row);
        all += &format!("{}\n{row}\n", row.len());
    }
    text_hash(&all)[..SHOWN].to_owned()
}

/// Everything that determines a reply.
pub(crate) struct Determined<'a> {
    pub(crate) workspace: &'a str,
    pub(crate) extractor: &'a str,
    pub(crate) text: &'a str,
    /// Other values of the prompt.
    pub(crate) terms: &'a Map<String, Value>,
    pub(crate) prompt_version: &'a str,
    pub(crate) model: &'a str,
}

impl Determined<'_> {
    /// The key. Only the model, which stands last, can hold a line end.
    pub(crate) fn key(&self) -> String {
        let terms = serde_json::to_string(self.terms).unwrap_or_default();
        text_hash(&format!(
            "{}\n{}\n{}\n{}\n{}\n{}",
            self.workspace,
            self.extractor,
            text_hash(self.text),
            text_hash(&terms),
            self.prompt_version,
            self.model
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_that_matters_changes_the_key() {
        let rows = |text: &str| Rows::from([("template.a".to_owned(), text.into())]);
        let version = prompt_version(&rows("x"), &["a"]);
        assert_ne!(version, prompt_version(&rows("y"), &["a"]));
        assert_ne!(version, prompt_version(&rows("x"), &["b"]));
        let mut more = rows("x");
        more.insert("template.other".to_owned(), "z".into());
        assert_eq!(version, prompt_version(&more, &["a"]));
        more.insert("system".to_owned(), "s".into());
        assert_ne!(version, prompt_version(&more, &["a"]));

        let none = Map::new();
        let some = Map::from_iter([("schema".to_owned(), json!({}))]);
        let base = ["w", "e", "t", "p", "m"];
        let key = |[workspace, extractor, text, prompt_version, model]: [&str; 5], terms| {
            let determined = Determined {
                workspace,
                extractor,
                text,
                terms,
                prompt_version,
                model,
            };
            determined.key()
        };
        let mut keys = vec![key(base, &none), key(base, &some)];
        for at in 0..base.len() {
            let mut other = base;
            other[at] = "other";
            keys.push(key(other, &none));
        }
        assert_eq!(keys[0], key(base, &none));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 7);
    }
}
