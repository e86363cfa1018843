//! When a session is shortened, where it is cut, and what the model is asked that sums it up.

use tg_compaction::{Asked, GATE, Role as Who, Row, pruned, surely_fit};

use super::transcript::{BESIDE, TOLD};
use crate::store::{Message, Role, Session};

/// The prompts below; a summary says which ones it was asked for with.
pub const PROMPT: &str = "summary-1";
/// Characters that are a token, about.
const CHARACTERS: i64 = 4;

const SUM_UP: &str = "You sum up an earlier part of a conversation, so that an assistant can go on with it without having read \
    it. Write down: tasks that are under way and how far they are, decisions, facts and figures, open questions, things still to \
    do, promises, and where the work stands. Copy every identifier exactly as it stands: ids, hashes, addresses, ports, paths, \
    and names of packages, variables, functions and classes. Write nothing but the summary.";
const WITHOUT_NOISE: &str = " Leave out greetings, acknowledgements, raw output of tools and error traces; keep what has a name, \
    figures, decisions and questions that are still open.";
const MERGE: &str = "You are given numbered summaries of consecutive parts of one conversation. Make one summary of them. Where \
    they differ, the later one is right. Say nothing twice. Copy every identifier exactly as it stands. Write nothing but the \
    summary.";

/// The instruction to the model, and its text.
pub fn asked<'a>(asked: &Asked<'a>) -> (String, &'a str) {
    match asked {
        Asked::Chunk { text, mask: true } => (format!("{SUM_UP}{WITHOUT_NOISE}"), text),
        Asked::Chunk { text, mask: false } => (SUM_UP.to_owned(), text),
        Asked::Merge { text } => (MERGE.to_owned(), text),
    }
}

/// Tokens of so many characters, about.
pub fn tokens(characters: i64) -> i64 {
    characters / CHARACTERS
}

/// Whether a session fills its model, or what its agent is sent. An agent reads no more than so much of a session, however large its
/// model is, and letters of several bytes fill that first.
pub fn is_full(session: &Session, window: u64) -> bool {
    let told = TOLD as u64;
    let window = window.min(told / CHARACTERS.unsigned_abs());
    let tokens = tokens(session.characters).unsigned_abs();
    let bytes = session.said_bytes.unsigned_abs();
    tokens.saturating_mul(100) > window.saturating_mul(GATE)
        || bytes.saturating_mul(100) > told.saturating_mul(GATE)
}

/// Whether a session has to be shortened before it goes on.
pub fn is_due(session: &Session, window: u64) -> bool {
    session.archived.is_none() && session.live > session.keep && is_full(session, window)
}

/// How many of the last messages stay when a session is shortened once more: `keep`, or fewer where these fill half of what its
/// model reads or its agent is sent. So the session is not full again at once, and is not shortened at each turn.
pub fn fitting(live: &[Message], keep: i64, window: u64) -> i64 {
    let half = window.min(TOLD as u64 / CHARACTERS.unsigned_abs()) / 2;
    let mut room = half.saturating_mul(CHARACTERS.unsigned_abs());
    let mut bytes = TOLD / 2;
    let fits = |one: &&Message| {
        let size = one.content.chars().count() as u64;
        let fits = size <= room && one.content.len() <= bytes;
        room = room.saturating_sub(size);
        bytes = bytes.saturating_sub(one.content.len());
        fits
    };
    let last = live.iter().rev();
    let last = last.take(usize::try_from(keep).unwrap_or_default());
    i64::try_from(last.take_while(fits).count()).unwrap_or(keep)
}

/// Number of messages before those that stay: the last `keep`, with the call that a kept result belongs to. `None`: there
/// is nothing before them.
pub fn cut(live: &[Message], keep: i64) -> Option<usize> {
    let keep = usize::try_from(keep).unwrap_or_default();
    let mut at = live.len().checked_sub(keep)?;
    while at > 0 && live.get(at).is_some_and(|one| one.role == Role::Tool) {
        at -= 1;
    }
    (at > 0).then_some(at)
}

/// A message as what is summed up.
pub fn row(message: &Message) -> Row {
    match (message.role, message.tool_calls.first()) {
        (Role::Tool, _) => Row::result(
            message.content.clone(),
            message.tool_name.as_deref().unwrap_or("unknown"),
        ),
        (Role::Agent, Some(call)) => {
            Row::call(message.content.clone(), &call.name, &call.arguments)
        }
        (Role::Agent, None) => Row::text(Who::Assistant, message.content.clone()),
        (Role::User | Role::System, _) => Row::text(Who::User, message.content.clone()),
    }
}

/// Bytes of what an agent is sent for these rows.
fn bytes(rows: &[Row]) -> usize {
    let calls = |row: &Row| -> usize {
        let calls = row.calls.iter();
        calls.map(|one| one.name.len() + one.arguments.len()).sum()
    };
    let sizes = rows.iter().map(|row| row.content.len() + calls(row));
    sizes.map(|size| size + BESIDE).sum()
}

/// Whether rows take more than four fifths of what the model of an agent reads, or of the bytes that the agent is sent: letters of
/// several bytes fill these first.
pub fn fill(rows: &[Row], window: u64) -> bool {
    let gate = TOLD as u64 * GATE;
    tg_compaction::is_full(rows, window) || bytes(rows) as u64 * 100 > gate
}

/// Whether the messages of a conversation do not [fill] what its agent reads, whatever they say. `sent`: bytes of what the agent is sent
/// of them, where that is known: a session counts no arguments of calls. `false`: the messages have to be read.
pub fn surely_fits(session: &Session, sent: usize, window: u64) -> bool {
    let window = window.min(TOLD as u64 / CHARACTERS.unsigned_abs());
    let rows = usize::try_from(session.messages).unwrap_or(usize::MAX);
    let said = usize::try_from(session.said_bytes).unwrap_or(usize::MAX);
    surely_fit(rows, said.saturating_add(sent), window)
}

/// Whether an agent is sent all of these rows, and its model reads them.
pub fn fit(rows: &[Row], window: u64) -> bool {
    tg_compaction::tokens(rows) <= window && bytes(rows) <= TOLD
}

/// Shortens what tools returned in the first so many messages.
pub fn prune(messages: &mut [Message], first: usize) {
    let older = messages.iter_mut().take(first);
    for one in older.filter(|one| one.role == Role::Tool) {
        if let Some(short) = pruned(&one.content) {
            one.content = short;
        }
    }
}

/// What the first message of a session begins with that continues another one.
const OPENING: &str = "[compaction summary from session ";

/// The first message of the session that continues another one.
pub fn opening(source: &str, text: &str) -> String {
    format!("{OPENING}{source}] {text}")
}

/// Whether a message is the result of a task. The summary of an earlier session is the only other one that nobody said.
pub fn is_announcement(message: &Message) -> bool {
    message.synthetic && !message.content.starts_with(OPENING)
}

#[cfg(test)]
mod tests {
    use tg_schemas::operations::{CompactStrategy, ToolCall};

    use super::*;
    use crate::store::{Owner, Surface};

    fn message(role: Role, calls: usize) -> Message {
        Message {
            seq: 1,
            id: String::new(),
            at: 0,
            role,
            content: String::new(),
            tool_name: None,
            tool_calls: vec![ToolCall::default(); calls],
            usage: None,
            synthetic: false,
            compacted: None,
            result: None,
        }
    }

    #[test]
    fn line_022_a_result_stays_with_its_call() {
        let live = [
            message(Role::User, 0),
            message(Role::Agent, 1),
            message(Role::Tool, 0),
            message(Role::Agent, 0),
        ];
        assert_eq!(cut(&live, 2), Some(1));
        assert_eq!(cut(&live, 1), Some(3));
        assert_eq!(cut(&live, 0), Some(4));
        assert_eq!((cut(&live, 4), cut(&live, 5)), (None, None));
    }

    #[test]
    fn long_results_of_the_first_messages_are_shortened_and_no_other_texts() {
        let long = |role| Message {
            content: "x".repeat(201),
            ..message(role, 0)
        };
        let mut all = [Role::Tool, Role::User, Role::Tool].map(long);
        prune(&mut all, 2);
        assert_eq!(all.map(|one| one.content.chars().count()), [185, 201, 201]);
    }

    #[test]
    fn a_summary_is_not_the_result_of_a_task() {
        let unasked = |content: String| Message {
            synthetic: true,
            content,
            ..message(Role::Agent, 0)
        };
        assert!(is_announcement(&unasked("**Bee**".to_owned())));
        assert!(!is_announcement(&unasked(opening("s", "text"))));
        assert!(!is_announcement(&message(Role::Agent, 0)));
    }

    fn session(characters: i64) -> Session {
        Session {
            id: String::new(),
            owner: Owner {
                surface: Surface::Named,
                agent: String::new(),
                user: String::new(),
            },
            title: None,
            knowledge: Vec::new(),
            strategy: CompactStrategy::Auto,
            keep: 10,
            mask: true,
            messages: 0,
            live: 0,
            characters,
            said_bytes: characters,
            request: None,
            parent: None,
            successor: None,
            loop_window: String::new(),
            created: 0,
            updated: 0,
            archived: None,
        }
    }

    #[test]
    fn letters_of_several_bytes_fill_what_an_agent_is_sent() {
        let rows = |letter: &str| [Row::text(Who::User, letter.repeat(TOLD / 2))];
        let window = TOLD as u64;
        assert!(!fill(&rows("x"), window) && fit(&rows("x"), window));
        assert!(fill(&rows("я"), window) && !fit(&rows("я"), window));
        assert!(fill(&rows("x"), 16_000) && !fit(&rows("x"), 16_000));
    }

    #[test]
    fn a_conversation_that_surely_fits_does_not_fill_its_model() {
        let of_rows = |messages: i64, bytes: i64| Session {
            messages,
            ..session(bytes)
        };
        let row = |bytes: usize| Row::text(Who::User, "x".repeat(bytes));
        for (letters, sent, fits) in [(6_000, 0, true), (6_000, 1_000, false), (6_400, 0, false)] {
            let one = of_rows(8, 8 * letters);
            assert_eq!(
                surely_fits(&one, 8 * sent, 16_000),
                fits,
                "{letters} {sent}"
            );
            let bytes = usize::try_from(letters).unwrap() + sent;
            let rows: Vec<Row> = (0..8).map(|_| row(bytes)).collect();
            assert!(!fits || !fill(&rows, 16_000), "{letters} {sent}");
        }
        // However large the model is, the agent is sent no more.
        let gate = TOLD * 8 / 10;
        for (bytes, fits) in [(gate - 16, true), (gate, false)] {
            let one = of_rows(1, i64::try_from(bytes).unwrap());
            assert_eq!(surely_fits(&one, 0, u64::MAX), fits, "{bytes}");
            assert!(!fits || !fill(&[row(bytes)], u64::MAX), "{bytes}");
        }
        assert!(!surely_fits(&of_rows(-1, 0), 0, 16_000));
    }

    #[test]
    fn line_031_four_fifths_are_not_too_much_and_a_token_more_is() {
        let gate = 4 * 16_000 * 8 / 10;
        assert!(!is_full(&session(gate), 16_000));
        assert!(!is_full(&session(gate + 3), 16_000));
        assert!(is_full(&session(gate + 4), 16_000));
        // Letters of two bytes fill what the agent is sent.
        let gate = TOLD as i64 * 8 / 10;
        let of_two = |bytes: i64| Session {
            said_bytes: bytes,
            ..session(bytes / 2)
        };
        assert!(!is_full(&of_two(gate), 128_000));
        assert!(is_full(&of_two(gate + 2), 128_000));
    }

    #[test]
    fn a_session_that_is_shortened_once_more_is_not_full_at_once() {
        let long = |characters: usize| Message {
            content: "x".repeat(characters),
            ..message(Role::User, 0)
        };
        let live: Vec<Message> = (0..12).map(|_| long(4_400)).collect();
        // Half of 16,000 tokens are 32,000 characters.
        assert_eq!(fitting(&live, 10, 16_000), 7);
        assert_eq!(fitting(&live, 5, 16_000), 5);
        // As many as an agent is told, however large its model is.
        let live = vec![long(32_000); 12];
        assert_eq!(fitting(&live, 10, 1_000_000), 4);
        assert_eq!(fitting(&[long(200_000)], 10, 1_000_000), 0);
        let of_two = Message {
            content: "я".repeat(32_000),
            ..message(Role::User, 0)
        };
        assert_eq!(fitting(&vec![of_two; 12], 10, 1_000_000), 2);
        assert_eq!(cut(&live, fitting(&live, 10, 1_000_000)), Some(8));
    }

    #[test]
    fn line_029_with_a_mask_the_model_is_told_to_drop_noise() {
        let chunk = |mask| asked(&Asked::Chunk { text: "t", mask }).0;
        assert!(chunk(true).contains("Leave out greetings"));
        assert!(!chunk(false).contains("greetings"));
    }
}
