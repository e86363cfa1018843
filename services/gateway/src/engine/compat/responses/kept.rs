//! Responses that are kept: turns of a session. What a request asks of that, what such a response is called, and how it is
//! shown later.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tg_schemas::Error;
use tg_schemas::operations::{SessionMessage, Usage};

use crate::engine::translate::fields::fault;
use crate::engine::translate::{Body, Fields};

/// What ids of responses begin with.
const PREFIX: &str = "resp_";
/// Why a response cannot follow another one.
const ELSEWHERE: &str =
    "must be null: only responses of agents of files are stored here; send the items in input";

/// What a request asks of the place of its response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    store: Option<bool>,
    /// The response that it follows.
    pub(crate) previous: Option<String>,
    /// The session of which it is a turn.
    pub(crate) conversation: Option<String>,
}

impl Wish {
    /// # Errors
    /// `bad-request`, with the field that is wrong.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, Error> {
        let stated = fields.value("store").is_some();
        let store = fields.flag("store")?;
        let conversation = match fields.value("conversation") {
            Some(Value::Object(_)) => match fields.object("conversation")? {
                Some(named) => Some(named.required_text("id")?),
                None => None,
            },
            _ => given(fields, "conversation")?,
        };
        let previous = given(fields, "previous_response_id")?;
        if previous.is_some() && conversation.is_some() {
            let why = "must be null where previous_response_id is given";
            return Err(fault("conversation", why));
        }
        Ok(Self {
            store: stated.then_some(store),
            previous,
            conversation,
        })
    }

    /// Refuses what needs a response that is kept, where none is.
    ///
    /// # Errors
    /// `bad-request`: the response is to follow another one.
    pub(crate) fn kept_nowhere(&self) -> Result<(), Error> {
        let asked = [
            ("previous_response_id", &self.previous),
            ("conversation", &self.conversation),
        ];
        let asked = asked.into_iter().find(|(_, named)| named.is_some());
        asked.map_or(Ok(()), |(field, _)| Err(fault(field, ELSEWHERE)))
    }

    /// Whether the response has to be kept, or else is refused.
    pub(crate) fn requires(&self) -> bool {
        self.store == Some(true) || self.previous.is_some() || self.conversation.is_some()
    }

    /// What the user says in the turn that the response is. `None`: it is not kept. As in the API, one that says nothing of it
    /// is kept where it can be.
    ///
    /// # Errors
    /// `bad-request`: it would have to be kept and cannot be.
    pub(crate) fn turn<'a>(&self, chat: &'a Body) -> Result<Option<&'a str>, Error> {
        let follows = self.previous.is_some() || self.conversation.is_some();
        if self.store == Some(false) {
            let why =
                "must be true where the response follows another one: a session keeps each turn";
            return match follows {
                true => Err(fault("store", why)),
                false => Ok(None),
            };
        }
        let turns = chat.get("messages").and_then(Value::as_array);
        let said = match turns.map_or(&[][..], Vec::as_slice) {
            [one] if one["role"] == "user" => one["content"].as_str(),
            _ => None,
        };
        if said.is_none() && self.requires() {
            let why = "must be one message of the user, without instructions, where the response is stored: the session has what was said before";
            return Err(fault("input", why));
        }
        Ok(said)
    }
}

/// A text; one that is empty says nothing.
fn given(fields: &Fields<'_>, key: &str) -> Result<Option<String>, Error> {
    Ok(fields.opt_text(key)?.filter(|text| !text.is_empty()))
}

/// Where a response is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The session.
    pub(crate) session: String,
    /// The id of the response that it follows.
    pub(crate) previous: Option<String>,
}

/// What the id of a response has behind its prefix: the session, and the message of the user that it answers.
pub(crate) fn id(session: &str, message: &str) -> String {
    format!("{session}_{message}")
}

/// The id of a response as clients read it.
pub(crate) fn shown_id(id: &str) -> String {
    format!("{PREFIX}{id}")
}

/// The session and the message that the id of a response names.
pub(crate) fn named(id: &str) -> Option<(&str, &str)> {
    let (session, message) = id.strip_prefix(PREFIX)?.split_once('_')?;
    (!session.is_empty() && !message.is_empty()).then_some((session, message))
}

/// The id of the session that is made for a response. A request that comes again finds that session; another user, agent or text
/// under the same id of a request has one of its own.
pub(crate) fn own_session(request: &str, user: &str, agent: &str, said: &str) -> String {
    let mut hash = Sha256::new();
    for part in [request, user, agent, said] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let hash: [u8; 32] = hash.finalize().into();
    // Ids of sessions are UUIDs.
    let id = uuid::Builder::from_random_bytes(std::array::from_fn(|at| hash[at]));
    id.into_uuid().hyphenated().to_string()
}

/// A turn of a session, among its newest messages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Turn<'a> {
    /// The user's message.
    pub(crate) asked: &'a SessionMessage,
    /// What the agent said in the end; `None`: nothing yet, or it failed.
    pub(crate) answer: Option<&'a SessionMessage>,
    /// The message of the turn before, if it is among these.
    pub(crate) before: Option<&'a str>,
    /// Whether no turn came after it.
    pub(crate) last: bool,
}

/// The turn that a message of the user began.
pub(crate) fn turn<'a>(messages: &'a [SessionMessage], message: &str) -> Option<Turn<'a>> {
    let asks = |one: &SessionMessage| one.role == "user" && !one.synthetic;
    let at = messages
        .iter()
        .position(|one| one.id == message && asks(one))?;
    let asked = messages.get(at)?;
    let rest = messages.get(at + 1..).unwrap_or_default();
    let own = rest.iter().take_while(|one| !asks(one));
    // What comes of a task is announced behind the turn that gave it, and answers nothing.
    let says = |one: &&SessionMessage| {
        let calls_nothing = one.tool_calls.as_ref().is_none_or(Vec::is_empty);
        one.role == "assistant" && !one.synthetic && calls_nothing
    };
    let earlier = messages.get(..at).unwrap_or_default();
    Some(Turn {
        asked,
        answer: own.filter(says).last(),
        before: earlier
            .iter()
            .rev()
            .find(|one| asks(one))
            .map(|one| &*one.id),
        last: !rest.iter().any(asks),
    })
}

/// The answer of a turn, as that of a chat.
pub(crate) fn answered(answer: &SessionMessage) -> Body {
    let mut own = Body::new();
    let text = answer.content.clone().unwrap_or_default();
    own.insert("content".to_owned(), text.into());
    if let Some(used) = &answer.usage {
        own.insert("usage".to_owned(), usage(used));
    }
    own
}

fn usage(used: &Usage) -> Value {
    json!({
        "input": used.input, "output": used.output, "total": used.total,
        "cache_read": used.cache_read, "cache_write": used.cache_write,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(body: Value) -> Result<Wish, String> {
        Wish::read(&Fields::new(body.as_object().unwrap())).map_err(|error| error.message)
    }

    fn chat(messages: Value) -> Body {
        json!({ "messages": messages })
            .as_object()
            .cloned()
            .unwrap()
    }

    #[test]
    fn a_request_says_where_its_response_is_kept() {
        let user = chat(json!([{"role": "user", "content": "q"}]));
        let more =
            chat(json!([{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]));
        let of = |body: Value, chat| {
            let wish = wish(body).unwrap();
            let turn = wish.turn(chat).map_err(|error| error.message)?;
            Ok::<_, String>(turn.map(str::to_owned))
        };
        assert_eq!(of(json!({}), &user), Ok(Some("q".to_owned())));
        assert_eq!(of(json!({}), &more), Ok(None));
        assert_eq!(of(json!({"store": false}), &user), Ok(None));
        let told = of(json!({"store": true}), &more).unwrap_err();
        assert!(told.starts_with("input: must be one message"), "{told}");
        let follows = json!({"store": false, "conversation": {"id": "s"}});
        let told = of(follows, &user).unwrap_err();
        assert!(told.starts_with("store: must be true"), "{told}");
        let both = json!({"previous_response_id": "resp_s_m", "conversation": "s"});
        assert!(wish(both).unwrap_err().starts_with("conversation: "));
        assert_eq!(
            wish(json!({"conversation": {}})),
            Err("conversation.id: is required".to_owned())
        );
        let refused = wish(json!({"conversation": "s"})).unwrap().kept_nowhere();
        assert_eq!(
            refused.unwrap_err().message,
            format!("conversation: {ELSEWHERE}")
        );
        assert!(wish(json!({"store": true})).unwrap().kept_nowhere().is_ok());
    }

    #[test]
    fn the_same_request_makes_the_same_session() {
        let first = own_session("r", "ann", "a", "x");
        assert_eq!(own_session("r", "ann", "a", "x"), first);
        assert!(uuid::Uuid::parse_str(&first).is_ok());
        for other in [
            own_session("s", "ann", "a", "x"),
            own_session("r", "bob", "a", "x"),
            own_session("r", "ann", "b", "x"),
            own_session("r", "ann", "a", "y"),
            own_session("r", "an", "na", "x"),
        ] {
            assert_ne!(other, first);
        }
    }

    fn said(id: &str, role: &str, content: &str) -> SessionMessage {
        SessionMessage {
            id: id.to_owned(),
            role: role.to_owned(),
            content: Some(content.to_owned()),
            ..SessionMessage::default()
        }
    }

    #[test]
    fn an_announcement_is_not_the_answer_of_a_response() {
        let announced = |id: &str| SessionMessage {
            synthetic: true,
            ..said(id, "assistant", "**Bee**")
        };
        let messages = [
            said("1", "user", "a"),
            said("2", "assistant", "b"),
            announced("3"),
            said("4", "user", "c"),
            announced("5"),
        ];
        let first = turn(&messages, "1").unwrap();
        assert_eq!(first.answer.map(|answer| &*answer.id), Some("2"));
        assert_eq!(turn(&messages, "4").unwrap().answer, None);
    }

    #[test]
    fn a_response_is_a_turn_of_a_session() {
        assert_eq!(named(&shown_id(&id("s-1", "m-2"))), Some(("s-1", "m-2")));
        for other in ["resp_1", "resp__m", "msg_s_m", ""] {
            assert_eq!(named(other), None, "{other}");
        }
        let messages = [
            said("1", "user", "a"),
            said("2", "assistant", "b"),
            said("3", "user", "c"),
        ];
        let first = turn(&messages, "1").unwrap();
        assert_eq!((first.before, first.last), (None, false));
        assert_eq!(answered(first.answer.unwrap())["content"], "b");
        let second = turn(&messages, "3").unwrap();
        assert_eq!(
            (second.before, second.last, second.answer),
            (Some("1"), true, None)
        );
        assert_eq!(turn(&messages, "2"), None);
    }
}
