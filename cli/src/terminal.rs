//! The one way of texts to a terminal. Titles, answers, quotations and names of files are written by anybody: what is no
//! character would command the terminal, and what turns the direction of writing would show a text as another one.

use std::borrow::Cow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A text as a terminal may have it.
pub fn shown(text: &str, terminal: bool) -> Cow<'_, str> {
    match terminal && text.contains(commands) {
        true => Cow::Owned(text.replace(commands, "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// Whether it is no character to be seen: controls, and those that overrule the direction of what follows.
fn commands(c: char) -> bool {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() && !matches!(c, '\n' | '\t')
}

/// A line on stderr that moves while work goes on. Nothing else writes to such a line.
#[derive(Clone)]
pub struct Bar(ProgressBar);

impl Bar {
    /// One that nobody sees.
    pub fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// One with a text, and how much there is to do if that is known.
    pub fn moving(text: &str, total: Option<u64>) -> Self {
        let (bar, template) = match total {
            Some(total) => (
                ProgressBar::new(total),
                "{msg} [{bar:30}] {human_pos}/{human_len} ({per_sec}, {eta} left)",
            ),
            None => (
                ProgressBar::new_spinner(),
                "{spinner} {msg} {human_pos} ({per_sec}, {elapsed})",
            ),
        };
        Self(bar).styled(template, text)
    }

    /// One with nothing but texts.
    pub fn texts() -> Self {
        Self(ProgressBar::new_spinner()).styled("{spinner} {msg}", "")
    }

    fn styled(self, template: &str, text: &str) -> Self {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.0.set_style(style.progress_chars("=> "));
        }
        self.tell(text);
        self.0.enable_steady_tick(Duration::from_millis(120));
        self
    }

    /// Shows another text.
    pub fn tell(&self, text: &str) {
        self.0.set_message(shown(text, true).into_owned());
    }

    /// So much more was done.
    pub fn inc(&self, more: u64) {
        self.0.inc(more);
    }

    /// So much was done in all.
    pub fn set_position(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Takes the line away while something else is written.
    pub fn suspend<R>(&self, write: impl FnOnce() -> R) -> R {
        self.0.suspend(write)
    }

    /// Takes the line away for good.
    pub fn finish_and_clear(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "built by \u{1b}]52;c;ZXZpbA==\u{7}Ada\u{9b}2J\r\n\tBrisk \u{202e}gpj.exe\u{2066}";
    const SHOWN: &str = "built by \u{fffd}]52;c;ZXZpbA==\u{fffd}Ada\u{fffd}2J\u{fffd}\n\tBrisk \u{fffd}gpj.exe\u{fffd}";

    #[test]
    fn nothing_that_is_printed_commands_the_terminal() {
        assert_eq!(shown(TEXT, false), TEXT);
        assert_eq!(shown(TEXT, true), SHOWN);
        // A mark of direction says how one character is written, and overrules nothing.
        for kept in ["Größe\n", "שלום עולם \u{200f}(1)", "日本語"] {
            assert!(matches!(shown(kept, true), Cow::Borrowed(_)), "{kept}");
        }
    }

    #[test]
    fn nothing_that_moves_commands_the_terminal() {
        for bar in [Bar::moving(TEXT, None), Bar::moving(TEXT, Some(3)), {
            let bar = Bar::texts();
            bar.tell(TEXT);
            bar
        }] {
            assert_eq!(bar.0.message(), SHOWN.replace('\t', "        "));
            bar.finish_and_clear();
        }
    }

    #[test]
    fn no_other_file_writes_to_lines_that_move() {
        fn walk(directory: &std::path::Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(directory).expect("sources") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    walk(&path, found);
                } else if std::fs::read_to_string(&path).is_ok_and(|it| it.contains("indicatif")) {
                    found.push(path.file_name().expect("a name").display().to_string());
                }
            }
        }
        let mut found = Vec::new();
        let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        walk(std::path::Path::new(sources), &mut found);
        assert_eq!(found, ["terminal.rs"]);
    }
}
