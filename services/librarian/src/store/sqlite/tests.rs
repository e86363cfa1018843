//! The books of runs, and rows of an older release.

use std::collections::BTreeMap;

use tg_schemas::msg::{ProcessingMetadata, RunTallyEntry, RunWritten};
use tg_storage::rusqlite::{Connection, Transaction};
use tg_storage::{Database, Durability, StorageError};

use super::*;
use crate::engine::readers::{Reader, Wiring};
use crate::engine::state::{Counts, State};
use crate::store::documents::{Listing, Which};
use crate::store::runs::{Run, Target, Wanted};

fn reader(processor: &str, topic: &str) -> Reader {
    Reader {
        topic: format!("flow:tg:{topic}:w:f"),
        subscription: format!("{processor}--w--f--input"),
    }
}

/// A flow that cuts text, and reads chunks twice.
fn wiring() -> Wiring {
    Wiring {
        readers: vec![
            reader("chunker", "text"),
            reader("kw-index", "chunk"),
            reader("document-embeddings", "chunk"),
        ],
    }
}

fn begin(tx: &Transaction<'_>, processing: &str) -> Result<Run, StorageError> {
    let wanted = Wanted {
        workspace: "w".into(),
        processing: ProcessingMetadata {
            id: processing.into(),
            document_id: "d".into(),
            flow: "f".into(),
            collection: "c".into(),
            ..ProcessingMetadata::default()
        },
        generation: 0,
    };
    let run = run::insert(tx, &wanted, 1)?;
    let with = run::Beginning {
        epoch: 7,
        wiring: &wiring(),
        fingerprints: 0,
        content: 0,
    };
    run::begin(tx, run.number, with)?;
    run::set_state(tx, run.number, State::Running, "")?;
    completion::expect(tx, &run.thread, [("load", "flow:tg:text:w:f")], 1)?;
    Ok(run)
}

fn entry(run: &Run, processor: &str, record: &str, outcome: &str) -> RunTallyEntry {
    RunTallyEntry {
        run: run.thread.clone(),
        record: record.into(),
        subscription: format!("{processor}--w--f--input"),
        subject: format!("about {record}"),
        outcome: outcome.into(),
        detail: if outcome == "failed" { "why" } else { "" }.into(),
        ..RunTallyEntry::default()
    }
}

fn cut(run: &Run, chunks: &[&str]) -> RunTallyEntry {
    let written = chunks.iter().map(|chunk| RunWritten {
        topic: "flow:tg:chunk:w:f".into(),
        record: (*chunk).into(),
    });
    RunTallyEntry {
        written: written.collect(),
        effects: BTreeMap::from([("chunks".into(), chunks.len() as i64)]),
        ..entry(run, "chunker", "load", "ok")
    }
}

fn counts(conn: &Connection, run: &Run) -> (i64, i64, i64) {
    let Counts {
        expected,
        settled,
        failed,
    } = run::get(conn, run.number).unwrap().unwrap().counts;
    (expected, settled, failed)
}

async fn in_books<T: Send + 'static>(
    f: impl FnOnce(&Transaction<'_>) -> Result<T, StorageError> + Send + 'static,
) -> T {
    let db = Database::in_memory(MIGRATIONS).unwrap();
    db.write(f).await.unwrap()
}

#[tokio::test]
async fn nothing_counts_twice_in_whatever_order_it_is_told() {
    in_books(|tx| {
        let run = begin(tx, "p")?;
        assert_eq!(counts(tx, &run), (1, 0, 0));
        // Chunks are handled before anybody hears that they were written.
        let early = entry(&run, "kw-index", "r1", "ok");
        completion::apply(tx, &[early.clone(), early.clone()], 2)?;
        assert_eq!(counts(tx, &run), (1, 0, 0));
        let load = cut(&run, &["r1", "r2"]);
        assert_eq!(
            completion::apply(tx, &[load.clone(), early], 3)?,
            [run.number]
        );
        assert_eq!(counts(tx, &run), (5, 2, 0));
        completion::apply(tx, &[load], 4)?;
        let rest = [
            entry(&run, "document-embeddings", "r1", "ok"),
            entry(&run, "document-embeddings", "r2", "ok"),
            entry(&run, "kw-index", "r2", "ok"),
        ];
        completion::apply(tx, &rest, 5)?;
        assert_eq!(counts(tx, &run), (5, 5, 0));
        let effects = report::effects(tx, run.number)?;
        assert_eq!((effects.len(), effects[0].made), (1, 2));
        let readings = report::readings(tx, run.number)?;
        assert_eq!((readings[1].expected, readings[1].done), (2, 2));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_was_written_may_be_told_in_parts() {
    in_books(|tx| {
        let run = begin(tx, "p")?;
        let part = |chunk: &str| RunTallyEntry {
            outcome: "part".into(),
            effects: Default::default(),
            ..cut(&run, &[chunk])
        };
        completion::apply(tx, &[part("r1")], 2)?;
        // The record itself, and two readers of the chunk.
        assert_eq!(counts(tx, &run), (3, 0, 0));
        completion::apply(tx, &[part("r1")], 3)?;
        completion::apply(tx, &[cut(&run, &["r2"])], 4)?;
        assert_eq!(counts(tx, &run), (5, 1, 0));
        completion::apply(tx, &[part("r1")], 5)?;
        assert_eq!(counts(tx, &run), (5, 1, 0));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_failure_may_be_made_good() {
    in_books(|tx| {
        let run = begin(tx, "p")?;
        completion::apply(tx, &[cut(&run, &["r1"])], 2)?;
        let failed = entry(&run, "kw-index", "r1", "failed");
        completion::apply(tx, &[failed.clone(), failed.clone()], 3)?;
        assert_eq!(counts(tx, &run), (3, 2, 1));
        let faults = report::faults(tx, run.number, 10)?;
        assert_eq!(faults.len(), 1);
        assert_eq!(
            (faults[0].subject.as_str(), faults[0].processor.as_str()),
            ("about r1", "kw-index")
        );
        let open = report::open_pairs(tx, run.number, 10)?;
        let key = crate::engine::ids::record("r1");
        assert_eq!(open.len(), 2);
        let kw = |pair: &&crate::store::runs::Pair| pair.subscription == "kw-index--w--f--input";
        assert_eq!(open.iter().find(kw).unwrap().record, key);
        retry::reopen(tx, run.number, &key, "kw-index--w--f--input")?;
        assert_eq!(counts(tx, &run), (3, 1, 0));
        retry::close(tx, run.number, &key, "kw-index--w--f--input", "no")?;
        assert_eq!(counts(tx, &run), (3, 2, 1));
        retry::reopen(tx, run.number, &key, "kw-index--w--f--input")?;
        completion::apply(tx, &[failed], 4)?;
        completion::apply(tx, &[entry(&run, "kw-index", "r1", "ok")], 5)?;
        assert_eq!(counts(tx, &run), (3, 2, 0));
        assert!(report::faults(tx, run.number, 10)?.is_empty());
        let readings = report::readings(tx, run.number)?;
        assert_eq!((readings[1].failed, readings[1].done), (0, 1));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn strangers_are_heard_and_other_runs_are_not() {
    in_books(|tx| {
        let run = begin(tx, "p")?;
        let remark = RunTallyEntry {
            detail: "left something out".into(),
            effects: BTreeMap::from([("rows".into(), 3)]),
            ..entry(&run, "somebody", "load", "ok")
        };
        completion::apply(tx, &[remark], 2)?;
        assert_eq!(counts(tx, &run), (1, 0, 0));
        assert_eq!(report::effects(tx, run.number)?[0].stored, 3);
        let said = report::faults(tx, run.number, 10)?;
        assert_eq!(said[0].message, "left something out");
        let nobody = RunTallyEntry {
            run: "run.0.ffffffffffffffffffffffffffffffff".into(),
            ..cut(&run, &["x"])
        };
        assert!(completion::apply(tx, &[nobody], 3)?.is_empty());
        run::finish(tx, run.number, "{}")?;
        assert!(completion::apply(tx, &[cut(&run, &["x"])], 4)?.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn runs_of_one_document_and_collection_wait_for_each_other() {
    in_books(|tx| {
        let first = begin(tx, "p1")?;
        let second = begin(tx, "p2")?;
        assert!(!run::has_to_wait(tx, &first)? && run::has_to_wait(tx, &second)?);
        run::set_state(tx, first.number, State::Failed, "")?;
        assert!(!run::has_to_wait(tx, &second)?);
        assert_ne!(first.thread, second.thread);
        assert!(tg_runs::JobId::parse(&first.thread).is_some());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn rows_of_the_first_release_are_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows");
    let hash = tg_storage::blob::BlobId::of(b"x");
    let old = Database::open(&path, &MIGRATIONS[..1], Durability::Process).unwrap();
    old.write(move |tx| {
        for (id, parent) in [("d", ""), ("e", "d")] {
            tx.execute(
                "INSERT INTO document (workspace, id, time, kind, title, comments, metadata, tags, parent,
                 type, content) VALUES ('w', ?1, 5, 'text/plain', 't', '', '[]', '[\"a\"]', ?2, 'source', ?3)",
                [id, parent, &hash.to_string()],
            )?;
        }
        Ok(())
    })
    .await
    .unwrap();
    drop(old);
    let new = Database::open(&path, MIGRATIONS, Durability::Process).unwrap();
    new.read(move |conn| {
        let walk = Listing {
            which: Which::Everything,
            collection: String::new(),
            id: String::new(),
            after: 0,
            most: 10,
        };
        let all: Vec<_> = document::walk(conn, "w", &walk)?
            .into_iter()
            .map(|(_, document)| document)
            .collect();
        assert_eq!((all.len(), all[0].time, all[0].tags.len()), (2, 5, 1));
        let stored = document::get(conn, "w", "e")?.unwrap();
        let place = content::place(conn, stored.content)?.unwrap();
        assert_eq!((place.hash, place.size, place.body), (hash, None, None));
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_run_that_ends_late_takes_nothing_from_the_next() {
    let gone = in_books(|tx| {
        let target = Target {
            workspace: "w".to_owned(),
            document: "urn:d".to_owned(),
            flow: "f".to_owned(),
            collection: "c".to_owned(),
            generation: 0,
        };
        let number = children::number(tx, &target)?;
        let see = |run, child| {
            let seen = children::Seen {
                target: number,
                child,
                run,
                fingerprints: 0,
                says: 0,
                same: true,
                told_apart: false,
            };
            children::see(tx, &mut fingerprints::Known::new(tx), seen)
        };
        see(1, "urn:1")?;
        see(1, "urn:2")?;
        see(2, "urn:1")?;
        see(2, "urn:3")?;
        see(1, "urn:1")?;
        (1..=3)
            .map(|run| children::gone(tx, &target, run))
            .collect::<Result<Vec<_>, _>>()
    })
    .await;
    assert_eq!(gone[0], [""; 0]);
    assert_eq!(gone[1], ["urn:2"]);
    assert_eq!(gone[2], ["urn:1", "urn:2", "urn:3"]);
}
