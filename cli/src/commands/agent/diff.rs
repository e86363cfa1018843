//! `tg diff-traces`: where two runs of the agent part, step by step. Like `diff`, it ends with 0 where they are the same, and with 1
//! where they are not.

use clap::Args;
use serde_json::{Value, json};
use tg_schemas::vocabulary::tg;
use tg_schemas::{ErrorCode, Term};

use super::parting::{Reader, Step, parting};
use super::runs::missing;
use crate::args::{InCollection, Options};
use crate::client::{Call, Error, Result, Socket};
use crate::commands::explain::told::messages;
use crate::commands::graph::triples_of;
use crate::fields::text;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg diff-traces`.
#[derive(Debug, Args)]
pub struct DiffTraces {
    #[command(flatten)]
    place: InCollection,
    /// Id of a run, from `tg list-runs`, or IRI of its trace
    #[arg(value_name = "RUN")]
    run: String,
    /// The one that it is held against
    #[arg(value_name = "OTHER")]
    other: String,
    /// Runs of somebody else in the workspace, for its administrators
    #[arg(long)]
    all: bool,
}

impl Command for DiffTraces {
    const NAME: &'static str = "diff-traces";
    const ABOUT: &'static str = "Show the first step at which two runs of the agent part";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    fn adjust(command: clap::Command) -> clap::Command {
        command.after_help(
            "What is compared of each step: thought, action, arguments, observation, answer. Of a run that is under way its end is \
             waited for. Exit code 0: the runs are the same; 1: they part.",
        )
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut socket = session.socket().await?;
        let left = self.steps(session, &mut socket, &self.run).await?;
        let right = self.steps(session, &mut socket, &self.other).await?;
        socket.close().await;
        let (names, count) = ([&*self.run, &*self.other], left.len());
        let Some(part) = parting(left, right) else {
            let same = json!({"same": true, "steps": count});
            return session
                .out
                .show(&same, || format!("The runs are the same in {count} steps."));
        };
        session.out.show(&part.json(names), || part.text(names))?;
        Err(Error::Check(format!("the runs part at {}", part.place())))
    }
}

impl DiffTraces {
    /// The steps of a run: as its parts are kept, else as its record tells them again; or as its trace in the graph says.
    async fn steps(&self, session: &Session, socket: &mut Socket, run: &str) -> Result<Vec<Step>> {
        if run.starts_with("urn:") {
            let mut reader = Reader::default();
            let told = messages(session, socket, &self.place, run).await?;
            told.iter()
                .for_each(|message| reader.add(message, |said| text(said, "goal")));
            return Ok(reader.steps());
        }
        match read(socket, "read-run", run, self.all).await {
            Err(error) if error.code() == Some(ErrorCode::NotFound) => {
                let again = read(socket, "replay-run", run, self.all).await;
                again.map_err(|_| error)
            }
            told => told,
        }
    }
}

async fn read(socket: &mut Socket, operation: &str, run: &str, all: bool) -> Result<Vec<Step>> {
    let request = json!({"operation": operation, "run": run, "all": all});
    let mut replies = socket.start(&Call::global("requests", request)).await?;
    let mut reader = Reader::default();
    loop {
        match replies.next().await {
            Ok(Some(reply)) if missing(&reply).is_some() => {
                return Err(Error::Service {
                    kind: ErrorCode::NotFound.as_str().to_owned(),
                    message: "parts of the run are not kept".to_owned(),
                });
            }
            Ok(Some(reply)) => reader.add(&reply, goal),
            Ok(None) => return Ok(reader.steps()),
            // So it ended, unless nothing of it was told.
            Err(Error::Service { kind, message }) if !reader.is_empty() => {
                reader.fail(&format!("{kind}: {message}"));
                return Ok(reader.steps());
            }
            Err(error) => return Err(error),
        }
    }
}

/// The question of a session, as its entry in the trace says it.
fn goal(reply: &Value) -> String {
    let triples = triples_of(reply, "explain_triples");
    let said = triples
        .into_iter()
        .find_map(|triple| match (triple.p?, triple.o?) {
            (Term::Iri(p), Term::Literal { value, .. }) if p == tg::QUERY => Some(value),
            _ => None,
        });
    said.unwrap_or_default()
}
