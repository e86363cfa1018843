//! `tg console`: a person among the listeners of a flow. It does something when a line or a prompt comes; Ctrl-C stops what
//! runs, and the conversation goes on under its thread.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tg_threads::console::{Console, Prompt, Step};

use crate::args::{InFlow, Options};
use crate::client::{Call, Error, Result, Socket};
use crate::fields::{list, text};
use crate::lines::{Lines, Typed};
use crate::registry::Command;
use crate::session::Session;

/// What somebody at a terminal is asked with.
const PROMPT: &str = "> ";
/// Longest file of lines.
const LONGEST: u64 = 1 << 20;
/// The service.
const THREADS: &str = "threads";

/// Arguments of `tg console`.
#[derive(Debug, Args)]
pub struct TalkToListeners {
    #[command(flatten)]
    place: InFlow,
    /// Take the lines from a file
    #[arg(short = 'i', long, value_name = "FILE")]
    input: Option<PathBuf>,
}

impl Command for TalkToListeners {
    const NAME: &'static str = "console";
    const ABOUT: &'static str = "Talk to the listeners of a flow";

    fn options(&self) -> Options {
        Options::from(&self.place.common)
    }

    fn fails_with_one(&self) -> bool {
        true
    }

    fn adjust(command: clap::Command) -> clap::Command {
        command.after_help(
            "'@name text' sends the text to that listener; /listeners names them, /history shows what was said, /quit or \
             Ctrl-D ends. With --json, each reply is one line of JSON.",
        )
    }

    fn outlives_ctrl_c(&self) -> bool {
        self.input.is_none() && std::io::stdin().is_terminal()
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut lines = match &self.input {
            Some(file) => Source::Script(script(file)?),
            None => Source::Lines(Lines::of_stdin()?),
        };
        let typed = lines.are_typed();
        if typed {
            session.renew_interrupt();
        }
        let mut talk = Talk {
            flow: self.place.flow_id,
            console: Console::default(),
            socket: Some(session.socket().await?),
            failed: None,
        };
        let banner = Prompt {
            show_banner: true,
            ..Prompt::default()
        };
        session.out.talk(talk.console.shows(&banner).join("\n"));
        loop {
            let (back, line) = lines.next().await;
            lines = back;
            let line = match line? {
                Typed::Line(line) => Some(line),
                Typed::Cleared => continue,
                Typed::End => None,
            };
            if typed {
                session.renew_interrupt();
            }
            match talk.console.line(line.as_deref()) {
                Step::Again(said) => said.iter().for_each(|line| session.out.talk(line)),
                Step::Listeners => talk.listeners(session, typed).await?,
                Step::Send { text, target } => {
                    let body = json!({"text": text, "target": target});
                    talk.send(session, body, typed).await?;
                }
                Step::Quit => break,
            }
        }
        talk.end(session).await
    }
}

/// Where lines come from.
enum Source {
    Script(VecDeque<String>),
    Lines(Lines),
}

impl Source {
    fn are_typed(&self) -> bool {
        matches!(self, Self::Lines(lines) if lines.are_typed())
    }

    async fn next(self) -> (Self, Result<Typed>) {
        match self {
            Self::Script(mut script) => {
                let line = script.pop_front();
                (
                    Self::Script(script),
                    Ok(line.map_or(Typed::End, Typed::Line)),
                )
            }
            Self::Lines(lines) => {
                let (lines, line) = lines.next(PROMPT).await;
                (Self::Lines(lines), line)
            }
        }
    }
}

fn script(file: &std::path::Path) -> Result<VecDeque<String>> {
    let fault = |why: String| Error::Usage(format!("--input {}: {why}", file.display()));
    let about = std::fs::metadata(file).map_err(|error| fault(error.to_string()))?;
    if about.len() > LONGEST {
        return Err(fault("is larger than 1 MiB".to_owned()));
    }
    let whole = std::fs::read_to_string(file).map_err(|error| fault(error.to_string()))?;
    Ok(whole.lines().map(str::to_owned).collect())
}

/// A conversation under way.
struct Talk {
    flow: String,
    console: Console,
    /// `None` where something was stopped: the next line opens another.
    socket: Option<Socket>,
    /// Why the last of the lines that failed did.
    failed: Option<Error>,
}

impl Talk {
    fn call(&self, operation: &str) -> Call {
        let thread = self.console.thread().unwrap_or_default();
        let request = json!({
            "operation": operation, "flow": self.flow, "thread": thread, "console": true, "streaming": true,
        });
        Call::global(THREADS, request)
    }

    async fn socket(&mut self, session: &Session) -> Result<Socket> {
        match self.socket.take() {
            Some(socket) => Ok(socket.watching(session.interrupt())),
            None => session.socket().await,
        }
    }

    async fn listeners(&mut self, session: &mut Session, typed: bool) -> Result<()> {
        let mut socket = self.socket(session).await?;
        let reply = socket.ask(&self.call("list-listeners")).await;
        let done = match reply {
            Ok(reply) if session.out.is_json() => session.out.json_line(&reply),
            Ok(reply) => {
                let all = list(&reply, "listeners");
                let line =
                    |one: &Value| format!("{}  {}", text(one, "name"), text(one, "description"));
                all.iter().try_for_each(|one| session.out.line(line(one)))
            }
            Err(error) => Err(error),
        };
        let done = match done {
            Ok(()) => self.refused(session, &mut socket).await,
            failed => failed,
        };
        self.over(session, socket, done, typed)
    }

    /// Shows the rows that cannot be used, to whoever may read the configuration.
    async fn refused(&self, session: &mut Session, socket: &mut Socket) -> Result<()> {
        let reply = match socket.ask(&self.call("list-refused-listeners")).await {
            Ok(reply) => reply,
            Err(Error::Service { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let all = list(&reply, "refused");
        if session.out.is_json() && !all.is_empty() {
            return session.out.json_line(&reply);
        }
        let line = |one: &Value| format!("left out: {}: {}", text(one, "name"), text(one, "why"));
        all.iter().try_for_each(|one| session.out.line(line(one)))
    }

    /// One line for the router. What comes of it is shown as it comes.
    async fn send(&mut self, session: &mut Session, body: Value, typed: bool) -> Result<()> {
        let mut call = self.call("send-message");
        call.request["to"] = json!("console-router");
        call.request["type"] = json!("consoleinput");
        call.request["payload"] = body;
        let mut socket = self.socket(session).await?;
        let done = self.follow(session, &mut socket, &call).await;
        self.over(session, socket, done, typed)
    }

    async fn follow(
        &mut self,
        session: &mut Session,
        socket: &mut Socket,
        call: &Call,
    ) -> Result<()> {
        let mut replies = socket.start(call).await?;
        let mut pieces = Pieces::default();
        while let Some(reply) = replies.next().await? {
            let thread = text(&reply, "thread");
            if !thread.is_empty() {
                self.console.on_thread(&thread);
            }
            if session.out.is_json() {
                session.out.json_line(&reply)?;
                continue;
            }
            let chunk = text(&reply, "chunk");
            if !chunk.is_empty() {
                let shown = pieces.add(&text(&reply, "source"), &chunk);
                session.out.piece(&shown)?;
            }
            for message in list(&reply, "messages") {
                let prompt = prompt(message);
                let lines = self.console.shows(&prompt);
                // What came in pieces is there already.
                session.out.piece_if_text(pieces.end())?;
                if !pieces.said(&prompt) {
                    lines.iter().try_for_each(|line| session.out.line(line))?;
                }
            }
        }
        session.out.piece_if_text(pieces.end())
    }

    /// What failed or was stopped is told, and the conversation goes on.
    fn over(
        &mut self,
        session: &mut Session,
        socket: Socket,
        done: Result<()>,
        typed: bool,
    ) -> Result<()> {
        match done {
            Ok(()) => {
                self.socket = Some(socket);
                Ok(())
            }
            Err(Error::Interrupted) if typed => {
                session.out.talk("\nstopped");
                Ok(())
            }
            Err(error @ Error::Service { .. }) => {
                session.out.talk(format!("{error}"));
                self.failed = Some(error);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The console is disconnected: its thread ends. The command fails where a line did.
    async fn end(mut self, session: &mut Session) -> Result<()> {
        if self.console.thread().is_some() {
            let mut socket = self.socket(session).await?;
            let call = self.call("close-thread");
            // What cannot be ended ends by itself.
            if socket.ask(&call).await.is_ok() {
                self.socket = Some(socket);
            }
        }
        if let Some(socket) = self.socket {
            socket.close().await;
        }
        self.failed.map_or(Ok(()), Err)
    }
}

/// A message for the console as what it shows.
fn prompt(message: &Value) -> Prompt {
    let body = message["payload"].as_object();
    let body = body.cloned().unwrap_or_default();
    match text(message, "type").as_str() {
        // The router says whom it speaks for; anybody else speaks for itself, whatever it writes.
        "consoleprompt" if text(message, "from") == "console-router" => Prompt::read(&body),
        "consoleprompt" => Prompt {
            source: text(message, "from"),
            ..Prompt::read(&body)
        },
        kind => Prompt {
            output: text(
                &message["payload"],
                if kind == "huh" { "error" } else { "message" },
            ),
            source: text(message, "from"),
            show_banner: false,
        },
    }
}

/// Pieces that are shown as they come.
#[derive(Default)]
struct Pieces {
    source: String,
    said: String,
    open: bool,
}

impl Pieces {
    /// A piece as it is shown: each of its lines says who says it.
    fn add(&mut self, source: &str, chunk: &str) -> String {
        let mut shown = String::new();
        if !self.open || self.source != source {
            shown.push_str(self.end());
            shown.push_str(&format!("[{source}] "));
            self.source = source.to_owned();
            self.said.clear();
        }
        self.open = true;
        self.said.push_str(chunk);
        shown.push_str(&chunk.replace('\n', &format!("\n[{source}] ")));
        shown
    }

    fn end(&mut self) -> &'static str {
        match std::mem::take(&mut self.open) {
            true => "\n",
            false => "",
        }
    }

    fn said(&self, prompt: &Prompt) -> bool {
        !self.said.is_empty()
            && self.source == prompt.source
            && self.said.trim_end() == prompt.output.trim_end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_say_who_says_them() {
        let mut pieces = Pieces::default();
        let shown: String = [("a", "x"), ("a", "y\nz"), ("b", "w")]
            .map(|(source, chunk)| pieces.add(source, chunk))
            .concat();
        assert_eq!(shown, "[a] xy\n[a] z\n[b] w");
        assert_eq!((pieces.end(), pieces.end()), ("\n", ""));
        let prompt = |source: &str, output: &str| Prompt {
            output: output.to_owned(),
            source: source.to_owned(),
            show_banner: false,
        };
        assert!(pieces.said(&prompt("b", "w")));
        assert!(!pieces.said(&prompt("a", "w")) && !pieces.said(&prompt("b", "v")));
    }

    #[test]
    fn what_a_tool_asks_first_is_shown() {
        let payload = json!({"message": "May the agent use the tool pay?", "run": "r"});
        let message = json!({"type": "confirm", "from": "system", "payload": payload});
        let shown = Console::default().shows(&prompt(&message));
        assert_eq!(shown, ["[system] May the agent use the tool pay?"]);
    }

    #[test]
    fn nobody_speaks_for_another() {
        let message = |from: &str| {
            let payload = serde_json::json!({"output": "x", "source": "bank"});
            serde_json::json!({"type": "consoleprompt", "from": from, "payload": payload})
        };
        assert_eq!(prompt(&message("liar")).source, "liar");
        assert_eq!(prompt(&message("console-router")).source, "bank");
    }
}
