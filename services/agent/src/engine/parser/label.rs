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

/// `[*]{0,2} label [*]{0,2} :`, then the marks that close the emphasis.
pub(super) fn classify_label(body: &str, expected: impl Fn(Label) -> bool) -> Head {
    let word = body.trim_start_matches('*');
    let opened = body.len() - word.len();
    if opened > 2 {
        return Head::Plain;
    }
    let mut undecided = word.is_empty();
    for (text, label) in LABELS {
        if !expected(*label) {
            continue;
        }
        if text.starts_with(word) {
            undecided = true;
            continue;
        }
        let Some(rest) = word.strip_prefix(text) else {
            continue;
        };
        let after = rest.trim_start_matches('*');
        let closed = rest.len() - after.len();
        if closed > opened {
            continue;
        }
        match after {
            "" => undecided = true,
            ":" => return Head::Label(*label, u8::try_from(opened - closed).unwrap_or(0)),
            _ => {}
        }
    }
    if undecided {
        Head::Undecided
    } else {
        Head::Plain
    }
}
