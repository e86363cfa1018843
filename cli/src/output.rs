//! Two channels to the user: data (stdout, the same in a pipe) and talk (stderr).
//!
//! It never decides what is said, only where and in which shape.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::client::Result;
use crate::layout::{self, Width};
use crate::terminal::{Bar, shown};

/// Where a command writes.
pub struct Output {
    data: Box<dyn Write>,
    talk: Box<dyn Write>,
    json: bool,
    terminal: bool,
    by_link: bool,
    width: Width,
}

impl Output {
    /// Stdout and stderr of the process. `by_link`: it was called by the name of one command.
    pub fn standard(json: bool, by_link: bool) -> Self {
        Self {
            data: Box::new(BufWriter::new(io::stdout())),
            talk: Box::new(io::stderr()),
            json,
            terminal: io::stderr().is_terminal(),
            by_link,
            width: layout::terminal(),
        }
    }

    /// Any two writers; nothing moves on them.
    pub fn to(data: Box<dyn Write>, talk: Box<dyn Write>, json: bool) -> Self {
        Self {
            data,
            talk,
            json,
            terminal: false,
            by_link: false,
            width: None,
        }
    }

    /// The same with so many columns for data, as a terminal has them.
    pub fn wide(self, columns: usize) -> Self {
        Self {
            width: Some(columns),
            ..self
        }
    }

    /// Columns for data, if it goes to a terminal.
    pub fn width(&self) -> Width {
        self.width
    }

    /// Whether the user asked for JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// One line of data.
    ///
    /// # Errors
    /// `Error::OutputClosed` where whoever reads went away, `Error::Output` where writing fails otherwise.
    pub fn line(&mut self, text: impl AsRef<str>) -> Result<()> {
        let text = shown(text.as_ref(), self.width.is_some());
        Ok(writeln!(self.data, "{text}")?)
    }

    /// A piece of data that is to be seen at once.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn piece(&mut self, text: &str) -> Result<()> {
        let text = shown(text, self.width.is_some());
        self.data.write_all(text.as_bytes())?;
        Ok(self.data.flush()?)
    }

    /// A piece of data, unless the user asked for JSON.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn piece_if_text(&mut self, text: &str) -> Result<()> {
        if self.json { Ok(()) } else { self.piece(text) }
    }

    /// Raw bytes of data.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.data.write_all(bytes)?)
    }

    /// A JSON document over several lines.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn json(&mut self, value: &Value) -> Result<()> {
        self.line(format!("{value:#}"))
    }

    /// A JSON document on one line, to be seen at once.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn json_line(&mut self, value: &Value) -> Result<()> {
        self.line(value.to_string())?;
        self.flush()
    }

    /// The JSON document if the user asked for JSON, else the text.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn show(&mut self, value: &Value, text: impl FnOnce() -> String) -> Result<()> {
        if self.json {
            return self.json(value);
        }
        let text = text();
        if text.is_empty() {
            return Ok(());
        }
        self.line(text.trim_end_matches('\n'))
    }

    /// As [`Output::show`], with a text that is made for the width of what it is printed on.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn lay(&mut self, value: &Value, text: impl FnOnce(Width) -> String) -> Result<()> {
        let width = self.width;
        self.show(value, || text(width))
    }

    /// Says something that is not data. Nobody fails because nobody listens.
    pub fn talk(&mut self, text: impl AsRef<str>) {
        let _ = self.data.flush();
        let text = self.as_called(text.as_ref());
        let _ = writeln!(self.talk, "{}", shown(&text, self.terminal));
    }

    /// A text with its commands written as this one was called.
    pub fn as_called(&self, text: &str) -> String {
        match self.by_link {
            true => as_linked(text),
            false => text.to_owned(),
        }
    }

    /// Makes everything visible.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn flush(&mut self) -> Result<()> {
        Ok(self.data.flush()?)
    }

    /// A line that says how far work is.
    pub fn living(&self) -> Living {
        let bar = match self.terminal {
            true => Bar::texts(),
            false => Bar::hidden(),
        };
        let silent = self.terminal || self.json;
        Living {
            bar,
            next: (!silent).then(|| Instant::now() + silence(0)),
            said: 0,
        }
    }

    /// A sign of life for long work; invisible unless stderr is a terminal.
    pub fn progress(&self, message: &str, total: Option<u64>) -> Bar {
        match self.terminal {
            true => Bar::moving(message, total),
            false => Bar::hidden(),
        }
    }
}

/// Seconds of silence before each word of a [`Living`] line where nothing moves; the last holds for all later ones.
const SILENCE: [u64; 5] = [1, 2, 5, 10, 30];

/// A line that says how far work is. It lives on a terminal; elsewhere it comes again now and then, ever less often.
/// With JSON nothing is printed.
pub struct Living {
    bar: Bar,
    /// When it is said again; `None`: never.
    next: Option<Instant>,
    /// How often it was said.
    said: usize,
}

impl Living {
    /// How far it is now.
    pub fn tell(&mut self, out: &mut Output, text: &str) {
        self.bar.tell(text);
        let now = Instant::now();
        if self.next.is_some_and(|next| next <= now) {
            out.talk(text);
            self.said += 1;
            self.next = Some(now + silence(self.said));
        }
    }

    /// It is over.
    pub fn end(self) {
        self.bar.finish_and_clear();
    }
}

fn silence(said: usize) -> Duration {
    Duration::from_secs(SILENCE[said.min(SILENCE.len() - 1)])
}

/// A JSON array that is written as it grows.
#[derive(Debug, Default)]
pub struct JsonArray {
    begun: bool,
}

impl JsonArray {
    /// Writes one more element.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn push(&mut self, out: &mut Output, value: &Value) -> Result<()> {
        let start = if self.begun { ",\n  " } else { "[\n  " };
        self.begun = true;
        out.bytes(start.as_bytes())?;
        out.bytes(value.to_string().as_bytes())
    }

    /// Closes the array.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub fn end(self, out: &mut Output) -> Result<()> {
        out.line(if self.begun { "\n]" } else { "[]" })
    }
}

/// Commands as `tg-NAME`, where they stand as `tg NAME` at the beginning or in backticks.
fn as_linked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("tg ") {
        let (before, found) = rest.split_at(at);
        let after = &found["tg ".len()..];
        let name =
            after.starts_with(|c: char| c.is_ascii_lowercase()) && !after.starts_with("help");
        let whole = shown.is_empty() && before.is_empty() || before.ends_with('`');
        shown.push_str(before);
        shown.push_str(if name && whole { "tg-" } else { "tg " });
        rest = after;
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_written_as_the_program_was_called() {
        assert_eq!(
            as_linked("`tg why -f x`, then `tg-whoami` or tg whoami; `tg --help`, `tg help ask`"),
            "`tg-why -f x`, then `tg-whoami` or tg whoami; `tg --help`, `tg help ask`"
        );
        assert_eq!(as_linked("tg show-flows"), "tg-show-flows");
    }
}
