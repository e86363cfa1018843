//! The session in which an agent does what it was given, and the ids of tasks: both follow from the step that calls, so that who
//! takes it up again means the same.

use sha2::{Digest, Sha256};
use tg_schemas::msg::AgentRun;

use crate::engine::bounds::shorten;

/// Most bytes of the name of a session that a model gives.
const MAX_NAME: usize = 256;
/// Longest part of an earlier turn that an agent is shown, in bytes.
const MAX_SHOWN: usize = 4000;

/// Which session is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// By its name.
    pub name: &'a str,
    /// `ephemeral` or `persistent`; empty: `ephemeral`.
    pub mode: &'a str,
}

/// A session, and whether somebody can come back to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// It has turns of before, or may have some later.
    pub lasts: bool,
}

/// The session that a run is in.
pub fn of(run: &AgentRun) -> &str {
    let names = [&run.session, &run.conversation, &run.run];
    names
        .into_iter()
        .find(|name| !name.is_empty())
        .map_or("", String::as_str)
}

/// The session that all began with of which a run is a part.
pub fn tree(run: &AgentRun) -> &str {
    match run.tree.as_str() {
        "" => of(run),
        tree => tree,
    }
}

fn digest(kind: &str, run: &AgentRun, digits: usize) -> String {
    let text = format!("{kind}/{}/{}", run.run, run.step);
    let mut hex = hex::encode(Sha256::digest(text.as_bytes()));
    hex.truncate(digits);
    hex
}

/// Id of the task that a step gives.
pub fn task_id(run: &AgentRun) -> String {
    digest("task", run, 24)
}

/// Names the turn of a step.
pub fn turn_id(run: &AgentRun) -> String {
    format!("{}/{}", run.run, run.step)
}

/// The session in which an agent is to do what the step of a run gives it.
///
/// # Errors
/// What is wrong with what is wanted.
pub fn choose(run: &AgentRun, agent: &str, wanted: Wanted<'_>) -> Result<Chosen, String> {
    if wanted.name.len() > MAX_NAME {
        return Err(format!("session_id: is longer than {MAX_NAME} bytes"));
    }
    let lasting = |name: String| Chosen { name, lasts: true };
    match (wanted.name, wanted.mode) {
        (_, mode) if !matches!(mode, "" | "ephemeral" | "persistent") => {
            Err("mode: must be ephemeral or persistent".to_owned())
        }
        ("", "persistent") => {
            let parent = of(run);
            Ok(lasting(format!("subagent:{agent}:persistent:{parent}")))
        }
        ("", _) => Ok(fresh(run, agent)),
        (name, _) => Ok(lasting(named(run, name))),
    }
}

/// The session that a model names. It is of the conversation that all began with, else of the run: whoever asks with the same
/// key, and names another one alike, does not come into it.
fn named(run: &AgentRun, name: &str) -> String {
    let tree = tree(run);
    // Its length, as both may contain anything.
    format!("named:{}:{tree}:{name}", tree.len())
}

/// A session that nobody was in before.
pub fn fresh(run: &AgentRun, agent: &str) -> Chosen {
    Chosen {
        name: format!("subagent:{agent}:{}", digest("session", run, 16)),
        lasts: false,
    }
}

/// What an agent reads of earlier turns, each asked and answered; empty: there are none.
pub fn earlier<'a>(turns: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (asked, answered) in turns {
        let (asked, answered) = (shorten(asked, MAX_SHOWN), shorten(answered, MAX_SHOWN));
        text.push_str(&format!("\nAsked: {asked}\nYou answered: {answered}"));
    }
    match text.is_empty() {
        true => text,
        false => format!("Earlier in this session:{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(step: i64) -> AgentRun {
        AgentRun {
            run: "r".into(),
            step,
            conversation: "talk".into(),
            ..AgentRun::default()
        }
    }

    /// Line 115: a persistent session has one name, ephemeral ones have each their own.
    #[test]
    fn sessions_have_names() {
        let persistent = Wanted {
            mode: "persistent",
            ..Wanted::default()
        };
        let name = |step, wanted| choose(&run(step), "a", wanted).unwrap().name;
        assert_eq!(name(1, persistent), "subagent:a:persistent:talk");
        assert_eq!(name(2, persistent), name(1, persistent));
        let (one, two) = (name(1, Wanted::default()), name(2, Wanted::default()));
        assert_ne!(one, two);
        assert_eq!(
            one,
            name(1, Wanted::default()),
            "a step that is taken again"
        );
        let digits = one.strip_prefix("subagent:a:").unwrap();
        assert!(digits.len() == 16 && digits.chars().all(|one| one.is_ascii_hexdigit()));
        let given = Wanted {
            name: "mine",
            mode: "persistent",
        };
        assert_eq!(name(1, given), "named:4:talk:mine");
        // Another conversation has another one of that name, also where the name says otherwise.
        let other = |conversation: &str, name: &str| {
            let run = AgentRun {
                conversation: conversation.into(),
                ..run(1)
            };
            let wanted = Wanted { name, mode: "" };
            choose(&run, "a", wanted).unwrap().name
        };
        assert_ne!(other("tell", "mine"), name(1, given));
        assert_ne!(other("a:b", "c"), other("a", "b:c"));
        assert_ne!(other("", "subagent:a:persistent:talk"), name(1, persistent));
        // Delegates of a run mean the same.
        let below = AgentRun {
            session: "subagent:a:0".into(),
            tree: "talk".into(),
            ..run(3)
        };
        assert_eq!(choose(&below, "a", given).unwrap().name, name(1, given));
        let odd = Wanted {
            mode: "odd",
            ..given
        };
        assert!(choose(&run(1), "a", odd).is_err());
        let long = "x".repeat(257);
        let long = Wanted {
            name: &long,
            ..given
        };
        assert!(choose(&run(1), "a", long).is_err());
        assert_eq!(task_id(&run(1)).len(), 24);
    }

    #[test]
    fn what_was_said_before_is_told() {
        assert_eq!(earlier(std::iter::empty()), "");
        assert_eq!(
            earlier([("1?", "one")].into_iter()),
            "Earlier in this session:\nAsked: 1?\nYou answered: one"
        );
    }
}
