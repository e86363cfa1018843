//! Lines that a person types, with editing and the arrow keys for what was typed before, or that a program pipes.

use std::borrow::Cow;
use std::io::{BufRead, IsTerminal, stdin};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{DefaultEditor, Editor, Helper};

use crate::client::{Error, Result};

/// Longest line.
const LONGEST: usize = 64 << 10;

/// What came instead of a line, or the line.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// A line, without its end.
    Line(String),
    /// Ctrl-C.
    Cleared,
    /// Ctrl-D, or the end of a pipe.
    End,
}

/// Where lines come from.
pub enum Lines {
    /// Somebody types.
    Terminal(Box<DefaultEditor>),
    /// A pipe or a file.
    Piped,
}

impl Lines {
    /// Standard input, however it is connected.
    ///
    /// # Errors
    /// [`Error::Check`] where the terminal cannot be used.
    pub fn of_stdin() -> Result<Self> {
        match stdin().is_terminal() {
            false => Ok(Self::Piped),
            true => match DefaultEditor::new() {
                Ok(editor) => Ok(Self::Terminal(Box::new(editor))),
                Err(error) => Err(Error::Check(format!("cannot read the terminal: {error}"))),
            },
        }
    }

    /// Whether somebody types them.
    pub fn are_typed(&self) -> bool {
        matches!(self, Self::Terminal(_))
    }

    /// The next line. It waits on a thread of its own.
    ///
    /// # Errors
    /// [`Error::Usage`] where the line is too long or no text; [`Error::Check`] where standard input cannot be read.
    pub async fn next(self, prompt: &'static str) -> (Self, Result<Typed>) {
        let read = tokio::task::spawn_blocking(move || self.read(prompt));
        match read.await {
            Ok(read) => read,
            Err(error) => (Self::Piped, Err(Error::Check(error.to_string()))),
        }
    }

    fn read(mut self, prompt: &str) -> (Self, Result<Typed>) {
        let typed = match &mut self {
            Self::Terminal(editor) => typed(editor, prompt),
            Self::Piped => piped(LONGEST),
        };
        (self, typed)
    }
}

fn typed(editor: &mut DefaultEditor, prompt: &str) -> Result<Typed> {
    match editor.readline(prompt) {
        Ok(line) => {
            // Not to be found by the arrow keys is no reason to fail.
            let _ = editor.add_history_entry(&line);
            Ok(Typed::Line(line))
        }
        Err(ReadlineError::Interrupted) => Ok(Typed::Cleared),
        Err(ReadlineError::Eof) => Ok(Typed::End),
        Err(error) => Err(Error::Check(format!("cannot read the terminal: {error}"))),
    }
}

/// A line that nobody is to see: what is typed is not shown, and not remembered. From a pipe, its first line.
///
/// # Errors
/// [`Error::Usage`] where there is none; [`Error::Interrupted`]; otherwise as [`Lines::next`].
pub async fn secret(prompt: String) -> Result<String> {
    let read = tokio::task::spawn_blocking(move || match stdin().is_terminal() {
        true => unseen(&prompt),
        false => piped(LONGEST),
    });
    match read
        .await
        .map_err(|error| Error::Check(error.to_string()))??
    {
        Typed::Line(line) => Ok(line.trim_end_matches('\r').to_owned()),
        Typed::Cleared => Err(Error::Interrupted),
        Typed::End => Err(Error::Usage(
            "standard input ended before the line with the password".to_owned(),
        )),
    }
}

fn unseen(prompt: &str) -> Result<Typed> {
    let fault = |error: ReadlineError| Error::Check(format!("cannot read the terminal: {error}"));
    if shows_all(&std::env::var("TERM").unwrap_or_default()) {
        let text = "this terminal shows what is typed; pipe the password to standard input";
        return Err(Error::Usage(text.to_owned()));
    }
    let mut editor: Editor<Unseen, DefaultHistory> = Editor::new().map_err(fault)?;
    editor.set_helper(Some(Unseen));
    match editor.readline(prompt) {
        Ok(line) => Ok(Typed::Line(line)),
        Err(ReadlineError::Interrupted) => Ok(Typed::Cleared),
        Err(ReadlineError::Eof) => Ok(Typed::End),
        Err(error) => Err(fault(error)),
    }
}

/// Whether the editor leaves a terminal as it is, which shows what is typed.
fn shows_all(terminal: &str) -> bool {
    const PLAIN: [&str; 3] = ["dumb", "cons25", "emacs"];
    PLAIN.iter().any(|one| one.eq_ignore_ascii_case(terminal))
}

/// Shows nothing of what is typed, not even how much it is.
struct Unseen;

impl Highlighter for Unseen {
    fn highlight<'l>(&self, _line: &'l str, _at: usize) -> Cow<'l, str> {
        Cow::Borrowed("")
    }

    fn highlight_char(&self, _line: &str, _at: usize, _kind: CmdKind) -> bool {
        true
    }
}

impl Completer for Unseen {
    type Candidate = String;
}

impl Hinter for Unseen {
    type Hint = String;
}

impl Validator for Unseen {}

impl Helper for Unseen {}

/// The next line that a program writes, of at most so many bytes. It is waited for on a thread of its own.
///
/// # Errors
/// As [`Lines::next`].
pub async fn written(longest: usize) -> Result<Typed> {
    let read = tokio::task::spawn_blocking(move || piped(longest));
    match read.await {
        Ok(read) => read,
        Err(error) => Err(Error::Check(error.to_string())),
    }
}

fn piped(longest: usize) -> Result<Typed> {
    let mut line = Vec::new();
    let mut input = std::io::Read::take(stdin().lock(), longest as u64 + 1);
    let read = input.read_until(b'\n', &mut line);
    let read = read.map_err(|error| Error::Check(format!("cannot read the input: {error}")))?;
    if read == 0 {
        return Ok(Typed::End);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.len() > longest {
        return Err(Error::Usage(format!(
            "a line is longer than {longest} bytes"
        )));
    }
    match String::from_utf8(line) {
        Ok(line) => Ok(Typed::Line(line)),
        Err(_) => Err(Error::Usage("a line is not UTF-8".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_shows_a_password_gets_none() {
        assert!(shows_all("dumb") && shows_all("Emacs"));
        assert!(!shows_all("xterm-256color") && !shows_all(""));
    }
}
