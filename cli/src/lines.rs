//! Lines that a person types, with editing and the arrow keys for what was typed before, or that a program pipes.

use std::io::{BufRead, IsTerminal, stdin};

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

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
            Self::Piped => piped(),
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

fn piped() -> Result<Typed> {
    let mut line = Vec::new();
    let mut input = std::io::Read::take(stdin().lock(), LONGEST as u64 + 1);
    let read = input.read_until(b'\n', &mut line);
    let read = read.map_err(|error| Error::Check(format!("cannot read the input: {error}")))?;
    if read == 0 {
        return Ok(Typed::End);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.len() > LONGEST {
        return Err(Error::Usage(format!(
            "a line is longer than {LONGEST} bytes"
        )));
    }
    match String::from_utf8(line) {
        Ok(line) => Ok(Typed::Line(line)),
        Err(_) => Err(Error::Usage("a line is not UTF-8".to_owned())),
    }
}
