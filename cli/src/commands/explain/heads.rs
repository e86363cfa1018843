//! Signed heads as files: what `tg sign-traces` writes and `tg verify-trace` holds traces against. Pure but for reading.

use std::collections::BTreeSet;
use std::path::Path;

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
    let keys = PublicKeys::from_pem(&read_text(key)?);
    if keys == PublicKeys::default() {
        return Err(Error::file(key, "holds no Ed25519 public key as PEM"));
    }
    files.iter().map(|file| one(file, &keys)).collect()
}

fn one(file: &Path, keys: &PublicKeys) -> Result<DayHead> {
    let check = |why: &str| Error::Check(format!("{}: {why}", file.display()));
    let said: Value = serde_json::from_str(&read_text(file)?)
        .map_err(|error| Error::file(file, format!("is not JSON: {error}")))?;
    let signed = text(&said, "head");
    let head = Head::read(&signed)
        .map_err(|_| Error::file(file, "is not a head as `tg sign-traces` writes it"))?;
    keys.verify_text(&head.key, &signed, &text(&said, "signature"))
        .map_err(|refusal| match refusal {
            Refusal::UnknownKey => check("the head is signed by another key"),
            _ => check("the signature of the head is wrong"),
        })?;
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
