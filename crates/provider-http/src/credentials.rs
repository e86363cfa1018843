//! Credentials that the operator lets workspaces name: each by its reference, for one workspace or for all. They are read once, at the
//! start. What is not listed is no credential, whatever variable or file there is: whoever may name one may read it.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::secret::Secret;

/// Most of them.
const MOST: usize = 1_000;
/// Stands for all workspaces.
const ALL: &str = "*";

/// See the module. Written as `WORKSPACE=REFERENCE`, separated by commas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials(BTreeMap<(String, String), Secret>);

impl Credentials {
    /// The credential that a workspace names. `None`: it may not name this one.
    pub fn get(&self, workspace: &str, reference: &str) -> Option<&Secret> {
        let of = |workspace: &str| self.0.get(&(workspace.to_owned(), reference.to_owned()));
        of(workspace).or_else(|| of(ALL))
    }
}

/// By their references: what is shown of settings holds no secrets.
impl Serialize for Credentials {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = self.0.keys().map(|(of, name)| format!("{of}={name}"));
        serializer.serialize_str(&names.collect::<Vec<_>>().join(","))
    }
}

impl<'de> Deserialize<'de> for Credentials {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        read(&text).map_err(<D::Error as serde::de::Error>::custom)
    }
}

fn read(text: &str) -> Result<Credentials, String> {
    let mut all = BTreeMap::new();
    for entry in text.split(',').map(str::trim) {
        let shape = "must be WORKSPACE=env:NAME or WORKSPACE=file:PATH, separated by commas";
        let (of, reference) = entry.split_once('=').ok_or(shape)?;
        let (of, reference) = (of.trim(), reference.trim());
        let named = ["env:", "file:"]
            .iter()
            .any(|kind| reference.starts_with(kind));
        if of.is_empty() || !named {
            // What is written may be a key: it is not repeated.
            return Err(shape.to_owned());
        }
        let secret = tg_settings::resolved(reference.to_owned())
            .map_err(|fault| format!("{of}={reference} {fault}"))?;
        all.insert((of.to_owned(), reference.to_owned()), Secret::new(secret));
        if all.len() > MOST {
            return Err(format!("must be at most {MOST}"));
        }
    }
    Ok(Credentials(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_names_its_own_credentials_and_those_of_all() {
        let dir = std::env::temp_dir().join(format!("tg-credentials-{}", std::process::id()));
        std::fs::write(&dir, "sk-1\n").unwrap();
        let reference = format!("file:{}", dir.display());
        let own = read(&format!("a={reference}")).unwrap();
        assert_eq!(own.get("a", &reference).map(Secret::expose), Some("sk-1"));
        assert_eq!(own.get("b", &reference), None);
        assert_eq!(own.get("a", "env:PATH"), None);
        let all = read(&format!(" * = {reference} ")).unwrap();
        assert!(all.get("b", &reference).is_some());
        let shown = serde_json::to_string(&all).unwrap();
        assert!(shown.contains(&reference) && !shown.contains("sk-1"));
        std::fs::remove_file(&dir).unwrap();
        assert!(read(&format!("a={reference}")).is_err());
    }

    #[test]
    fn a_key_that_is_written_out_is_refused_and_not_repeated() {
        for wrong in ["sk-1", "a=sk-1", "=env:PATH", "a=env:PATH,,"] {
            let told = read(wrong).unwrap_err();
            assert!(
                told.starts_with("must be") && !told.contains("sk-1"),
                "{told}"
            );
        }
    }
}
