//! Credentials that the operator lets workspaces name: each by its reference, for one workspace or for all. Settings hold the
//! references; only whoever sends the secrets reads them, once, at the start. What is not listed is no credential, whatever variable or
//! file there is: whoever may name one may read it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tg_settings::SettingError;

use crate::secret::Secret;

/// Most of them.
const MOST: usize = 1_000;
/// Stands for all workspaces.
const ALL: &str = "*";

/// See the module. Written as `WORKSPACE=REFERENCE`, separated by commas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials(BTreeSet<(String, String)>);

/// The secrets of credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys(BTreeMap<(String, String), Secret>);

/// A credential by its name in a workspace, and by its name in all.
fn named(workspace: &str, reference: &str) -> [(String, String); 2] {
    [workspace, ALL].map(|of| (of.to_owned(), reference.to_owned()))
}

impl Credentials {
    /// Whether a workspace may name a credential.
    pub fn has(&self, workspace: &str, reference: &str) -> bool {
        let all = named(workspace, reference);
        all.iter().any(|one| self.0.contains(one))
    }

    /// Their secrets, as they are now.
    ///
    /// # Errors
    /// One of them is not there, or cannot be read; `setting` names the list.
    pub fn keys(&self, setting: &str) -> Result<Keys, SettingError> {
        let read = |(of, reference): &(String, String)| {
            let secret = tg_settings::resolved(reference.clone());
            let fault =
                |fault: &str| SettingError::new(setting, format!("{of}={reference} {fault}"));
            let one = (of.clone(), reference.clone());
            secret
                .map(|secret| (one, Secret::new(secret)))
                .map_err(fault)
        };
        self.0.iter().map(read).collect::<Result<_, _>>().map(Keys)
    }
}

impl Keys {
    /// The secret of the credential that a workspace names. `None`: it may not name this one.
    pub fn get(&self, workspace: &str, reference: &str) -> Option<&Secret> {
        let all = named(workspace, reference);
        all.iter().find_map(|one| self.0.get(one))
    }
}

/// By their references: what is shown of settings holds no secrets.
impl Serialize for Credentials {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names = self.0.iter().map(|(of, name)| format!("{of}={name}"));
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
    let mut all = BTreeSet::new();
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
        all.insert((of.to_owned(), reference.to_owned()));
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
        let listed = read(&format!("a={reference}")).unwrap();
        assert!(listed.has("a", &reference) && !listed.has("b", &reference));
        let own = listed.keys("llm.credentials").unwrap();
        assert_eq!(own.get("a", &reference).map(Secret::expose), Some("sk-1"));
        assert_eq!(own.get("b", &reference), None);
        assert_eq!(own.get("a", "env:PATH"), None);
        let all = read(&format!(" * = {reference} ")).unwrap();
        assert!(all.has("b", &reference));
        assert!(all.keys("k").unwrap().get("b", &reference).is_some());
        let shown = serde_json::to_string(&all).unwrap();
        assert!(shown.contains(&reference) && !shown.contains("sk-1"));
        std::fs::remove_file(&dir).unwrap();
        // Whoever only lists them is not stopped by what is not there.
        let listed = read(&format!("a={reference}")).unwrap();
        assert!(listed.has("a", &reference));
        let told = listed.keys("llm.credentials").unwrap_err();
        assert!(told.to_string().contains("llm.credentials"), "{told}");
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
