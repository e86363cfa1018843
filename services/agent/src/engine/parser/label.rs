//! The labels of a reply, as they stand at the beginning of a line.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Thought,
    Action,
    Actions,
    Args,
    FinalAnswer,
    Observation,
}

const LABELS: &[(&str, Label)] = &[
    ("Thought", Label::Thought),
    ("Action", Label::Action),
    ("Actions", Label::Actions),
    ("Args", Label::Args),
    ("Arguments", Label::Args),
    ("Action Input", Label::Args),
    ("Action Args", Label::Args),
    ("Tool Input", Label::Args),
    ("Input", Label::Args),
    ("Parameters", Label::Args),
    ("Final Answer", Label::FinalAnswer),
    ("Observation", Label::Observation),
];

/// What the beginning of a line is.
pub(super) enum Head {
    Undecided,
    Plain,
    Fence,
    Label(Label, Stars),
}

/// Emphasis marks that follow a label and belong to it.
pub(super) type Stars = u8;

/// `label:` in any case, numbered or not, with a space before the colon or not, which may be a full-width one; as a heading or
/// within `[*]{0,2}`. Then the marks that close the emphasis.
pub(super) fn classify_label(body: &str, expected: impl Fn(Label) -> bool) -> Head {
    let unmarked = body.trim_start_matches('#');
    let line = match body.len() - unmarked.len() {
        0 => body,
        1..=6 => unmarked.trim_start_matches(' '),
        _ => return Head::Plain,
    };
    let word = line.trim_start_matches('*');
    let opened = line.len() - word.len();
    if opened > 2 {
        return Head::Plain;
    }
    let mut undecided = word.is_empty();
    for (text, label) in LABELS {
        if !expected(*label) {
            continue;
        }
        if begins(text, word) {
            undecided = true;
            continue;
        }
        if !begins(word, text) {
            continue;
        }
        let rest = numbered(&word[text.len()..]);
        let after = rest.trim_start_matches('*');
        let closed = rest.len() - after.len();
        if closed > opened {
            continue;
        }
        match after.trim_start_matches(' ') {
            "" => undecided = true,
            ":" | "：" => return Head::Label(*label, u8::try_from(opened - closed).unwrap_or(0)),
            _ => {}
        }
    }
    if undecided {
        Head::Undecided
    } else {
        Head::Plain
    }
}

/// Whether a line is the label of an answer that stands on the lines after it: as a heading or emphasized, without a colon.
pub(super) fn is_answer_line(line: &str) -> bool {
    let bare = line.trim_matches(|c: char| c.is_whitespace() || matches!(c, '#' | '*'));
    line.starts_with(['#', '*']) && bare.eq_ignore_ascii_case("Final Answer")
}

/// Whether a text begins with another, in any case of its letters.
fn begins(text: &str, with: &str) -> bool {
    let head = text.as_bytes().get(..with.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(with.as_bytes()))
}

/// What follows the number of a step, of two digits at most.
fn numbered(rest: &str) -> &str {
    let number = rest.trim_start_matches(' ');
    let after = number.trim_start_matches(|c: char| c.is_ascii_digit());
    match number.len() - after.len() {
        1..=2 => after,
        _ => rest,
    }
}
