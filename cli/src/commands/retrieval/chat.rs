//! `tg chat`: questions one after the other, each of which may refer to what was said before.

use std::io::IsTerminal;

use clap::Args;
use serde_json::json;

use super::answered::must_exist;
use super::asking::{Question, With};
use super::conversation::Conversation;
use crate::args::{InCollection, Options};
use crate::client::{Error, Result, Socket};
use crate::commands::llm::usage;
use crate::commands::sessions::talk::Talk as WithAgent;
use crate::lines::{Lines, Typed};
use crate::registry::Command;
use crate::session::Session;

/// What somebody at a terminal is asked with.
const PROMPT: &str = "> ";
const HELP: &str = "Ask, and ask on. /new forgets what was said, /help shows this, /quit or Ctrl-D ends; Ctrl-C stops \
                    an answer.";
const ALONE: &str = "answers each question by itself: it does not see what was said before";

/// Arguments of `tg chat`.
#[derive(Debug, Args)]
pub struct Chat {
    #[command(flatten)]
    place: InCollection,
    /// Who answers [default: the first of these that the flow has]
    #[arg(long, value_enum, value_name = "SERVICE")]
    with: Option<With>,
    /// Say how many tokens each answer used, on stderr
    #[arg(long)]
    show_usage: bool,
    /// Talk to this agent, in a session that is kept
    #[arg(long, value_name = "NAME", conflicts_with_all = ["with", "show_usage"])]
    agent: Option<String>,
    /// Go on with this session of the agent
    #[arg(long, value_name = "ID", requires = "agent")]
    session_id: Option<String>,
    /// User whose session it is
    #[arg(long, value_name = "ID", default_value = "tg")]
    user_id: String,
    /// Ask the agent this, and end
    #[arg(short = 'q', long, value_name = "QUESTION", requires = "agent")]
    question: Option<String>,
}

impl Command for Chat {
    const NAME: &'static str = "chat";
    const ABOUT: &'static str = "Ask questions that may refer to the answers before";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    fn fails_with_one(&self) -> bool {
        self.agent.is_some()
    }

    fn adjust(command: clap::Command) -> clap::Command {
        command.after_help(
            "Each line of standard input is a question. What was said goes to the agent with the next question; \
             nothing of it is kept when the command ends, but with --agent. With --json, each answer is one line of JSON.",
        )
    }

    fn outlives_ctrl_c(&self) -> bool {
        std::io::stdin().is_terminal()
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        if let Some(agent) = &self.agent {
            let talk = WithAgent {
                agent: agent.clone(),
                user: self.user_id.clone(),
                session: self.session_id.clone(),
            };
            return match &self.question {
                Some(question) => talk.once(session, question).await,
                None => talk.on(session).await,
            };
        }
        let mut lines = Lines::of_stdin()?;
        let typed = lines.are_typed();
        if typed {
            // Ctrl-C ends an answer, not the conversation.
            session.renew_interrupt();
        }
        let mut socket = session.socket().await?;
        must_exist(&mut socket, &self.place.collection).await?;
        let with = With::chosen(self.with, &mut socket, &self.place.flow.flow_id).await?;
        let mut talk = Talk::new(self, with, socket);
        talk.greet(session, typed);
        loop {
            let (back, line) = lines.next(PROMPT).await;
            lines = back;
            let line = match line? {
                Typed::Line(line) => line,
                Typed::Cleared => continue,
                Typed::End => break,
            };
            if typed {
                session.renew_interrupt();
            }
            match line.trim() {
                "" => {}
                "/quit" | "/exit" => break,
                "/new" => talk.forget(),
                "/help" => session.out.talk(HELP),
                word if word.starts_with('/') => {
                    session.out.talk(format!("There is no {word}. {HELP}"));
                }
                question => talk.ask(session, question, typed).await?,
            }
        }
        talk.end().await
    }
}

/// A conversation under way.
struct Talk {
    what: Chat,
    with: With,
    /// `None` where an answer was stopped: the next question opens another.
    socket: Option<Socket>,
    id: String,
    said: Conversation,
    /// Why the last of the questions that failed did.
    failed: Option<Error>,
}

impl Talk {
    fn new(what: Chat, with: With, socket: Socket) -> Self {
        Self {
            what,
            with,
            socket: Some(socket),
            id: fresh_id(),
            said: Conversation::default(),
            failed: None,
        }
    }

    fn greet(&self, session: &mut Session, typed: bool) {
        if typed {
            session.out.talk(HELP);
        }
        if self.with != With::Agent {
            let service = self.with.service();
            session.out.talk(format!("{service} {ALONE}"));
        }
    }

    fn forget(&mut self) {
        self.id = fresh_id();
        self.said = Conversation::default();
    }

    /// One question. One that fails is told, and the conversation goes on.
    async fn ask(&mut self, session: &mut Session, text: &str, typed: bool) -> Result<()> {
        match self.answer(session, text).await {
            Ok(()) => Ok(()),
            Err(Error::Interrupted) if typed => {
                self.socket = None;
                session.out.talk("\nstopped");
                Ok(())
            }
            Err(error @ Error::Service { .. }) => {
                session.out.talk(format!("{error}"));
                self.socket = None;
                self.failed = Some(error);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn answer(&mut self, session: &mut Session, text: &str) -> Result<()> {
        let mut socket = match self.socket.take() {
            Some(socket) => socket.watching(session.interrupt()),
            None => session.socket().await?,
        };
        let before = self.said.told();
        let question = Question {
            text,
            conversation: &self.id,
            before: &before,
        };
        let place = &self.what.place;
        let told = self.with.ask(session, &mut socket, place, question).await?;
        if session.out.is_json() {
            let mut shown = told.to_json(self.with);
            shown["question"] = json!(text);
            shown["conversation"] = json!(self.id);
            session.out.json_line(&shown)?;
        }
        let out = &mut session.out;
        told.answered.end(out, &mut socket, place).await;
        if self.what.show_usage {
            session.out.talk(usage(&told.last));
        }
        self.said.add(text, &told.answer);
        self.socket = Some(socket);
        Ok(())
    }

    /// The command fails where a question did.
    async fn end(self) -> Result<()> {
        if let Some(socket) = self.socket {
            socket.close().await;
        }
        self.failed.map_or(Ok(()), Err)
    }
}

fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}
