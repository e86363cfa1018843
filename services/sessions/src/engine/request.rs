//! What requests may say: users, texts, pages, the settings of a session. Each refusal names the field.

use tg_schemas::operations::{
    CompactStrategy, EarlierMessage, Failure, FailureCode, NewSession, TenantSettings, WhenBusy,
};

use super::cursor::{self, Key};
use super::service_kind::ServiceKind;
use super::transcript::Said;

/// Longest text of a message, in characters.
pub const MESSAGE: usize = 32_000;
/// Longest id of a user, in characters.
const USER: usize = 256;
/// Longest title, in characters.
const TITLE: usize = 200;
/// Most messages that stay as they are when a session is shortened.
const KEEP: i64 = 200;
/// As many stay where nobody says how many.
const KEEP_USUAL: i64 = 10;
/// Most agents that call each other, one within the other.
pub const DEPTH: usize = 3;
/// Longest id of the request that caused another one, in characters.
const PARENT: usize = 128;
/// Entries of a page: most of them, and as many where nobody says how many.
const PAGE: i64 = 200;
const PAGE_USUAL: i64 = 50;

/// The user that a request of a session names.
///
/// # Errors
/// It names none, or one that cannot be.
pub fn user(user: &str) -> Result<&str, Failure> {
    let name = user.trim();
    if name.is_empty() {
        return Err(Failure::new(
            FailureCode::UserIdRequired,
            "user_id: is required (header SPASS-User-Id)",
        ));
    }
    optional_user(name)
}

/// The user that a request outside of sessions may name.
///
/// # Errors
/// It names one that cannot be.
pub fn optional_user(user: &str) -> Result<&str, Failure> {
    let name = user.trim();
    if name.chars().count() > USER || name.chars().any(char::is_control) {
        return Err(Failure::new(
            FailureCode::InvalidHeader,
            format!(
                "user_id: must have at most {USER} characters, and none of them a control character"
            ),
        ));
    }
    Ok(name)
}

/// Whether one agent more may be asked.
///
/// # Errors
/// Too many called each other before, or the number cannot be.
pub fn depth(depth: i64) -> Result<i64, Failure> {
    match usize::try_from(depth) {
        Err(_) => Err(Failure::new(
            FailureCode::InvalidHeader,
            "caller_depth: must be a whole number from 0",
        )),
        Ok(DEPTH..) => Err(Failure::new(
            FailureCode::RecursionDepthExceeded,
            format!("caller_depth: at most {DEPTH} agents may call each other"),
        )),
        Ok(_) => Ok(depth),
    }
}

/// The request that caused another one. It goes into the trail.
///
/// # Errors
/// It is too long, or no id.
pub fn parent(id: &str) -> Result<&str, Failure> {
    if id.chars().count() > PARENT || id.chars().any(char::is_control) {
        return Err(Failure::new(
            FailureCode::InvalidHeader,
            format!(
                "parent_request_id: must have at most {PARENT} characters, and none of them a control character"
            ),
        ));
    }
    Ok(id)
}

/// The text of a message, without space around it.
///
/// # Errors
/// It is empty, or too long.
pub fn message<'a>(field: &str, text: &'a str) -> Result<&'a str, Failure> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err(Failure::invalid(field, "is required")),
        1..=MESSAGE => Ok(text),
        _ => Err(Failure::invalid(
            field,
            "must have at most 32,000 characters",
        )),
    }
}

/// The question of a chat, which has two names.
///
/// # Errors
/// It has both or none of them, or its text cannot be.
pub fn question<'a>(said: Option<&'a str>, prompt: Option<&'a str>) -> Result<&'a str, Failure> {
    match (said, prompt) {
        (Some(_), Some(_)) => Err(Failure::invalid(
            "prompt",
            "must be left out where message is given",
        )),
        (None, Some(prompt)) => message("prompt", prompt),
        (said, None) => message("message", said.unwrap_or_default()),
    }
}

/// Messages that may come before a question.
const EARLIER: usize = 1_000;

/// What was said before a question, as the agent reads it.
///
/// # Errors
/// There is too much, or nobody who says something.
pub fn earlier(said: &[EarlierMessage]) -> Result<Vec<Said>, Failure> {
    if said.len() > EARLIER {
        return Err(Failure::invalid(
            "earlier",
            "must have at most 1,000 entries",
        ));
    }
    let read = |one: &EarlierMessage| {
        let who = match one.role.as_str() {
            "user" => "User",
            "assistant" => "Assistant",
            "system" => "Instructions",
            _ => {
                let reason = "must be user, assistant or system";
                return Err(Failure::invalid("earlier.role", reason));
            }
        };
        Ok(Said {
            who: who.to_owned(),
            text: one.content.clone(),
        })
    };
    said.iter().map(read).collect()
}

/// What a session is like from its creation on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    /// Its title.
    pub title: Option<String>,
    /// When it is shortened.
    pub strategy: CompactStrategy,
    /// Messages that stay as they are.
    pub keep: i64,
    /// Whether a summary leaves out what tools returned.
    pub mask: bool,
}

/// The settings of a new session: its own, or the usual ones.
///
/// # Errors
/// One of them is out of its range.
pub fn settings(asked: &NewSession, usual: &TenantSettings) -> Result<SessionSettings, Failure> {
    let keep = asked.compact_keep_last_n.or(usual.compact_keep_last_n);
    let keep = keep.unwrap_or(KEEP_USUAL);
    if !(0..=KEEP).contains(&keep) {
        let reason = "must be a whole number from 0 to 200";
        return Err(Failure::invalid("compact_keep_last_n", reason));
    }
    let long = |title: &String| title.chars().count() > TITLE;
    if asked.title.as_ref().is_some_and(long) {
        return Err(Failure::invalid(
            "title",
            "must have at most 200 characters",
        ));
    }
    Ok(SessionSettings {
        title: asked.title.clone(),
        strategy: asked
            .compact_strategy
            .or(usual.compact_strategy)
            .unwrap_or_default(),
        keep,
        mask: asked
            .compact_observation_mask
            .or(usual.compact_observation_mask)
            .unwrap_or(true),
    })
}

/// The id that a new session is to have, as ids are written.
///
/// # Errors
/// It is no UUID.
pub fn session_id(id: Option<&str>) -> Result<Option<String>, Failure> {
    let read = |id: &str| {
        let id = uuid::Uuid::parse_str(id)
            .map_err(|_| Failure::invalid("session_id", "must be a UUID"))?;
        Ok(id.hyphenated().to_string())
    };
    id.map(read).transpose()
}

/// What a reader of a session may do about a turn that is in progress.
///
/// # Errors
/// It would end the turn.
pub fn reading(when_busy: WhenBusy) -> Result<(), Failure> {
    match when_busy {
        WhenBusy::Queue | WhenBusy::Refuse => Ok(()),
        WhenBusy::Interrupt => Err(Failure::invalid(
            "when_busy",
            "must be queue or refuse: reading ends no turn",
        )),
    }
}

/// The title of a conversation: where it has one, at least one character.
///
/// # Errors
/// It is empty, or too long.
pub fn title(title: Option<&str>) -> Result<(), Failure> {
    match title.map(|title| title.chars().count()) {
        None | Some(1..=TITLE) => Ok(()),
        Some(_) => Err(Failure::invalid("title", "must have 1 to 200 characters")),
    }
}

/// Entries of a page.
///
/// # Errors
/// The number is out of its range.
pub fn limit(limit: Option<i64>) -> Result<usize, Failure> {
    let limit = limit.unwrap_or(PAGE_USUAL);
    match usize::try_from(limit) {
        Ok(most) if (1..=PAGE).contains(&limit) => Ok(most),
        _ => Err(Failure::invalid(
            "limit",
            "must be a whole number from 1 to 200",
        )),
    }
}

/// Newest messages that are read at once.
const NEWEST: i64 = 1_000;

/// How many of the newest messages are wanted; `None`: a page is.
///
/// # Errors
/// The number is out of its range.
pub fn newest(most: Option<i64>) -> Result<Option<usize>, Failure> {
    let read = |most| match usize::try_from(most) {
        Ok(found) if (1..=NEWEST).contains(&most) => Ok(found),
        _ => Err(Failure::invalid(
            "newest",
            "must be a whole number from 1 to 1,000",
        )),
    };
    most.map(read).transpose()
}

/// Where a listing of sessions continues.
///
/// # Errors
/// No listing of sessions gave out the cursor.
pub fn after_session(cursor: Option<&str>) -> Result<Option<Key>, Failure> {
    let read = |cursor| cursor::session(cursor).ok_or_else(no_cursor);
    cursor.map(read).transpose()
}

/// Where a listing of services of a kind continues; `None`: at its beginning.
///
/// # Errors
/// No listing of this kind gave out the cursor.
pub fn after_service(kind: ServiceKind, cursor: Option<&str>) -> Result<Option<Key>, Failure> {
    let read = |cursor| cursor::service(kind, cursor).ok_or_else(no_cursor);
    cursor.map(read).transpose()
}

/// Where a listing of agents continues; `None`: at its beginning.
///
/// # Errors
/// No listing of agents gave out the cursor.
pub fn after_agent(cursor: Option<&str>) -> Result<Option<Key>, Failure> {
    let read = |cursor| cursor::agent(cursor).ok_or_else(no_cursor);
    cursor.map(read).transpose()
}

/// Where a listing of messages continues; 0: at its beginning.
///
/// # Errors
/// No listing of messages gave out the cursor.
pub fn after_message(cursor: Option<&str>) -> Result<i64, Failure> {
    cursor.map_or(Ok(0), |cursor| {
        cursor::message(cursor).ok_or_else(no_cursor)
    })
}

/// Where a listing of what is remembered continues; before everything: at its beginning.
///
/// # Errors
/// No such listing gave out the cursor.
pub fn after_memory(cursor: Option<&str>) -> Result<i64, Failure> {
    cursor.map_or(Ok(i64::MIN), |cursor| {
        cursor::memory(cursor).ok_or_else(no_cursor)
    })
}

fn no_cursor() -> Failure {
    Failure::new(
        FailureCode::InvalidCursor,
        "cursor: is not the cursor of an earlier page",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(result: Result<T, Failure>) -> &'static str {
        result.map_or_else(|failure| failure.code.as_str(), |_| "")
    }

    #[test]
    fn line_007_a_question_without_a_text_is_refused() {
        assert_eq!(code(question(None, None)), "validation_error");
        assert_eq!(code(question(Some("  "), None)), "validation_error");
        assert_eq!(code(question(Some("a"), Some("b"))), "validation_error");
        assert_eq!(question(None, Some(" b ")).unwrap(), "b");
        let longest = "x".repeat(MESSAGE);
        assert!(question(Some(&longest), None).is_ok());
        let longer = "x".repeat(MESSAGE + 1);
        assert_eq!(code(question(Some(&longer), None)), "validation_error");
    }

    #[test]
    fn line_012_the_messages_that_stay_are_from_0_to_200() {
        let asked = |keep| {
            let asked = NewSession {
                compact_keep_last_n: Some(keep),
                ..NewSession::default()
            };
            settings(&asked, &TenantSettings::default())
        };
        for keep in [201, -1] {
            assert_eq!(code(asked(keep)), "validation_error");
        }
        for keep in [0, 200] {
            assert_eq!(asked(keep).unwrap().keep, keep);
        }
        let usual = settings(&NewSession::default(), &TenantSettings::default()).unwrap();
        assert_eq!((usual.keep, usual.mask), (10, true));
        assert_eq!(usual.strategy, CompactStrategy::Auto);
    }

    #[test]
    fn line_035_the_third_nesting_is_refused() {
        assert_eq!(depth(2), Ok(2));
        assert_eq!(code(depth(3)), "recursion_depth_exceeded");
        assert_eq!(code(depth(-1)), "invalid_header");
    }

    #[test]
    fn the_request_that_caused_another_has_a_short_id() {
        assert_eq!((parent(""), parent("a-1")), (Ok(""), Ok("a-1")));
        assert!(parent(&"x".repeat(PARENT)).is_ok());
        assert_eq!(code(parent(&"x".repeat(PARENT + 1))), "invalid_header");
        assert_eq!(code(parent("a\nb")), "invalid_header");
    }

    #[test]
    fn a_user_is_required_and_plain() {
        assert_eq!(user(" ann "), Ok("ann"));
        assert_eq!(code(user(" ")), "user_id_required");
        assert_eq!(code(user("a\nb")), "invalid_header");
        assert_eq!(code(user(&"x".repeat(257))), "invalid_header");
        assert_eq!(optional_user(""), Ok(""));
    }

    #[test]
    fn an_id_of_a_session_is_a_uuid_in_its_usual_form() {
        let id = "0198A5C2-0000-7000-8000-000000000001";
        assert_eq!(session_id(Some(id)), Ok(Some(id.to_lowercase())));
        assert_eq!(session_id(None), Ok(None));
        assert_eq!(code(session_id(Some("mine"))), "validation_error");
        assert_eq!(reading(WhenBusy::Queue), Ok(()));
        assert_eq!(code(reading(WhenBusy::Interrupt)), "validation_error");
    }

    #[test]
    fn pages_and_cursors_have_their_bounds() {
        assert_eq!((limit(None), limit(Some(200))), (Ok(50), Ok(200)));
        for bad in [0, 201, -1] {
            assert_eq!(code(limit(Some(bad))), "validation_error");
        }
        assert_eq!(code(after_session(Some("zzz"))), "invalid_cursor");
        assert_eq!(code(after_message(Some("zzz"))), "invalid_cursor");
        assert_eq!(after_message(None), Ok(0));
    }
}
