//! What a reasoning model thinks before it answers, where its server leaves that in the text between `<think>` and
//! `</think>`: told apart piece by piece, wherever the pieces are cut.

const OPENS: &str = "<think>";
const CLOSES: &str = "</think>";

/// A part of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// What the model thinks; no part of its answer.
    Thinking(String),
    /// What it answers.
    Text(String),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Nothing but blanks came: a thought may begin. Later in a text the mark is a part of the text.
    #[default]
    Before,
    Thinking,
    /// After a thought; blanks before the answer are no part of it.
    After,
    Text,
}

/// Tells thought and answer of one reply apart.
#[derive(Debug, Default)]
pub struct Thinking {
    state: State,
    /// What cannot be told yet: blanks, or the beginning of a mark.
    held: String,
}

impl Thinking {
    /// What a piece makes certain.
    pub fn push(&mut self, piece: String) -> Vec<Part> {
        if self.state == State::Text {
            return text(piece);
        }
        self.held.push_str(&piece);
        let mut parts = Vec::new();
        while self.advance(&mut parts) {}
        parts
    }

    /// What is left at the end of the reply.
    pub fn finish(&mut self) -> Vec<Part> {
        let held = std::mem::take(&mut self.held);
        match std::mem::replace(&mut self.state, State::Text) {
            State::Thinking => thinking(held),
            // Blanks alone.
            State::After if held.trim_start().is_empty() => Vec::new(),
            State::Before | State::After | State::Text => text(held),
        }
    }

    /// Goes one state on; `false`: nothing more is certain.
    fn advance(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.state {
            State::Before | State::After => {
                let begun = self.held.trim_start();
                if let Some(rest) = begun.strip_prefix(OPENS) {
                    self.held = rest.to_owned();
                    self.state = State::Thinking;
                    return true;
                }
                if OPENS.starts_with(begun) {
                    return false;
                }
                let held = match self.state {
                    State::After => begun.to_owned(),
                    _ => std::mem::take(&mut self.held),
                };
                self.held.clear();
                self.state = State::Text;
                parts.extend(text(held));
                false
            }
            State::Thinking => {
                if let Some((thought, rest)) = self.held.split_once(CLOSES) {
                    parts.extend(thinking(thought.to_owned()));
                    self.held = rest.to_owned();
                    self.state = State::After;
                    return true;
                }
                let kept = beginning(&self.held, CLOSES);
                let rest = self.held.split_off(self.held.len() - kept);
                parts.extend(thinking(std::mem::replace(&mut self.held, rest)));
                false
            }
            State::Text => false,
        }
    }
}

/// A whole reply: what was thought, and the answer.
pub fn apart(whole: String) -> (String, String) {
    let mut reply = Thinking::default();
    let mut parts = reply.push(whole);
    parts.extend(reply.finish());
    let (mut thought, mut answer) = (String::new(), String::new());
    for part in parts {
        match part {
            Part::Thinking(more) => thought += &more,
            Part::Text(more) => answer += &more,
        }
    }
    (thought, answer)
}

fn text(text: String) -> Vec<Part> {
    let part = (!text.is_empty()).then_some(Part::Text(text));
    part.into_iter().collect()
}

fn thinking(text: String) -> Vec<Part> {
    let part = (!text.is_empty()).then_some(Part::Thinking(text));
    part.into_iter().collect()
}

/// How many bytes at the end of a text are the beginning of a mark.
fn beginning(text: &str, mark: &str) -> usize {
    let longest = (mark.len() - 1).min(text.len());
    let fits = |len: &usize| text.as_bytes().ends_with(&mark.as_bytes()[..*len]);
    (1..=longest).rev().find(fits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(reply: &str, size: usize) -> (String, String) {
        let chars: Vec<char> = reply.chars().collect();
        let mut all = Thinking::default();
        let pieces = chars.chunks(size);
        let mut parts: Vec<Part> = pieces
            .flat_map(|piece| all.push(piece.iter().collect()))
            .collect();
        parts.extend(all.finish());
        let (mut thought, mut answer) = (String::new(), String::new());
        for part in parts {
            match part {
                Part::Thinking(more) => {
                    assert!(answer.is_empty(), "a thought after the answer: {reply}");
                    thought += &more;
                }
                Part::Text(more) => answer += &more,
            }
        }
        (thought, answer)
    }

    /// Wherever the pieces are cut.
    #[test]
    fn thought_and_answer_are_told_apart() {
        for (reply, thought, answer) in [
            ("yes", "", "yes"),
            ("  yes", "", "  yes"),
            ("", "", ""),
            (" \n", "", " \n"),
            ("<think>a\nb</think>\n\nyes ", "a\nb", "yes "),
            ("\n <think>a</think> <think>b</think>c", "ab", "c"),
            ("<think>Action: x</thin </think>y", "Action: x</thin ", "y"),
            ("<think></think>y", "", "y"),
            ("<think>never ended</thi", "never ended</thi", ""),
            ("<thin", "", "<thin"),
            ("<thinking> is a word", "", "<thinking> is a word"),
            ("say <think>x</think>", "", "say <think>x</think>"),
            ("<think>Grüße ✓</think>ö</think>", "Grüße ✓", "ö</think>"),
            ("<think>x</think>\n ", "x", ""),
        ] {
            let told = (thought.to_owned(), answer.to_owned());
            assert_eq!(apart(reply.to_owned()), told, "{reply:?}");
            for size in 1..=reply.chars().count() {
                assert_eq!(cut(reply, size), told, "{reply:?} by {size}");
            }
        }
    }

    /// What is certain is not kept waiting.
    #[test]
    fn a_thought_is_passed_on_as_it_comes() {
        let mut all = Thinking::default();
        assert_eq!(all.push("<thi".to_owned()), []);
        let said = |text: &str| vec![Part::Thinking(text.to_owned())];
        assert_eq!(all.push("nk>one".to_owned()), said("one"));
        assert_eq!(all.push(" two</".to_owned()), said(" two"));
        assert_eq!(all.push("b> three".to_owned()), said("</b> three"));
        assert_eq!(all.push("</think>".to_owned()), []);
        assert_eq!(all.push("\n".to_owned()), []);
        assert_eq!(
            all.push("yes".to_owned()),
            vec![Part::Text("yes".to_owned())]
        );
    }
}
