//! `tg ask`: a question to whoever of the flow answers best: its agent, its documents or its graph.

use clap::Args;

use super::answered::must_exist;
use super::asking::{Question, With};
use crate::args::{InCollection, Options};
use crate::client::Result;
use crate::commands::llm::usage;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg ask`.
#[derive(Debug, Args)]
pub struct AskQuestion {
    #[command(flatten)]
    place: InCollection,
    /// The question
    #[arg(required = true, value_name = "QUESTION")]
    question: Vec<String>,
    /// Who answers [default: the first of these that the flow has]
    #[arg(long, value_enum, value_name = "SERVICE")]
    with: Option<With>,
    /// Say how many tokens were used, on stderr
    #[arg(long)]
    show_usage: bool,
}

impl Command for AskQuestion {
    const NAME: &'static str = "ask";
    const ABOUT: &'static str = "Ask a question, and get an answer with its sources";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut socket = session.socket().await?;
        must_exist(&mut socket, &self.place.collection).await?;
        let with = With::chosen(self.with, &mut socket, &self.place.flow.flow_id).await?;
        let text = self.question.join(" ");
        let question = Question {
            text: &text,
            ..Question::default()
        };
        let told = with
            .ask(session, &mut socket, &self.place, question)
            .await?;
        if session.out.is_json() {
            session.out.json(&told.to_json(with))?;
        }
        let out = &mut session.out;
        told.answered.end(out, &mut socket, &self.place).await;
        socket.close().await;
        if self.show_usage {
            session.out.talk(usage(&told.last));
        }
        Ok(())
    }
}
