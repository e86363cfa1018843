//! Signed heads as files: what `tg sign-traces` writes and `tg verify-trace` holds traces against. Pure but for reading.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chrono::{DateTime, FixedOffset};
use serde_json::{Value, json};
use tg_jwt::{PublicKeys, Refusal};
use tg_provenance::{Ended, Head, Root};

use crate::client::{Error, Result};
use crate::fields::{list, text};
use crate::files::read_text;

/// A head whose signature and runs fit.
#[derive(Debug)]
pub(super) struct DayHead {
    pub(super) head: Head,
    pub(super) runs: Vec<Ended>,
}

/// A run as JSON says it.
fn ended(run: &Value) -> Ended {
    Ended {
        run: text(run, "run"),
        collection: text(run, "collection"),
        hash: text(run, "hash"),
    }
}

/// The runs of an answer or a file.
pub(super) fn runs_of(said: &Value) -> Vec<Ended> {
    list(said, "runs").iter().map(ended).collect()
}

/// The first runs of a day, as many as its head counts, if they are those of its hash.
pub(super) fn counted(head: &Head, mut runs: Vec<Ended>) -> Option<Vec<Ended>> {
    let count = usize::try_from(head.runs).ok()?;
    if runs.len() < count {
        return None;
    }
    runs.truncate(count);
    let mut root = Root::default();
    runs.iter().for_each(|run| root.add(run));
    (root.finish() == head.root).then_some(runs)
}

/// A head as its file says it.
pub(super) fn written(text: &str, signature: &str, key: &str, runs: &[Ended]) -> Value {
    let runs = runs
        .iter()
        .map(|one| json!({"run": one.run, "collection": one.collection, "hash": one.hash}));
    json!({
        "head": text,
        "signature": signature,
        "key": key,
        "runs": runs.collect::<Vec<Value>>(),
    })
}

/// Reads heads and holds each against the key.
pub(super) fn read(files: &[std::path::PathBuf], key: &Path) -> Result<Vec<DayHead>> {
    let pem = read_text(key)?;
    let keys = PublicKeys::from_pem(&pem);
    if keys == PublicKeys::default() {
        return Err(Error::file(key, "holds no Ed25519 public key as PEM"));
    }
    let revoked = revoked(&pem);
    let read = files.iter().map(|file| one(file, &keys, &revoked));
    read.collect()
}

/// From when on heads of keys do not count, by their ids: lines beside the keys say it. One that cannot be read revokes all that
/// its key signed; of two lines of a key the earlier instant stands.
fn revoked(pem: &str) -> BTreeMap<String, Option<DateTime<FixedOffset>>> {
    let said = pem.lines().filter_map(|line| {
        line.trim_start_matches('\u{feff}')
            .strip_prefix("revoked-from: ")
    });
    let said = said.map(|line| {
        let (id, from) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        (
            id.to_owned(),
            DateTime::parse_from_rfc3339(from.trim()).ok(),
        )
    });
    let mut all = BTreeMap::new();
    for (id, from) in said {
        // None is before every instant.
        let known = all.entry(id).or_insert(from);
        *known = (*known).min(from);
    }
    all
}

fn one(
    file: &Path,
    keys: &PublicKeys,
    revoked: &BTreeMap<String, Option<DateTime<FixedOffset>>>,
) -> Result<DayHead> {
    let check = |why: &str| Error::Check(format!("{}: {why}", file.display()));
    let said: Value = serde_json::from_slice(read_text(file)?.as_bytes())
        .map_err(|error| Error::file(file, format!("is not JSON: {error}")))?;
    let signed = text(&said, "head");
    let head = Head::read(&signed)
        .map_err(|_| Error::file(file, "is not a head as `tg sign-traces` writes it"))?;
    keys.verify_text(&head.key, &signed, &text(&said, "signature"))
        .map_err(|refusal| match refusal {
            Refusal::UnknownKey => check("the head is signed by another key"),
            _ => check("the signature of the head is wrong"),
        })?;
    if let Some(from) = revoked.get(&head.key) {
        let signed = DateTime::parse_from_rfc3339(&head.signed_at).ok();
        let before = from.is_some_and(|from| signed.is_some_and(|signed| signed < from));
        if !before {
            let from = from.map_or_else(|| "the first".to_owned(), |from| from.to_rfc3339());
            return Err(check(&format!(
                "the head does not count: it was signed at {} by key {}, which is revoked from {from} on",
                head.signed_at, head.key
            )));
        }
    }
    let listed = runs_of(&said);
    if listed.len() as u64 != head.runs {
        return Err(check("the runs are not those of the head"));
    }
    let runs = counted(&head, listed);
    let runs = runs.ok_or_else(|| check("the runs are not those of the head"))?;
    Ok(DayHead { head, runs })
}

/// The heads as JSON: of which days, and whether the head before each is among them.
pub(super) fn told(heads: &[DayHead]) -> Vec<Value> {
    let known: BTreeSet<String> = heads.iter().map(|one| one.head.hash()).collect();
    let tell = |one: &DayHead| {
        let previous = &one.head.previous;
        json!({
            "workspace": one.head.workspace,
            "day": one.head.day,
            "runs": one.head.runs,
            "signed": one.head.signed_at,
            "follows": previous.is_empty() || known.contains(previous),
        })
    };
    heads.iter().map(tell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_revoked_key_signed_from_then_on_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let (head, pem) = (dir.path().join("h.json"), dir.path().join("k.pem"));
        let key = tg_jwt::SigningKey::generate().unwrap();
        let kid = key.public().kid();
        let signed = Head {
            workspace: "acme".into(),
            day: "2026-11-25".into(),
            root: Root::default().finish(),
            signed_at: "2026-11-26T00:10:00Z".into(),
            key: kid.clone(),
            ..Head::default()
        }
        .text();
        let signature = key.sign_text(&signed).unwrap();
        let file = written(&signed, &signature, "", &[]);
        std::fs::write(&head, file.to_string()).unwrap();
        let verified = |said: &str| {
            std::fs::write(&pem, format!("{said}{}", key.public().to_pem())).unwrap();
            read(std::slice::from_ref(&head), &pem)
        };
        for good in [
            String::new(),
            format!("revoked-from: {kid} 2026-11-26T00:10:01Z\n"),
            "revoked-from: 0123456789abcdef 2026-01-01T00:00:00Z\n".to_owned(),
        ] {
            assert_eq!(verified(&good).unwrap().len(), 1, "{good}");
        }
        for bad in ["2026-11-26T00:10:00Z", "2026-11-26T01:09:59+01:00", "?"] {
            let told = verified(&format!("revoked-from: {kid} {bad}\n")).unwrap_err();
            let told = told.to_string();
            assert!(
                told.contains("does not count") && told.contains(&kid),
                "{told}"
            );
        }
    }
}
