//! Where a session goes on that was shortened into another one.

use crate::error::SessionsError;
use crate::store::{LineageStore, Session, SessionStore, SqliteSessions, SummaryRow};

/// Sessions of a chain that are looked at to find the one that goes on.
const CHAIN: usize = 1_000;

/// Where an archived session continues: in the first one of its chain that was not archived.
pub(super) async fn continued(
    store: &SqliteSessions,
    workspace: &str,
    session: Session,
) -> Result<SessionsError, SessionsError> {
    let mut next = session.successor;
    for _ in 0..CHAIN {
        let Some(id) = next else {
            break;
        };
        let Some(found) = store.session(workspace, &id).await? else {
            break;
        };
        if found.archived.is_none() {
            return Ok(SessionsError::Archived(found.id));
        }
        next = found.successor;
    }
    Ok(SessionsError::Gone)
}

/// The summary with which an earlier attempt at a request shortened a session: the same question did, or the session that
/// continues it has the turn of the request.
pub(super) async fn shortened_by(
    store: &SqliteSessions,
    (workspace, session): (&str, &str),
    (question, request): (&str, &str),
) -> Result<Option<SummaryRow>, SessionsError> {
    for one in store.summaries(workspace, session).await? {
        if one.request == question {
            return Ok(Some(one));
        }
        let Some(next) = &one.successor else {
            continue;
        };
        if store.begun(workspace, next, request).await?.is_some() {
            return Ok(Some(one));
        }
    }
    Ok(None)
}
