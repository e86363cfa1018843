//! `tg invoke-agent`: asks the agent and prints its answer as it comes. Ctrl-C closes the socket,
//! which cancels the run, or leaves it to be joined again where `--on-disconnect` says so.

use std::io::IsTerminal;

use clap::Args;
use serde_json::{Value, json};

use super::render::{Chunk, Renderer, Shown};
use super::runs::{answer_to, confirm_command};
use crate::args::{Asked, InCollection, Options};
use crate::client::{Call, Error, Result, Socket};
use crate::commands::explain::entity::Entity;
use crate::commands::explain::fetch::entity_call;
use crate::commands::llm::usage;
use crate::commands::retrieval::answered::{Answered, must_exist};
use crate::lines::{Lines, Typed};
use crate::output::Output;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg invoke-agent`.
#[derive(Debug, Args)]
pub struct InvokeAgent {
    #[command(flatten)]
    place: InCollection,
    #[command(flatten)]
    question: Asked,
    /// Has no effect any more; kept for old scripts
    #[arg(short = 'l', long, hide = true)]
    plan: Option<String>,
    /// How the agent is to work [default: the agent chooses]
    #[arg(short = 'p', long, value_parser = ["react", "plan-then-execute", "supervisor"])]
    pattern: Option<String>,
    /// State the agent starts in
    #[arg(short = 's', long)]
    state: Option<String>,
    /// Tool groups the agent may use
    #[arg(short = 'g', long, num_args = 1..)]
    group: Option<Vec<String>>,
    /// Tools that write, or ask first, and may be used in this run without being asked
    #[arg(long, num_args = 1.., value_name = "TOOL")]
    grant: Option<Vec<String>>,
    /// Keep what the run hears of models and tools, so that `tg replay` can run it again
    #[arg(long)]
    record: bool,
    /// Show thoughts, actions and observations too
    #[arg(short = 'v', long)]
    verbose: bool,
    /// Print each message as a whole
    #[arg(long, conflicts_with = "explainable")]
    no_streaming: bool,
    /// Show provenance events, on stderr
    #[arg(short = 'x', long)]
    explainable: bool,
    /// Show provenance events of unknown kinds too
    #[arg(long)]
    debug: bool,
    /// What becomes of the run when this command ends before it [default: cancel]
    #[arg(long, value_name = "cancel|detach|grace=SECONDS")]
    on_disconnect: Option<String>,
    /// Say how many tokens were used, on stderr
    #[arg(long)]
    show_usage: bool,
}

impl Command for InvokeAgent {
    const NAME: &'static str = "invoke-agent";
    const ABOUT: &'static str = "Ask the agent a question";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    fn adjust(command: clap::Command) -> clap::Command {
        command.after_help("With --json, each message of the agent is one line of JSON.")
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        if self.plan.is_some() {
            session.out.talk("--plan has no effect any more");
        }
        let mut call = Call::in_flow(&self.place.flow.flow_id, "agent", self.request());
        call.on_disconnect.clone_from(&self.on_disconnect);
        let mut socket = session.socket().await?;
        must_exist(&mut socket, &self.place.collection).await?;
        let mut replies = socket.start(&call).await?;
        let mut view = Renderer::new(self.verbose, !self.no_streaming);
        session
            .out
            .piece_if_text(&view.opening(self.question.id()))?;
        let mut unexplained = Vec::new();
        let mut last_answer = Value::Null;
        loop {
            let reply = match replies.next().await {
                Ok(Some(reply)) => reply,
                Ok(None) => break,
                Err(error) => {
                    session.out.piece_if_text(&view.closing())?;
                    return Err(self.left(&mut session.out, replies.run(), error));
                }
            };
            let chunk = Chunk::read(&reply);
            if matches!(chunk, Chunk::Confirm { .. }) {
                session.out.piece_if_text(&view.closing())?;
                let confirmed = confirm(session, replies.run(), &chunk).await;
                confirmed.map_err(|error| self.left(&mut session.out, replies.run(), error))?;
            }
            if session.out.is_json() {
                session.out.json_line(&reply)?;
            } else {
                session.out.piece(&view.chunk(&chunk))?;
                if self.explainable
                    && let Chunk::Explain { id, triples } = &chunk
                {
                    match Entity::read(id, triples) {
                        Some(entity) => self.explain(&mut session.out, &entity),
                        None => unexplained.push(id.clone()),
                    }
                }
            }
            if matches!(chunk.shown(), Some(Shown::Answer)) {
                last_answer = reply;
            }
        }
        let run = match self.record {
            true => replies.run().to_owned(),
            false => String::new(),
        };
        session.out.piece_if_text(&view.closing())?;
        let answered = Answered::read(&last_answer);
        session.out.piece_if_text(&below(&answered))?;
        self.explain_rest(session, &mut socket, &unexplained)
            .await?;
        let out = &mut session.out;
        answered.end(out, &mut socket, &self.place).await;
        socket.close().await;
        if !run.is_empty() {
            session.out.talk(format!("Replay it with: tg replay {run}"));
        }
        if self.show_usage {
            session.out.talk(usage(&last_answer));
        }
        Ok(())
    }
}

/// What is said of a run whose caller leaves; `None`: it ends. The first reply names it.
fn goes_on(word: Option<&str>, run: &str) -> Option<String> {
    let how = match word {
        None | Some("cancel") => return None,
        Some(word) => match word.strip_prefix("grace=") {
            Some(seconds) => format!(" for {seconds} s"),
            None => String::new(),
        },
    };
    Some(match run {
        "" => "`tg list-runs` says whether the run goes on.".to_owned(),
        run => format!("The run goes on{how}: tg attach {run}"),
    })
}

/// The citations, as a piece of text.
pub(super) fn below(answered: &Answered) -> String {
    let below = answered.below();
    below.map_or_else(String::new, |text| format!("{text}\n"))
}

impl InvokeAgent {
    fn request(&self) -> Value {
        let mut request = json!({
            "question": self.question.id(),
            "collection": self.place.collection,
            "streaming": !self.no_streaming,
        });
        if let Some(state) = &self.state {
            request["state"] = json!(state);
        }
        if let Some(group) = &self.group {
            request["group"] = json!(group);
        }
        if let Some(grant) = &self.grant {
            request["grant"] = json!(grant);
        }
        if self.record {
            request["record"] = json!(true);
        }
        if let Some(pattern) = &self.pattern {
            request["pattern"] = json!(pattern);
        }
        request
    }

    /// Says how a run that Ctrl-C leaves is joined again.
    fn left(&self, out: &mut Output, run: &str, error: Error) -> Error {
        if matches!(error, Error::Interrupted)
            && let Some(text) = goes_on(self.on_disconnect.as_deref(), run)
        {
            out.talk(text);
        }
        error
    }

    fn explain(&self, out: &mut Output, entity: &Entity) {
        if let Some(text) = entity.event(self.debug) {
            out.talk(format!("\n{text}"));
        }
    }

    /// Events that came without triples are looked up in the graph, once the answer is out.
    async fn explain_rest(
        &self,
        session: &mut Session,
        socket: &mut Socket,
        ids: &[String],
    ) -> Result<()> {
        let flow = &self.place.flow.flow_id;
        let calls: Vec<Call> = ids
            .iter()
            .map(|id| entity_call(flow, &self.place.collection, id))
            .collect();
        for (id, reply) in ids.iter().zip(socket.ask_all(&calls).await?) {
            let triples = reply.map(|reply| crate::commands::graph::triples(&reply))?;
            match Entity::read(id, &triples) {
                Some(entity) => self.explain(&mut session.out, &entity),
                None if self.debug => session.out.talk(format!("\n  [not stored] {id}")),
                None => {}
            }
        }
        Ok(())
    }
}

/// Has whoever is at the terminal say whether a tool may be used; elsewhere it is said how.
async fn confirm(session: &mut Session, run: &str, chunk: &Chunk) -> Result<()> {
    let Chunk::Confirm {
        message,
        tool,
        arguments,
    } = chunk
    else {
        return Ok(());
    };
    let asks = format!("The agent asks to use '{tool}' with {arguments}.");
    if session.out.is_json() || !std::io::stdin().is_terminal() {
        let command = confirm_command(run, message, "yes|no");
        session.out.talk(format!("{asks} Answer with: {command}"));
        return Ok(());
    }
    session.out.talk(asks);
    let (_, typed) = Lines::of_stdin()?.next("Allow it? [y/N] ").await;
    let answer = match typed? {
        Typed::Cleared => return Err(Error::Interrupted),
        Typed::Line(line) if matches!(line.trim(), "y" | "Y" | "yes") => "yes",
        Typed::Line(_) | Typed::End => "no",
    };
    let request = answer_to(run, message, answer);
    if let Err(error) = session.http()?.service("requests", request).await {
        // Too late, or answered elsewhere: the run goes on and says so.
        session.out.talk(error.to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command as Clap, FromArgMatches};

    fn parse(arguments: &[&str]) -> InvokeAgent {
        let command = InvokeAgent::augment_args(Clap::new("invoke-agent"));
        let argv = std::iter::once("invoke-agent").chain(arguments.iter().copied());
        let matches = command.try_get_matches_from(argv).expect("arguments");
        InvokeAgent::from_arg_matches(&matches).expect("read")
    }

    #[test]
    fn collection_and_pattern_are_sent_in_every_mode() {
        let agent = parse(&[
            "-q", "why?", "-C", "books", "-p", "react", "-x", "-g", "a", "b",
        ]);
        assert_eq!(
            agent.request(),
            json!({"question": "why?", "collection": "books", "streaming": true,
                "group": ["a", "b"], "pattern": "react"})
        );
    }

    #[test]
    fn a_run_that_goes_on_is_named() {
        for (word, run, told) in [
            (Some("detach"), "r1", Some("The run goes on: tg attach r1")),
            (
                Some("grace=9"),
                "r1",
                Some("The run goes on for 9 s: tg attach r1"),
            ),
            (
                Some("detach"),
                "",
                Some("`tg list-runs` says whether the run goes on."),
            ),
            (Some("cancel"), "r1", None),
            (None, "r1", None),
        ] {
            assert_eq!(goes_on(word, run).as_deref(), told);
        }
    }

    #[test]
    fn unset_options_are_not_sent() {
        let agent = parse(&["-q", "why?", "--no-streaming"]);
        assert_eq!(
            agent.request(),
            json!({"question": "why?", "collection": "default", "streaming": false})
        );
    }
}
