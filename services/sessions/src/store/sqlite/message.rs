//! Rows of messages: added, and never changed.

use tg_collections::Quota;
use tg_schemas::operations::{ToolCall, Usage};
use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::{part, room};
use crate::store::{Answer, Asked, Began, Finished, Message, Page, Role, Span, Step, Unasked};

const COLUMNS: &str = "m.seq, m.id, m.at, m.role, coalesce(m.content, part.content, ''), m.tool_name, m.tool_calls, \
                       m.usage, m.synthetic, m.compacted, m.result";
/// The same for what an agent is sent, without what a message used.
const OF_PAST: &str = "m.seq, m.id, m.at, m.role, coalesce(m.content, part.content, ''), m.tool_name, m.tool_calls, \
                       NULL, m.synthetic, m.compacted, m.result";
const FROM: &str =
    "message m JOIN session s ON s.number = m.session LEFT JOIN part ON part.hash = m.part";

fn read(row: &Row<'_>) -> tg_storage::rusqlite::Result<Message> {
    let calls: Option<String> = row.get(6)?;
    let usage: Option<String> = row.get(7)?;
    let json = |text: String| serde_json::from_slice::<Vec<ToolCall>>(text.as_bytes()).ok();
    let used = |text: String| serde_json::from_slice::<Usage>(text.as_bytes()).ok();
    Ok(Message {
        seq: row.get(0)?,
        id: row.get(1)?,
        at: row.get(2)?,
        role: Role::parse(&row.get::<_, String>(3)?).unwrap_or(Role::System),
        content: row.get(4)?,
        tool_name: row.get(5)?,
        tool_calls: calls.and_then(json).unwrap_or_default(),
        usage: usage.and_then(used),
        synthetic: row.get(8)?,
        compacted: row.get(9)?,
        result: row.get(10)?,
    })
}

/// What the row of a session says to whoever adds a message.
struct Place {
    session: i64,
    seq: i64,
    at: i64,
}

/// Where the next message of a session goes. Later ones are later: two of one millisecond would have no order.
fn next(tx: &Transaction<'_>, session: &str, at: i64) -> Result<Option<Place>, StorageError> {
    let mut query =
        tx.prepare_cached("SELECT number, messages, last_at FROM session WHERE id = ?1")?;
    let row = query.query_row([session], |row| {
        let last: i64 = row.get(2)?;
        Ok(Place {
            session: row.get(0)?,
            seq: row.get::<_, i64>(1)? + 1,
            at: at.max(last + 1),
        })
    });
    Ok(row.optional()?)
}

/// Characters of a text.
pub(super) fn characters(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

/// Bytes of a text.
pub(super) fn bytes(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// The session has one message more, with a text and what else it says; and other last calls of tools, where there are any.
fn count(
    tx: &Transaction<'_>,
    place: &Place,
    (text, more): (&str, &str),
    loop_window: Option<&str>,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "UPDATE session SET messages = ?2, live = live + 1, characters = characters + ?4, last_at = ?3,
                            updated = max(updated, ?3), bytes = bytes + ?5,
                            loop_window = coalesce(?6, loop_window), said_bytes = said_bytes + ?7
         WHERE number = ?1",
    )?
    .execute(params![
        place.session,
        place.seq,
        place.at,
        characters(text),
        room::row(&[text, more]),
        loop_window,
        bytes(text)
    ])?;
    Ok(())
}

/// The two messages of a tool that was called on the way to an answer. The call itself is no text.
fn step(tx: &Transaction<'_>, session: &str, turn: i64, one: &Step) -> Result<(), StorageError> {
    let calls = serde_json::to_string(&[&one.call]).ok();
    let rows = [
        (Role::Agent, &one.ids[0], "", None, calls),
        (
            Role::Tool,
            &one.ids[1],
            one.result.as_str(),
            Some(&one.call.name),
            None,
        ),
    ];
    for (role, id, text, tool, calls) in rows {
        let Some(place) = next(tx, session, 0)? else {
            return Ok(());
        };
        let (content, hash) = part::keep(tx, text)?;
        tx.prepare_cached(
            "INSERT INTO message (session, seq, id, at, role, content, part, tool_name, tool_calls, turn)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            place.session,
            place.seq,
            id,
            place.at,
            role.as_str(),
            content,
            hash,
            tool,
            calls,
            turn
        ])?;
        let more = calls.as_deref().unwrap_or_default();
        count(tx, &place, (text, more), None)?;
    }
    Ok(())
}

/// The turn that a request began in a session with this row number.
fn known(conn: &Connection, session: i64, request: &str) -> Result<Option<Began>, StorageError> {
    let sql = format!("SELECT {COLUMNS} FROM {FROM} WHERE m.session = ?1 AND m.request = ?2");
    let message = conn
        .prepare_cached(&sql)?
        .query_row(params![session, request], read)
        .optional()?;
    let Some(message) = message else {
        return Ok(None);
    };
    let finished = finished(conn, session, message.seq)?;
    Ok(Some(Began {
        turn: message.seq,
        message,
        finished,
    }))
}

/// The turn that a request began.
pub(super) fn begun(
    conn: &Connection,
    session: &str,
    request: &str,
) -> Result<Option<Began>, StorageError> {
    let number: Option<i64> = conn
        .prepare_cached("SELECT number FROM session WHERE id = ?1")?
        .query_row([session], |row| row.get(0))
        .optional()?;
    match number {
        Some(number) => known(conn, number, request),
        None => Ok(None),
    }
}

/// The newest message that the user of a session sent.
pub(super) fn last_asked(conn: &Connection, session: &str) -> Result<Option<String>, StorageError> {
    let sql = "SELECT m.id FROM message m JOIN session s ON s.number = m.session
               WHERE s.id = ?1 AND m.role = ?2 AND m.synthetic = 0 ORDER BY m.seq DESC LIMIT 1";
    let mut query = conn.prepare_cached(sql)?;
    let found = query.query_row(params![session, Role::User.as_str()], |row| row.get(0));
    Ok(found.optional()?)
}

pub(super) fn begin(
    tx: &Transaction<'_>,
    session: &str,
    asked: &Asked,
    quota: &Quota,
) -> Result<Option<Began>, StorageError> {
    let Some(place) = next(tx, session, asked.at)? else {
        return Ok(None);
    };
    if let Some(known) = known(tx, place.session, &asked.request)? {
        return Ok(Some(known));
    }
    room::check(tx, quota, 0, room::row(&[&asked.content]))?;
    let (content, hash) = part::keep(tx, &asked.content)?;
    tx.prepare_cached(
        "INSERT INTO message (session, seq, id, at, role, content, part, request, turn)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?2)",
    )?
    .execute(params![
        place.session,
        place.seq,
        asked.id,
        place.at,
        Role::User.as_str(),
        content,
        hash,
        asked.request
    ])?;
    count(tx, &place, (asked.content.as_str(), ""), None)?;
    Ok(Some(Began {
        turn: place.seq,
        message: Message {
            seq: place.seq,
            id: asked.id.clone(),
            at: place.at,
            role: Role::User,
            content: asked.content.clone(),
            tool_name: None,
            tool_calls: Vec::new(),
            usage: None,
            synthetic: false,
            compacted: None,
            result: None,
        },
        finished: None,
    }))
}

/// The answer of a turn.
fn finished(conn: &Connection, session: i64, turn: i64) -> Result<Option<Finished>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM {FROM} WHERE m.session = ?1 AND m.turn = ?2 AND m.result IS NOT NULL"
    );
    let found = conn
        .prepare_cached(&sql)?
        .query_row([session, turn], |row| {
            Ok(Finished {
                message: read(row)?,
                result: row.get(10)?,
            })
        });
    Ok(found.optional()?)
}

pub(super) fn finish(
    tx: &Transaction<'_>,
    session: &str,
    turn: i64,
    answer: &Answer,
) -> Result<Option<Finished>, StorageError> {
    let Some(mut place) = next(tx, session, answer.at)? else {
        return Ok(None);
    };
    if let Some(known) = finished(tx, place.session, turn)? {
        return Ok(Some(known));
    }
    for one in &answer.steps {
        step(tx, session, turn, one)?;
    }
    if !answer.steps.is_empty() {
        let Some(after) = next(tx, session, answer.at)? else {
            return Ok(None);
        };
        place = after;
    }
    let (content, hash) = part::keep(tx, &answer.content)?;
    tx.prepare_cached(
        "INSERT INTO message (session, seq, id, at, role, content, part, usage, turn, result)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        place.session,
        place.seq,
        answer.id,
        place.at,
        Role::Agent.as_str(),
        content,
        hash,
        serde_json::to_string(&answer.usage).ok(),
        turn,
        answer.result
    ])?;
    let texts = (answer.content.as_str(), answer.result.as_str());
    count(tx, &place, texts, Some(answer.loop_window.as_str()))?;
    if answer.to_search {
        // The message of the user has the number of the turn. Only facts about a user who has a name are kept.
        tx.prepare_cached(
            "INSERT INTO unsearched (session, seq) SELECT number, ?2 FROM session WHERE number = ?1 AND user <> ''",
        )?
        .execute([place.session, turn])?;
    }
    Ok(Some(Finished {
        message: Message {
            seq: place.seq,
            id: answer.id.clone(),
            at: place.at,
            role: Role::Agent,
            content: answer.content.clone(),
            tool_name: None,
            tool_calls: Vec::new(),
            usage: Some(answer.usage),
            synthetic: false,
            compacted: None,
            result: Some(answer.result.clone()),
        },
        result: answer.result.clone(),
    }))
}

/// Adds a message of the agent that answers none: it is a turn of its own.
pub(super) fn announce(
    tx: &Transaction<'_>,
    session: &str,
    said: &Unasked,
    quota: &Quota,
) -> Result<bool, StorageError> {
    let Some(place) = next(tx, session, said.at)? else {
        return Ok(false);
    };
    let known: Option<i64> = tx
        .prepare_cached("SELECT seq FROM message WHERE id = ?1")?
        .query_row([&said.id], |row| row.get(0))
        .optional()?;
    if known.is_some() {
        return Ok(true);
    }
    room::check(tx, quota, 0, room::row(&[&said.content]))?;
    let (content, hash) = part::keep(tx, &said.content)?;
    tx.prepare_cached(
        "INSERT INTO message (session, seq, id, at, role, content, part, synthetic, turn)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?2)",
    )?
    .execute(params![
        place.session,
        place.seq,
        said.id,
        place.at,
        Role::Agent.as_str(),
        content,
        hash
    ])?;
    count(tx, &place, (said.content.as_str(), ""), None)?;
    Ok(true)
}

/// Read from the beginning on, and no further than there is room.
pub(super) fn list(
    conn: &Connection,
    session: &str,
    span: &Span,
) -> Result<Page<Message>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM {FROM} WHERE s.id = ?1 AND m.seq > ?2 AND (NOT ?3 OR m.compacted IS NULL)
           AND (NOT ?5 OR m.role <> 'tool' AND m.tool_calls IS NULL)
         ORDER BY m.seq LIMIT ?4"
    );
    // One more tells whether there are more.
    let most = i64::try_from(span.most.saturating_add(1)).unwrap_or(i64::MAX);
    let mut query = conn.prepare_cached(&sql)?;
    let mut rows = query.query(params![session, span.after, span.live, most, span.plain])?;
    let (mut page, mut bytes) = (Page::default(), 0_usize);
    while let Some(row) = rows.next()? {
        if page.items.len() == span.most || bytes >= span.bytes {
            page.more = true;
            break;
        }
        let message = read(row)?;
        bytes = bytes.saturating_add(message.bytes());
        page.items.push(message);
    }
    Ok(page)
}

/// Read from the end on, and no further than there is room.
pub(super) fn newest(
    conn: &Connection,
    session: &str,
    most: usize,
    bytes: usize,
) -> Result<Vec<Message>, StorageError> {
    let sql = format!("SELECT {COLUMNS} FROM {FROM} WHERE s.id = ?1 ORDER BY m.seq DESC LIMIT ?2");
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut query = conn.prepare_cached(&sql)?;
    let mut rows = query.query(params![session, most])?;
    let (mut found, mut room) = (Vec::new(), bytes);
    while let Some(row) = rows.next()? {
        let message = read(row)?;
        room = room.saturating_sub(message.bytes());
        found.push(message);
        if room == 0 {
            break;
        }
    }
    found.reverse();
    Ok(found)
}

/// The same of what an agent is told.
pub(super) fn past(
    conn: &Connection,
    session: &str,
    (after, before): (i64, i64),
    bytes: usize,
) -> Result<Vec<Message>, StorageError> {
    let sql = format!(
        "SELECT {OF_PAST} FROM {FROM} WHERE s.id = ?1 AND m.seq < ?2 AND m.seq > ?3 AND m.compacted IS NULL
         ORDER BY m.seq DESC"
    );
    let mut query = conn.prepare_cached(&sql)?;
    let mut rows = query.query(params![session, before, after])?;
    let (mut found, mut room) = (Vec::new(), bytes);
    while let Some(row) = rows.next()? {
        let message = read(row)?;
        match room.checked_sub(message.said_bytes()) {
            Some(left) => room = left,
            None => break,
        }
        found.push(message);
    }
    found.reverse();
    Ok(found)
}
