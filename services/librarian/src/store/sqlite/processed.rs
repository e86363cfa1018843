//! What documents were processed into, and under which fingerprints.

use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, params};

use super::fingerprints::Known;
use super::{children, content, document, run};
use crate::engine::ids;
use crate::store::runs::{ChunksMade, Processed, Run, Selector, Target};

struct Noted {
    number: i64,
    target: Target,
    fingerprints: i64,
    content: i64,
}

/// At most `most` of what a selector chooses after a number, in collections that are there.
pub(crate) fn list(
    conn: &Connection,
    workspace: &str,
    of: &Selector,
    after: i64,
    most: u32,
) -> Result<Vec<Processed>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT target.number, target.document, target.flow, target.collection, target.incarnation,
                target.fingerprints, target.content
         FROM target JOIN collection ON collection.workspace = target.workspace
              AND collection.id = target.collection AND collection.incarnation = target.incarnation
              AND collection.deleted = 0
         WHERE target.workspace = ?1 AND target.number > ?2 AND (?3 = '' OR target.document = ?3)
         AND (?4 = '' OR target.flow = ?4) AND (?5 = '' OR target.collection = ?5)
         ORDER BY target.number LIMIT ?6",
    )?;
    let values = params![workspace, after, of.document, of.flow, of.collection, most];
    let rows = query.query_map(values, |row| {
        Ok(Noted {
            number: row.get(0)?,
            target: Target {
                workspace: workspace.to_owned(),
                document: row.get(1)?,
                flow: row.get(2)?,
                collection: row.get(3)?,
                generation: row.get(4)?,
            },
            fingerprints: row.get(5)?,
            content: row.get(6)?,
        })
    })?;
    let mut known = Known::new(conn);
    let mut found = Vec::new();
    for noted in rows {
        found.push(processed(conn, &mut known, noted?)?);
    }
    Ok(found)
}

/// Whether a run is the latest of its target and its document still says what the run read. If not, its effect is gone: the
/// same request is not a repetition, and must not succeed without doing anything. A run that waits has read nothing yet.
pub(crate) fn is_current(conn: &Connection, run: &Run) -> Result<bool, StorageError> {
    let latest = run::latest(conn, &run.target)?;
    if latest.is_none_or(|latest| latest.number != run.number) {
        return Ok(false);
    }
    let stored = document::get(conn, &run.target.workspace, &run.target.document)?;
    Ok(run.content == 0 || run.content == says(conn, stored.as_ref())?)
}

/// What a document says, as a number; 0 if it is not there.
fn says(conn: &Connection, stored: Option<&document::Stored>) -> Result<i64, StorageError> {
    let hash = match stored {
        Some(stored) => content::hash(conn, stored.content)?,
        None => None,
    };
    Ok(hash.map_or(0, |hash| ids::fingerprint(&hash.to_string())))
}

fn processed(
    conn: &Connection,
    known: &mut Known<'_>,
    of: Noted,
) -> Result<Processed, StorageError> {
    let stored = document::get(conn, &of.target.workspace, &of.target.document)?;
    let says = says(conn, stored.as_ref())?;
    let mut chunks = Vec::new();
    for (fingerprints, done, number) in children::chunks(conn, &of.target.workspace, of.number)? {
        chunks.push(ChunksMade {
            under: known.get(fingerprints)?.map(|known| (*known).clone()),
            done,
            number,
        });
    }
    Ok(Processed {
        number: of.number,
        fingerprints: known.get(of.fingerprints)?.map(|known| (*known).clone()),
        document: stored.map(|stored| stored.document.kind),
        same_content: of.content == 0 || of.content == says,
        chunks,
        latest: run::latest(conn, &of.target)?,
        target: of.target,
    })
}
