//! A conversation with a named agent, for `tg chat --agent`: one question, or a session that goes on line by line and is kept.

use serde_json::{Value, json};
use tg_schemas::operations::{
    Chat, CreateSession, FailureCode, NewSession, Object, OneSession, Operation, Question,
    SendMessage, SentMessage, SessionLineage, TurnResult,
};

use crate::client::{Error, Result};
use crate::lines::{Lines, Typed};
use crate::output::Output;
use crate::session::Session;

/// What somebody at a terminal is asked with.
const PROMPT: &str = "> ";
const HELP: &str = "Ask, and ask on. /new begins another session, /session shows its id, /help shows this, /quit or Ctrl-D \
                    ends; Ctrl-C stops waiting for an answer.";

/// With whom, and in which session.
#[derive(Debug, Clone)]
pub struct Talk {
    /// Name of the agent.
    pub agent: String,
    /// The user.
    pub user: String,
    /// The session to go on with; `None`: a new one.
    pub session: Option<String>,
}

impl Talk {
    /// One question. In a session where one is named, else nothing of it is kept.
    ///
    /// # Errors
    /// The agent did not answer.
    pub async fn once(&self, session: &mut Session, question: &str) -> Result<()> {
        match &self.session {
            Some(id) => self.turn(session, id, question).await?,
            None => {
                let asked = Question {
                    name: self.agent.clone(),
                    message: Some(question.to_owned()),
                    user_id: self.user.clone(),
                    ..Question::default()
                };
                answered::<Chat>(session, &asked).await?
            }
        };
        Ok(())
    }

    /// Lines of standard input, until it ends. One that fails is reported, and the conversation goes on.
    ///
    /// # Errors
    /// The last of the lines that failed, or what ends the conversation.
    pub async fn on(mut self, session: &mut Session) -> Result<()> {
        let mut lines = Lines::of_stdin()?;
        let typed = lines.are_typed();
        if typed {
            // Ctrl-C ends a wait, not the conversation.
            session.renew_interrupt();
            session.out.talk(HELP);
        }
        let mut failed = None;
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
            let done = match line.trim() {
                "" => Ok(()),
                "/quit" | "/exit" => break,
                "/new" => {
                    self.session = None;
                    Ok(())
                }
                "/session" => {
                    let id = self.session.as_deref().unwrap_or("there is no session yet");
                    session.out.talk(id);
                    Ok(())
                }
                "/help" => {
                    session.out.talk(HELP);
                    Ok(())
                }
                word if word.starts_with('/') => {
                    session.out.talk(format!("There is no {word}. {HELP}"));
                    Ok(())
                }
                question => self.line(session, question).await,
            };
            match done {
                Ok(()) => {}
                Err(Error::Interrupted) if typed => {
                    session
                        .out
                        .talk("\nstopped waiting; the answer is kept in the session");
                }
                Err(error @ Error::Service { .. }) => {
                    session.out.talk(format!("{error}"));
                    failed = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn line(&mut self, session: &mut Session, question: &str) -> Result<()> {
        let id = match &self.session {
            Some(id) => id.clone(),
            None => {
                let new = NewSession {
                    name: self.agent.clone(),
                    user_id: self.user.clone(),
                    ..NewSession::default()
                };
                session.http()?.call::<CreateSession>(&new).await?.id
            }
        };
        self.session = Some(id.clone());
        let answer = self.turn(session, &id, question).await?;
        // A session that was shortened on the way goes on in its successor.
        if let Some(landed) = &answer.session_id {
            self.session = Some(landed.clone());
        }
        Ok(())
    }

    /// A message in a session; where it was archived, in the one that goes on.
    async fn turn(&self, session: &mut Session, id: &str, text: &str) -> Result<TurnResult> {
        let mut sent = SentMessage {
            name: self.agent.clone(),
            session_id: id.to_owned(),
            user_id: self.user.clone(),
            message: text.to_owned(),
            ..SentMessage::default()
        };
        let answer = answered::<SendMessage>(session, &sent).await;
        if !answer.as_ref().is_err_and(is_archived) {
            return answer;
        }
        let which = OneSession {
            name: self.agent.clone(),
            session_id: id.to_owned(),
            user_id: self.user.clone(),
        };
        let chain = session.http()?.call::<SessionLineage>(&which).await?;
        let Some(next) = chain.live_session_id else {
            return answer;
        };
        sent.session_id = next;
        answered::<SendMessage>(session, &sent).await
    }
}

/// Whether another session continues the one that was asked.
fn is_archived(error: &Error) -> bool {
    let archived = FailureCode::SessionArchived.as_str();
    matches!(error, Error::Service { kind, .. } if kind == archived)
}

/// Asks, and shows the answer: at a terminal as it comes, elsewhere once it is whole.
async fn answered<O: Operation<Reply = TurnResult>>(
    session: &mut Session,
    asked: &O::Request,
) -> Result<TurnResult> {
    if session.out.is_json() || session.out.width().is_none() {
        let answer = session.http()?.call::<O>(asked).await?;
        show(session, &answer)?;
        return Ok(answer);
    }
    let mut socket = session.socket().await?;
    let mut shown = Shown::default();
    let out = &mut session.out;
    let told = |event: &str, data: &Object| shown.add(out, event, data);
    let answer = socket.follow::<O>(asked, told).await;
    match &answer {
        Ok(answer) => shown.end(&mut session.out, &answer.content)?,
        Err(_) => shown.reset(&mut session.out)?,
    }
    if answer.is_ok() {
        socket.close().await;
    }
    answer
}

/// What of an answer stands on the terminal, on the last line.
#[derive(Default)]
struct Shown(String);

impl Shown {
    fn add(&mut self, out: &mut Output, event: &str, data: &Object) -> Result<()> {
        let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
        match event {
            "token" => {
                self.0.push_str(text("delta"));
                out.piece(text("delta"))
            }
            // What came before a call of a tool was no answer.
            "token-reset" => self.reset(out),
            "tool-call" => {
                out.talk(format!("[{}]", text("toolName")));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What follows stands on a line of its own.
    fn reset(&mut self, out: &mut Output) -> Result<()> {
        match std::mem::take(&mut self.0).is_empty() {
            true => Ok(()),
            false => out.line(""),
        }
    }

    /// The answer is whole. Of one whose pieces are other ones, all of it follows.
    fn end(mut self, out: &mut Output, content: &str) -> Result<()> {
        match content.strip_prefix(self.0.as_str()) {
            Some(rest) => out.line(rest)?,
            None => {
                self.reset(out)?;
                out.line(content)?;
            }
        }
        out.flush()
    }
}

fn show(session: &mut Session, answer: &TurnResult) -> Result<()> {
    match session.out.is_json() {
        true => session.out.json_line(&json!(answer)),
        false => session.out.line(&answer.content),
    }
}
