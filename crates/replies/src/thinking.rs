//! What a reasoning model thinks before it answers, where its server leaves that in the text between `<think>` and
//! `</think>`, or marks of the same kind: told apart piece by piece, wherever the pieces are cut.

use std::borrow::Cow;

/// The mark that ends a thought.
pub const CLOSES: &str = "</think>";
/// The marks around a thought, of the families of models that write them.
const MARKS: [(&str, &str); 4] = [
    ("<think>", CLOSES),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<seed:think>", "</seed:think>"),
];

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
    /// Until this mark.
    Thinking(&'static str),
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
            State::Thinking(_) => thinking(held),
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
                let opened = MARKS
                    .iter()
                    .find_map(|(opens, closes)| Some((begun.strip_prefix(opens)?, *closes)));
                if let Some((rest, closes)) = opened {
                    self.held = rest.to_owned();
                    self.state = State::Thinking(closes);
                    return true;
                }
                if MARKS.iter().any(|(opens, _)| opens.starts_with(begun)) {
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
            State::Thinking(closes) => {
                if let Some((thought, rest)) = self.held.split_once(closes) {
                    parts.extend(thinking(thought.to_owned()));
                    self.held = rest.to_owned();
                    self.state = State::After;
                    return true;
                }
                let kept = beginning(&self.held, closes);
                let rest = self.held.split_off(self.held.len() - kept);
                parts.extend(thinking(std::mem::replace(&mut self.held, rest)));
                false
            }
            State::Text => false,
        }
    }
}

/// A whole reply: what was thought, and the answer. The mark that opens a thought may be missing, as it is where the template of
/// a model's chats ends with it; then the one that closes it stands alone on its line, or at the end of one.
pub fn apart(whole: String) -> (String, String) {
    let (thought, answer) = marked(whole);
    if thought.is_empty()
        && let Some(at) = closing(&answer)
    {
        let rest = answer[at + CLOSES.len()..].trim_start().to_owned();
        let mut thought = answer;
        thought.truncate(at);
        return (thought, rest);
    }
    (thought, answer)
}

/// The answer of a whole reply.
pub fn answer(whole: &str) -> Cow<'_, str> {
    let begun = whole.trim_start();
    let opened = MARKS.iter().any(|(opens, _)| begun.starts_with(opens));
    match opened || closing(whole).is_some() {
        true => Cow::Owned(apart(whole.to_owned()).1),
        false => Cow::Borrowed(whole.trim_start_matches('\u{feff}')),
    }
}

/// Where a mark closes a thought that none has opened. Within a line it is a word that is talked about.
fn closing(text: &str) -> Option<usize> {
    let at = text.find(CLOSES)?;
    let (before, after) = (&text[..at], &text[at + CLOSES.len()..]);
    let line_ends = |text: &str| {
        let line = text.trim_start_matches([' ', '\t', '\r']);
        line.is_empty() || line.starts_with('\n')
    };
    let line_begins = before.trim_end_matches([' ', '\t']).ends_with('\n');
    let is_word = before.ends_with('`') || before.contains(MARKS[0].0);
    (!is_word && (line_begins || line_ends(after))).then_some(at)
}

fn marked(whole: String) -> (String, String) {
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
            ("[THINK]a</think>[/THINK]b", "a</think>", "b"),
            ("◁think▷a◁/think▷\nb", "a", "b"),
        ] {
            let told = (thought.to_owned(), answer.to_owned());
            assert_eq!(apart(reply.to_owned()), told, "{reply:?}");
            for size in 1..=reply.chars().count() {
                assert_eq!(cut(reply, size), told, "{reply:?} by {size}");
            }
        }
    }

    #[test]
    fn a_thought_that_only_ends_is_told_apart_in_a_whole_reply() {
        for (reply, thought, answer) in [
            ("a\nb\n</think>\n\nyes", "a\nb\n", "yes"),
            ("a</think>\nyes", "a", "yes"),
            ("a\n</think> yes", "a\n", "yes"),
            ("a</think>", "a", ""),
            ("the mark </think> ends it", "", "the mark </think> ends it"),
            ("`</think>`\nends it", "", "`</think>`\nends it"),
            ("say <think>x</think>\n", "", "say <think>x</think>\n"),
        ] {
            let told = (thought.to_owned(), answer.to_owned());
            assert_eq!(apart(reply.to_owned()), told, "{reply:?}");
            assert_eq!(super::answer(reply), answer, "{reply:?}");
        }
    }

    /// While a reply comes nobody knows that it was a thought.
    #[test]
    fn a_thought_that_only_ends_stays_text_in_pieces() {
        let reply = "a\n</think>\n\nyes";
        for size in 1..=reply.len() {
            assert_eq!(cut(reply, size), (String::new(), reply.to_owned()));
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
