//! The chain of hashes of a trace, from the gateway or from files, held against signed heads where there are some.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tg_provenance::{Broken, Stored, Texts, Whole, end_of};
use tg_schemas::vocabulary::tg;
use tg_schemas::{Term, Triple};

use super::fetch::{RETRIEVAL, TraceLocation, entity_call, texts};
use super::heads::{self, DayHead};
use super::{exported, fetch};
use crate::client::{Call, Error, Result, Socket};
use crate::commands::graph::{Pattern, triples};

/// Entities that are looked for by their hashes, at most.
const MAX_SOUGHT: usize = 5000;

/// What a chain is held against.
#[derive(Debug, Args)]
pub(super) struct Against {
    /// Check the chain of hashes alone
    #[arg(long)]
    pub(super) chain: bool,
    /// Traces to check instead of asking the gateway: N-Quads, or a bundle of `tg export-workspace`; may be given several
    /// times
    #[arg(long = "file", value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Signed head of a day, as `tg sign-traces` writes it; may be given several times
    #[arg(long, value_name = "FILE", requires = "key")]
    heads: Vec<PathBuf>,
    /// Public key by which heads must be signed, as `tg sign-traces --public-key` writes it
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

impl Against {
    /// The heads that were given.
    pub(super) fn heads(&self) -> Result<Vec<DayHead>> {
        match &self.key {
            Some(key) => heads::read(&self.heads, key),
            None => Ok(Vec::new()),
        }
    }
}

/// What was found of the chain of one trace.
#[derive(Debug)]
pub(super) struct Checked {
    run: String,
    collection: String,
    signed: bool,
    found: std::result::Result<Option<Whole>, Broken>,
}

impl Checked {
    fn new(
        stored: &Stored,
        run: &str,
        collection: &str,
        texts: &Texts<'_>,
        signed: Option<&str>,
    ) -> Self {
        Self {
            run: run.to_owned(),
            collection: collection.to_owned(),
            signed: signed.is_some(),
            found: stored.verify(run, texts, signed),
        }
    }

    /// As JSON.
    pub(super) fn json(&self) -> Value {
        let told = match &self.found {
            Ok(None) => json!({"whole": null}),
            Ok(Some(whole)) => json!({
                "whole": true, "entities": whole.entities, "texts": whole.texts,
                "texts-not-compared": whole.unread, "hash": whole.head,
            }),
            Err(broken) => json!({
                "whole": false, "entity": broken.entity, "fault": broken.fault.as_str(),
                "message": broken.fault.says(),
            }),
        };
        let mut all =
            json!({"run": self.run, "collection": self.collection, "signed": self.signed});
        if let (Value::Object(all), Value::Object(told)) = (&mut all, told) {
            all.extend(told);
        }
        all
    }

    /// A line for people.
    pub(super) fn line(&self) -> String {
        match &self.found {
            Ok(None) => format!("– {}: no chain, an earlier release wrote it", self.run),
            Ok(Some(whole)) => {
                let texts = match (whole.texts, whole.unread) {
                    (texts, 0) => format!("{texts} texts"),
                    (texts, unread) => format!("{texts} texts, {unread} not at hand"),
                };
                let signed = if self.signed { ", as signed" } else { "" };
                format!(
                    "✓ {}: {} entities, {texts}{signed}",
                    self.run, whole.entities
                )
            }
            Err(broken) => format!(
                "✗ {}: broken at {}: {}",
                self.run,
                broken.entity,
                broken.fault.says()
            ),
        }
    }

    /// Nothing, if the chain holds or there is none.
    pub(super) fn verdict(&self) -> Result<()> {
        match &self.found {
            Ok(_) => Ok(()),
            Err(broken) => Err(Error::Check(format!(
                "the chain is broken at {}: {}",
                broken.entity,
                broken.fault.says()
            ))),
        }
    }
}

/// The hash of a run's end, as the heads say it; the last one counts.
fn signed<'a>(heads: &'a [DayHead], run: &str) -> Option<&'a str> {
    let mut runs = heads.iter().flat_map(|head| &head.runs).rev();
    let ended = runs.find(|ended| ended.run == run);
    ended.map(|ended| ended.hash.as_str())
}

/// Checks the chain of a trace that the gateway has; `said` is what was fetched of it.
pub(super) async fn online(
    socket: &mut Socket,
    place: &TraceLocation<'_>,
    root: &str,
    mut said: Vec<Triple>,
    heads: &[DayHead],
) -> Result<Checked> {
    seek(socket, place, root, &mut said).await?;
    let stored: Stored = said.into_iter().collect();
    let known = texts(socket, stored.documents()).await?;
    let signed = signed(heads, root);
    Ok(Checked::new(
        &stored,
        root,
        place.collection,
        &Texts::Known(&known),
        signed,
    ))
}

/// Where an entity is missing, nothing leads to those after it: they are looked for by the name of the end, and by
/// the hashes that they name.
async fn seek(
    socket: &mut Socket,
    place: &TraceLocation<'_>,
    root: &str,
    said: &mut Vec<Triple>,
) -> Result<()> {
    let mut sought = BTreeSet::new();
    let mut next: BTreeSet<String> = BTreeSet::from([end_of(root)]);
    loop {
        let stored: Stored = said.iter().cloned().collect();
        next.extend(stored.linked(root));
        next.retain(|iri| !stored.says(iri) && sought.insert(iri.clone()));
        let hashes: Vec<String> = stored.unmet();
        let hashes = hashes.into_iter();
        let hashes: Vec<String> = hashes.filter(|hash| sought.insert(hash.clone())).collect();
        if (next.is_empty() && hashes.is_empty()) || sought.len() > MAX_SOUGHT {
            return Ok(());
        }
        let about = next.iter();
        let about = about.map(|iri| entity_call(place.flow, place.collection, iri));
        let by_hash = hashes.iter().map(|hash| {
            let pattern = Pattern {
                p: Some(Term::iri(tg::ENTITY_HASH)),
                o: Some(Term::literal(hash)),
                ..place.pattern(RETRIEVAL, 2)
            };
            pattern.call(place.flow)
        });
        let calls: Vec<Call> = about.chain(by_hash).collect();
        let asked = next.len();
        next = BTreeSet::new();
        for (at, reply) in socket.ask_all(&calls).await?.into_iter().enumerate() {
            let found = triples(&reply?);
            match at < asked {
                true => said.extend(found),
                false => next.extend(fetch::subjects(&found)),
            }
        }
    }
}

/// What was found in files.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) checked: Vec<Checked>,
    pub(super) heads: Vec<DayHead>,
    /// Runs of the heads whose collections are in none of the files.
    pub(super) left: usize,
}

/// Checks the chains of what files hold: of one run, or of all, those that the heads name included.
pub(super) fn offline(against: &Against, collection: &str, run: Option<&str>) -> Result<Found> {
    let heads = against.heads()?;
    let exported = exported::read(&against.files, collection)?;
    let texts = match &exported.texts {
        Some(texts) => Texts::Known(texts),
        None => Texts::Unknown,
    };
    let mut checked = Vec::new();
    for (collection, stored) in &exported.traces {
        let mut runs: BTreeSet<String> = stored.roots().into_iter().collect();
        let listed = heads.iter().flat_map(|head| &head.runs);
        let listed = listed.filter(|ended| ended.collection == *collection);
        runs.extend(listed.map(|ended| ended.run.clone()));
        if let Some(run) = run {
            let there = stored.has(run) || runs.contains(run);
            runs = there.then(|| run.to_owned()).into_iter().collect();
        }
        let check =
            |run: &String| Checked::new(stored, run, collection, &texts, signed(&heads, run));
        checked.extend(runs.iter().map(check));
    }
    if checked.is_empty() {
        return Err(Error::Missing(match run {
            Some(run) => format!("no trace {run} in the files"),
            None => "no traces with hashes in the files".to_owned(),
        }));
    }
    let listed = heads.iter().flat_map(|head| &head.runs);
    let left = listed.filter(|ended| !exported.traces.contains_key(&ended.collection));
    let left = left.count();
    Ok(Found {
        checked,
        heads,
        left,
    })
}

/// The verdict over many, in words.
pub(super) fn verdict(found: &Found) -> Result<String> {
    let checked = &found.checked;
    let broken = checked.iter().filter(|one| one.found.is_err()).count();
    let all = checked.len();
    match broken {
        0 => {
            let signed = checked.iter().filter(|one| one.signed).count();
            let left = match found.left {
                0 => String::new(),
                left => format!(" {left} signed runs are of collections that are in no file."),
            };
            Ok(format!(
                "All {all} chains hold, {signed} of them as signed.{left}"
            ))
        }
        1 if all == 1 => checked[0].verdict().map(|()| String::new()),
        _ => Err(Error::Check(format!("{broken} of {all} chains are broken"))),
    }
}
