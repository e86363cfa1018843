//! Cursors of listings: the key of the last entry seen, so that entries which come or go meanwhile neither repeat others nor
//! hide them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::service_kind::ServiceKind;

/// Where a listing of sessions or agents continues: after this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// When it was created, in milliseconds.
    pub created: i64,
    /// Its id.
    pub id: String,
}

/// What a cursor begins with, so that none is taken for one of another listing.
const SESSIONS: &str = "s";
const MESSAGES: &str = "m";
const AGENTS: &str = "a";
const MEMORIES: &str = "f";
const LLM_SERVICES: &str = "l";
const RERANKING_SERVICES: &str = "r";

/// A cursor of a listing of sessions.
pub fn of_session(key: &Key) -> String {
    written(SESSIONS, key)
}

/// A cursor of a listing of agents.
pub fn of_agent(key: &Key) -> String {
    written(AGENTS, key)
}

/// A cursor of a listing of services of a kind.
pub fn of_service(kind: ServiceKind, key: &Key) -> String {
    written(services(kind), key)
}

fn services(kind: ServiceKind) -> &'static str {
    match kind {
        ServiceKind::Llm => LLM_SERVICES,
        ServiceKind::Reranking => RERANKING_SERVICES,
    }
}

fn written(kind: &str, key: &Key) -> String {
    URL_SAFE_NO_PAD.encode(format!("{kind} {} {}", key.created, key.id))
}

/// A cursor of a listing of messages.
pub fn of_message(seq: i64) -> String {
    URL_SAFE_NO_PAD.encode(format!("{MESSAGES} {seq}"))
}

/// A cursor of a listing of what is remembered.
pub fn of_memory(at: i64) -> String {
    URL_SAFE_NO_PAD.encode(format!("{MEMORIES} {at}"))
}

/// Reads a cursor of what is remembered. `None`: no listing gave it out.
pub fn memory(cursor: &str) -> Option<i64> {
    number(MEMORIES, cursor)
}

/// Reads a cursor of sessions. `None`: no listing gave it out.
pub fn session(cursor: &str) -> Option<Key> {
    key(SESSIONS, cursor)
}

/// Reads a cursor of agents. `None`: no listing gave it out.
pub fn agent(cursor: &str) -> Option<Key> {
    key(AGENTS, cursor)
}

/// Reads a cursor of services of a kind. `None`: no listing of this kind gave it out.
pub fn service(kind: ServiceKind, cursor: &str) -> Option<Key> {
    key(services(kind), cursor)
}

fn key(of: &str, cursor: &str) -> Option<Key> {
    let text = decoded(cursor)?;
    let mut parts = text.split(' ');
    let (kind, created, id) = (parts.next()?, parts.next()?, parts.next()?);
    let whole = kind == of && parts.next().is_none() && !id.is_empty();
    whole.then_some(Key {
        created: created.parse().ok()?,
        id: id.to_owned(),
    })
}

/// Reads a cursor of messages. `None`: no listing gave it out.
pub fn message(cursor: &str) -> Option<i64> {
    number(MESSAGES, cursor)
}

fn number(of: &str, cursor: &str) -> Option<i64> {
    let text = decoded(cursor)?;
    let (kind, number) = text.split_once(' ')?;
    number
        .parse()
        .ok()
        .filter(|number| kind == of && *number >= 0)
}

fn decoded(cursor: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_by_its_own_listing_alone() {
        let key = Key {
            created: 7,
            id: "x-1".to_owned(),
        };
        assert_eq!(session(&of_session(&key)), Some(key.clone()));
        assert_eq!(message(&of_message(9)), Some(9));
        assert_eq!(message(&of_session(&key)), None);
        assert_eq!(agent(&of_agent(&key)), Some(key.clone()));
        assert_eq!(
            (agent(&of_session(&key)), session(&of_agent(&key))),
            (None, None)
        );
        let kinds = [ServiceKind::Llm, ServiceKind::Reranking];
        for (of, by) in [(0, 1), (1, 0)].map(|(of, by)| (kinds[of], kinds[by])) {
            let cursor = of_service(of, &key);
            assert_eq!(service(of, &cursor), Some(key.clone()));
            assert_eq!((service(by, &cursor), agent(&cursor)), (None, None));
        }
        for bad in ["", "zzz", "ü", &of_message(9)] {
            assert_eq!(session(bad), None, "{bad}");
        }
    }
}
