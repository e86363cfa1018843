//! What the agent reads of a session: the instructions of its definition, then what was said before.

use std::borrow::Borrow;

use super::definition::Definition;

/// Bytes of what was said before that the agent reads at most; the oldest are left out.
pub const TOLD: usize = 256 << 10;

/// Bytes that a message takes beside its text, at most: who says it.
pub const BESIDE: usize = 16;

/// One message of the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Who said it, as the agent reads it.
    pub who: String,
    /// The text.
    pub text: String,
}

/// The message, whether it is shared with whoever keeps it or not.
fn itself<S: Borrow<Said>>(one: &S) -> &Said {
    one.borrow()
}

/// The text that frames the next question: instructions, passages, and the past in its order.
pub fn framing<S: Borrow<Said>>(agent: &Definition, passages: &str, past: &[S]) -> String {
    let mut parts = Vec::new();
    let instructions = agent.system_prompt.trim();
    if !instructions.is_empty() {
        parts.push(instructions.to_owned());
    }
    if !passages.is_empty() {
        parts.push(passages.to_owned());
    }
    let mut room = TOLD;
    let fits = |one: &&Said| {
        let size = one.text.len() + BESIDE;
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    };
    let told = past.iter().map(itself).rev().take_while(fits).count();
    if told > 0 {
        let mut text = String::from("This conversation so far:");
        for one in past.iter().map(itself).skip(past.len() - told) {
            for part in ["\n\n", one.who.as_str(), ": ", one.text.as_str()] {
                text.push_str(part);
            }
        }
        parts.push(text);
    }
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const NOTHING: &[Said] = &[];

    fn said(who: &str, text: &str) -> Said {
        Said {
            who: who.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn the_past_follows_the_instructions_in_its_order() {
        let agent = Definition {
            system_prompt: "Be brief. ".to_owned(),
            ..Definition::default()
        };
        let past = [said("User", "two and two?"), said("Assistant", "four")];
        let told = framing(&agent, "", &past);
        assert_eq!(
            told,
            "Be brief.\n\nThis conversation so far:\n\nUser: two and two?\n\nAssistant: four"
        );
        // What is kept for the next turn is not copied.
        let shared = past.map(Arc::new);
        assert_eq!(framing(&agent, "", &shared), told);
        assert_eq!(framing(&agent, "", NOTHING), "Be brief.");
        assert_eq!(framing(&agent, "[1] x", NOTHING), "Be brief.\n\n[1] x");
        assert_eq!(framing(&Definition::default(), "", NOTHING), "");
    }

    #[test]
    fn the_oldest_are_left_out_where_there_is_no_room() {
        let long = "x".repeat(TOLD - 50);
        let past = [
            said("User", "first"),
            said("User", &long),
            said("User", "last"),
        ];
        let told = framing(&Definition::default(), "", &past);
        assert!(told.ends_with("User: last") && !told.contains("first"));
    }
}
