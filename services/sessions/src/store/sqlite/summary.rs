//! Rows of summaries, and the sessions that they make.

use tg_collections::Quota;
use tg_schemas::limits;
use tg_storage::rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::{message, part, room, session};
use crate::store::{Message, NewSession, Role, Session, Shortening, Span, SummaryKind, SummaryRow};

/// Messages that are copied at once.
const COPIED: usize = 1_000;

const COLUMNS: &str = "y.id, s.id, y.successor, y.kind, y.tier, y.content, y.model, y.prompt, y.mask, y.first_seq, y.last_seq, \
                       y.messages, y.tokens_before, y.tokens_after, y.cause, y.request, y.at";

fn read(row: &Row<'_>) -> tg_storage::rusqlite::Result<SummaryRow> {
    Ok(SummaryRow {
        id: row.get(0)?,
        session: row.get(1)?,
        successor: row.get(2)?,
        kind: SummaryKind::parse(&row.get::<_, String>(3)?),
        tier: row.get(4)?,
        text: row.get(5)?,
        model: row.get(6)?,
        prompt: row.get(7)?,
        mask: row.get(8)?,
        first: row.get(9)?,
        last: row.get(10)?,
        count: row.get(11)?,
        before: row.get(12)?,
        after: row.get(13)?,
        trigger: row.get(14)?,
        request: row.get(15)?,
        at: row.get(16)?,
    })
}

/// The row number of a session.
fn number(conn: &Connection, id: &str) -> Result<Option<i64>, StorageError> {
    let mut query = conn.prepare_cached("SELECT number FROM session WHERE id = ?1")?;
    Ok(query.query_row([id], |row| row.get(0)).optional()?)
}

pub(super) fn add(tx: &Transaction<'_>, new: &SummaryRow) -> Result<bool, StorageError> {
    let Some(number) = number(tx, &new.session)? else {
        return Ok(false);
    };
    tx.prepare_cached(
        "INSERT INTO summary (id, session, successor, kind, tier, content, model, prompt, mask, first_seq, last_seq, messages,
                              tokens_before, tokens_after, cause, request, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?
    .execute(params![
        new.id,
        number,
        new.successor,
        new.kind.as_str(),
        new.tier,
        new.text,
        new.model,
        new.prompt,
        new.mask,
        new.first,
        new.last,
        new.count,
        new.before,
        new.after,
        new.trigger,
        new.request,
        new.at
    ])?;
    // Under the id by which an earlier one was taken back, this one is taken back, too.
    room::forget_done(tx, &new.session)?;
    Ok(true)
}

pub(super) fn list(conn: &Connection, session: &str) -> Result<Vec<SummaryRow>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM summary y JOIN session s ON s.number = y.session WHERE s.id = ?1 ORDER BY y.at, y.last_seq"
    );
    query_rows(conn, &sql, params![session], read)
}

/// However many there are, one is read.
pub(super) fn newest_in_place(
    conn: &Connection,
    session: &str,
) -> Result<Option<SummaryRow>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM summary y JOIN session s ON s.number = y.session WHERE s.id = ?1 AND y.kind = 'in_place'
         ORDER BY y.at DESC, y.last_seq DESC LIMIT 1"
    );
    Ok(conn
        .prepare_cached(&sql)?
        .query_row([session], read)
        .optional()?)
}

pub(super) fn in_place(
    conn: &Connection,
    session: &str,
    after: i64,
    most: usize,
) -> Result<Vec<SummaryRow>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM summary y JOIN session s ON s.number = y.session
         WHERE s.id = ?1 AND y.kind = 'in_place' AND y.last_seq > ?2 ORDER BY y.last_seq LIMIT ?3"
    );
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    query_rows(conn, &sql, params![session, after, most], read)
}

pub(super) fn one_in_place(
    conn: &Connection,
    session: &str,
    id: &str,
) -> Result<Option<SummaryRow>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM summary y JOIN session s ON s.number = y.session
         WHERE s.id = ?1 AND y.id = ?2 AND y.kind = 'in_place'"
    );
    Ok(conn
        .prepare_cached(&sql)?
        .query_row([session, id], read)
        .optional()?)
}

pub(super) fn take_back(
    tx: &Transaction<'_>,
    session: &str,
    request: &str,
) -> Result<bool, StorageError> {
    room::once(tx, request, session, || {
        let Some(newest) = newest_in_place(tx, session)? else {
            return Ok(false);
        };
        let gone = tx
            .prepare_cached("DELETE FROM summary WHERE id = ?1")?
            .execute([&newest.id])?;
        Ok(gone > 0)
    })
}

/// Bytes that a message counts.
fn size(one: &Message) -> i64 {
    room::row(&[]).saturating_add(i64::try_from(one.bytes()).unwrap_or(i64::MAX))
}

/// Writes messages into a session that has none.
struct Filling<'a> {
    tx: &'a Transaction<'a>,
    number: i64,
    messages: i64,
    characters: i64,
    said_bytes: i64,
    bytes: i64,
    last_at: i64,
}

impl Filling<'_> {
    fn add(&mut self, one: &Message, origin: Option<&str>) -> Result<(), StorageError> {
        self.messages += 1;
        self.last_at = one.at.max(self.last_at + 1);
        self.characters += message::characters(&one.content);
        self.said_bytes += message::bytes(&one.content);
        self.bytes += size(one);
        let (content, hash) = part::keep(self.tx, &one.content)?;
        let calls = match one.tool_calls.is_empty() {
            true => None,
            false => serde_json::to_string(&one.tool_calls).ok(),
        };
        let usage = one.usage.and_then(|used| serde_json::to_string(&used).ok());
        // No turn of this session: it has the numbers below zero.
        self.tx
            .prepare_cached(
                "INSERT INTO message (session, seq, id, at, role, content, part, tool_name, tool_calls, usage, synthetic,
                                      turn, result, origin)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            )?
            .execute(params![
                self.number,
                self.messages,
                one.id,
                self.last_at,
                one.role.as_str(),
                content,
                hash,
                one.tool_name,
                calls,
                usage,
                one.synthetic,
                -self.messages,
                one.result,
                origin
            ])?;
        Ok(())
    }

    fn done(self) -> Result<(), StorageError> {
        self.tx
            .prepare_cached(
                "UPDATE session SET messages = ?2, live = ?2, characters = ?3, last_at = ?4, bytes = bytes + ?5,
                                    said_bytes = ?6
                 WHERE number = ?1",
            )?
            .execute(params![
                self.number,
                self.messages,
                self.characters,
                self.last_at,
                self.bytes,
                self.said_bytes
            ])?;
        Ok(())
    }
}

/// Counts what of a session no summary replaced.
fn recount(tx: &Transaction<'_>, number: i64) -> Result<(), StorageError> {
    tx.prepare_cached(
        "UPDATE session SET (live, characters, said_bytes) =
           (SELECT count(*), coalesce(sum(length(coalesce(m.content, part.content, ''))), 0),
                   coalesce(sum(length(CAST(coalesce(m.content, part.content, '') AS BLOB))), 0)
            FROM message m LEFT JOIN part ON part.hash = m.part WHERE m.session = ?1 AND m.compacted IS NULL)
         WHERE number = ?1",
    )?
    .execute([number])?;
    Ok(())
}

pub(super) fn shorten(
    tx: &Transaction<'_>,
    new: &Shortening,
    quota: &Quota,
) -> Result<Option<Session>, StorageError> {
    let (source, at) = (&new.summary.session, new.summary.at);
    let known = session::get(tx, source)?.filter(|known| known.archived.is_none());
    let (Some(known), Some(number), Some(successor)) =
        (known, number(tx, source)?, &new.summary.successor)
    else {
        return Ok(None);
    };
    // What fills its model goes on and is never refused; whoever wants a session shortened may be.
    let quota = match new.summary.trigger.as_str() {
        "manual" => *quota,
        _ => Quota::UNLIMITED,
    };
    session::create(
        tx,
        &NewSession {
            id: successor.clone(),
            owner: known.owner,
            title: known.title,
            knowledge: known.knowledge,
            strategy: known.strategy,
            keep: known.keep,
            mask: known.mask,
            request: new.summary.request.clone(),
            at,
        },
        &quota,
        0,
    )?;
    tx.prepare_cached("UPDATE session SET parent = ?2, loop_window = ?3 WHERE id = ?1")?
        .execute(params![successor, source, known.loop_window])?;
    let mut filling = Filling {
        tx,
        number: self::number(tx, successor)?.ok_or(StorageError::Missing)?,
        messages: 0,
        characters: 0,
        said_bytes: 0,
        bytes: 0,
        last_at: at - 1,
    };
    let mut ids = new.ids.iter();
    let mut id = || ids.next().cloned().ok_or(StorageError::Missing);
    filling.add(&opening(id()?, &new.opening, at), None)?;
    let mut span = Span {
        after: new.first_kept - 1,
        live: true,
        plain: false,
        most: COPIED,
        bytes: limits::PAGE_BYTES,
    };
    loop {
        let kept = message::list(tx, source, &span)?;
        for one in kept.items {
            span.after = one.seq;
            let origin = one.id.clone();
            let copy = Message {
                id: id()?,
                at,
                ..one
            };
            filling.add(&copy, Some(&origin))?;
        }
        if !kept.more {
            break;
        }
    }
    let after = filling.characters / 4;
    room::check(tx, &quota, 0, filling.bytes)?;
    filling.done()?;
    add(
        tx,
        &SummaryRow {
            after,
            ..new.summary.clone()
        },
    )?;
    tx.prepare_cached(
        "UPDATE message SET compacted = ?3 WHERE session = ?1 AND seq < ?2 AND compacted IS NULL",
    )?
    .execute(params![number, new.first_kept, at])?;
    tx.prepare_cached(
        "UPDATE session SET archived = ?2, successor = ?3, updated = max(updated, ?2) WHERE number = ?1",
    )?
    .execute(params![number, at, successor])?;
    recount(tx, number)?;
    session::get(tx, successor)
}

/// The message that the successor begins with.
fn opening(id: String, text: &str, at: i64) -> Message {
    Message {
        seq: 1,
        id,
        at,
        role: Role::Agent,
        content: text.to_owned(),
        tool_name: None,
        tool_calls: Vec::new(),
        usage: None,
        synthetic: true,
        compacted: None,
        result: None,
    }
}

pub(super) fn restore(
    tx: &Transaction<'_>,
    id: &str,
    request: &str,
) -> Result<Option<Session>, StorageError> {
    let known = session::get(tx, id)?;
    if room::is_done(tx, request, id)? {
        return Ok(known);
    }
    let known = known.and_then(|known| Some((known.archived?, known.successor?)));
    let (Some((archived, successor)), Some(number)) = (known, number(tx, id)?) else {
        return Ok(None);
    };
    let own: i64 = tx
        .prepare_cached(
            "SELECT count(*) FROM message m JOIN session s ON s.number = m.session WHERE s.id = ?1 AND m.turn > 0",
        )?
        .query_row([&successor], |row| row.get(0))?;
    let next = session::get(tx, &successor)?;
    if own > 0 || next.is_none_or(|next| next.archived.is_some()) {
        return Ok(None);
    }
    tx.prepare_cached("DELETE FROM summary WHERE session = ?1 AND successor = ?2")?
        .execute(params![number, successor])?;
    session::delete(tx, &successor)?;
    tx.prepare_cached("UPDATE message SET compacted = NULL WHERE session = ?1 AND compacted = ?2")?
        .execute(params![number, archived])?;
    tx.prepare_cached("UPDATE session SET archived = NULL WHERE number = ?1")?
        .execute([number])?;
    recount(tx, number)?;
    room::note_done(tx, request, id)?;
    session::get(tx, id)
}

pub(super) fn import(
    tx: &Transaction<'_>,
    new: &NewSession,
    messages: &[Message],
    quota: &Quota,
) -> Result<Session, StorageError> {
    if let Some(known) = session::get(tx, &new.id)? {
        return Ok(known);
    }
    session::create(tx, new, quota, messages.iter().map(size).sum())?;
    let mut filling = Filling {
        tx,
        number: number(tx, &new.id)?.ok_or(StorageError::Missing)?,
        messages: 0,
        characters: 0,
        said_bytes: 0,
        bytes: 0,
        last_at: new.at - 1,
    };
    for one in messages {
        filling.add(one, None)?;
    }
    filling.done()?;
    session::get(tx, &new.id)?.ok_or(StorageError::Missing)
}
