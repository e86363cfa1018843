//! What was said in a conversation, as a model is sent it. Pure.

use std::collections::VecDeque;

/// Most bytes of it that go with a question; the oldest turns are left out first.
const TOLD: usize = 16 << 10;
/// Most bytes of one question or answer in it.
const TURN: usize = 4 << 10;

/// The turns of a conversation, the newest that fit.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    turns: VecDeque<String>,
    bytes: usize,
}

impl Conversation {
    /// Remembers a turn.
    pub(super) fn add(&mut self, question: &str, answer: &str) {
        let turn = format!("User: {}\nYou: {}\n", short(question), short(answer));
        self.bytes += turn.len();
        self.turns.push_back(turn);
        while self.bytes > TOLD {
            let oldest = self.turns.pop_front();
            self.bytes -= oldest.map_or(0, |turn| turn.len());
        }
    }

    /// In words for a model; empty where nothing was said.
    pub(super) fn told(&self) -> String {
        if self.turns.is_empty() {
            return String::new();
        }
        let turns: Vec<&str> = self.turns.iter().map(String::as_str).collect();
        format!(
            "The question continues this conversation; words such as \"it\" or \"there\" may refer to it. It is not a \
             source of facts.\n{}",
            turns.concat()
        )
    }
}

/// The beginning of a text, on one line.
fn short(text: &str) -> String {
    let end = (0..=TURN.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let mut short = text[..end].split_whitespace().collect::<Vec<_>>().join(" ");
    if end < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_turns_are_told_in_their_order() {
        let mut said = Conversation::default();
        assert_eq!(said.told(), "");
        said.add("Who built\n the lamp?", "Ada.");
        said.add("When?", "In 1891.");
        let told = said.told();
        let turns = "User: Who built the lamp?\nYou: Ada.\nUser: When?\nYou: In 1891.\n";
        assert!(told.ends_with(turns), "{told}");
    }

    #[test]
    fn a_long_conversation_stays_within_its_bound() {
        let mut said = Conversation::default();
        for turn in 0..100 {
            said.add(&format!("{turn}?"), &"ü".repeat(10_000));
        }
        assert!(said.told().len() < TOLD + 1000);
        assert!(!said.told().contains("User: 0?"));
        assert!(said.told().contains("User: 99?"));
        said.add("100?", &"x".repeat(TOLD * 2));
        assert!(said.told().contains("User: 100?"));
    }
}
