//! Asks the model for the next decision, passing on its thought and answer while they grow.

use std::collections::BTreeMap;

use futures::FutureExt;
use tg_clients::prompt::{Prompts, Spent};
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;

use super::execution::StepExecution;
use crate::engine::citing::{Answer, Cited};
use crate::engine::decision::{Decision, Taken, Usage};
use crate::engine::parser::{Choice, ParseError, Parsed, Progress, ReplyParser};
use crate::engine::prompt::{self, PROMPT};
use crate::engine::toolset::{Tool, ToolSet};
use crate::error::Stop;
use crate::store::{Piece, PieceKind};

/// Bytes of text read after the decision is complete, waiting for the token counts.
const PATIENCE_BYTES: usize = 512;
/// Bytes of a reply kept to show it to the model again.
const KEPT: usize = 4096;
/// Times a model call that broke off unheard is made again.
const RETRIES: u32 = 2;

/// What the asker got of the model's text in this step.
#[derive(Default)]
struct Shown {
    thought: Vec<String>,
    thought_ended: bool,
    answer: Vec<String>,
    /// What a call that is made again need not say once more.
    said_thought: Said,
    said_answer: Said,
}

impl Shown {
    /// What was shown by a process that died.
    fn before(heard: Vec<Piece>) -> Self {
        let mut shown = Self::default();
        for piece in heard {
            shown.add(&piece);
        }
        shown.begin_again();
        shown
    }

    fn add(&mut self, piece: &Piece) {
        match piece.kind {
            PieceKind::Answer => self.answer.push(piece.text.clone()),
            kind => {
                self.thought.push(piece.text.clone());
                self.thought_ended |= kind == PieceKind::ThoughtEnd;
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.thought.is_empty() && self.answer.is_empty()
    }

    /// The model is called again: what it repeats is not shown twice.
    fn begin_again(&mut self) {
        self.said_thought = Said::new(&self.thought);
        self.said_answer = Said::new(&self.answer);
    }
}

/// A text that was said before.
#[derive(Default)]
struct Said {
    text: String,
    at: usize,
}

impl Said {
    fn new(pieces: &[String]) -> Self {
        Self {
            text: pieces.concat(),
            at: 0,
        }
    }

    fn is_over(&self) -> bool {
        self.at == self.text.len()
    }

    /// The part of a piece that is new. Where another text is said this time, it begins on a new line.
    fn unsaid(&mut self, piece: String) -> String {
        let (before, rest) = self.text.split_at(self.at);
        if rest.starts_with(&piece) {
            self.at += piece.len();
            return String::new();
        }
        let new = match piece.strip_prefix(rest) {
            Some(new) => new.to_owned(),
            None => format!("\n{before}{piece}"),
        };
        self.at = self.text.len();
        new
    }
}

impl StepExecution {
    /// The model's decision; after replies that cannot be read it is told why and asked again.
    pub(super) async fn think(&mut self, tools: &ToolSet) -> Result<Decision, Stop> {
        let run = self.run.clone();
        let available = tools.available(&run);
        let additional = self.additional_context();
        let mut shown = Shown::before(std::mem::take(&mut self.heard));
        let mut usage = Usage::default();
        let mut unread: Option<(String, ParseError)> = None;
        for _ in 0..=self.agent.options.repairs {
            let known = unread.as_ref().map(|(text, fault)| (text.as_str(), fault));
            let terms = prompt::terms(&run, &available, additional.as_deref(), known);
            let (text, parsed) = self.ask_model(&terms, &mut shown, &mut usage).await?;
            match parsed.choice {
                Ok(choice) => {
                    return self
                        .decision(choice, &parsed.thought, shown, usage, &available)
                        .await;
                }
                Err(fault) => {
                    metrics::counter!("tg_agent_unreadable_replies_total").increment(1);
                    tracing::debug!(%fault, "a model's reply cannot be read");
                    unread = Some((text, fault));
                }
            }
        }
        let detail = unread.map_or_else(String::new, |(_, fault)| fault.to_string());
        self.unreadable(detail, shown, usage, &available).await
    }

    fn additional_context(&self) -> Option<String> {
        let value = self
            .cx
            .config()
            .get(self.cx.workspace(), "agent", "additional-context")?;
        // Written as plain text, or, by some tools, as a JSON string.
        Some(serde_json::from_str(&value).unwrap_or_else(|_| value.to_string()))
    }

    async fn decision(
        &mut self,
        choice: Choice,
        thought: &str,
        mut shown: Shown,
        usage: Usage,
        available: &[&Tool],
    ) -> Result<Decision, Stop> {
        self.end_thought(&mut shown).await?;
        if shown.thought.is_empty() && !thought.is_empty() {
            shown.thought.push(thought.to_owned());
        }
        let (taken, cited) = match choice {
            Choice::Action { name, arguments } => {
                (Taken::Action { name, arguments }, Cited::default())
            }
            Choice::Answer(text) => {
                let mut cited = Answer::whole(&self.run.citations, &text);
                let text = std::mem::take(&mut cited.text);
                (Taken::Answer { text }, cited)
            }
        };
        Ok(Decision {
            citations: cited.citations,
            refused: cited.refused,
            ..decided(taken, shown, usage, available)
        })
    }

    async fn unreadable(
        &mut self,
        detail: String,
        mut shown: Shown,
        usage: Usage,
        available: &[&Tool],
    ) -> Result<Decision, Stop> {
        self.end_thought(&mut shown).await?;
        Ok(decided(
            Taken::Unreadable { detail },
            shown,
            usage,
            available,
        ))
    }

    /// One model call, made again if it broke off before the asker got anything, or if the run goes on
    /// without an asker.
    async fn ask_model(
        &mut self,
        terms: &BTreeMap<String, String>,
        shown: &mut Shown,
        usage: &mut Usage,
    ) -> Result<(String, Parsed), Stop> {
        let mut tries = 0;
        loop {
            let heard = shown.thought.len() + shown.answer.len();
            let result = self.ask_once(terms, shown, usage).await;
            let error = match result {
                Ok(reply) => return Ok(reply),
                Err(Asked::Stop(stop)) => return Err(stop),
                Err(Asked::Failed(error)) => error,
            };
            let unheard = heard == shown.thought.len() + shown.answer.len();
            let broke_off = matches!(
                error.code(),
                ErrorCode::Interrupted | ErrorCode::Unavailable
            );
            if !(unheard || self.detach)
                || !broke_off
                || tries == RETRIES
                || self.cx.deadline.passed()
            {
                return Err(self.ending(&error));
            }
            tries += 1;
            if !unheard {
                shown.begin_again();
            }
        }
    }

    async fn ask_once(
        &mut self,
        terms: &BTreeMap<String, String>,
        shown: &mut Shown,
        usage: &mut Usage,
    ) -> Result<(String, Parsed), Asked> {
        let started = Instant::now();
        let prompts = Prompts::of_flow(&self.cx);
        let mut answer = prompts.stream(PROMPT, terms.clone(), self.run.streaming)?;
        let mut parser = ReplyParser::default();
        let known = self.run.citations.clone();
        let mut cited = Answer::new(&known);
        let (mut kept, mut beyond) = (String::new(), 0);
        if !shown.is_empty() && !shown.thought_ended && shown.said_thought.is_over() {
            // A second reply goes on in the same thought, on a new line.
            self.say_all(vec![(PieceKind::Thought, "\n".to_owned())], shown)
                .await?;
        }
        while let Some(piece) = answer.next().await? {
            let mut progress = Progress::default();
            let mut piece = Some(piece);
            // Pieces that are here already travel together.
            while let Some(next) = piece {
                if parser.is_complete() {
                    beyond += next.text.len();
                }
                if kept.len() < KEPT {
                    kept.push_str(&next.text);
                }
                join(&mut progress, parser.push(&next.text));
                piece = answer.next().now_or_never().transpose()?.flatten();
            }
            progress.answer = cited.push(&progress.answer);
            self.show(progress, shown).await?;
            if beyond > PATIENCE_BYTES {
                // The model writes on what is never read; dropping the question stops it.
                break;
            }
        }
        let spent = answer.spent();
        drop(answer);
        let (mut rest, parsed) = parser.finish();
        rest.answer = cited.push(&rest.answer);
        rest.answer.push_str(&cited.finish().0);
        self.show(rest, shown).await?;
        usage.add(&used(spent, started));
        Ok((kept, parsed))
    }

    /// Passes on what became certain, if the asker wants pieces.
    async fn show(&mut self, mut progress: Progress, shown: &mut Shown) -> Result<(), Stop> {
        if !self.run.streaming {
            return Ok(());
        }
        progress.thought = shown.said_thought.unsaid(progress.thought);
        progress.answer = shown.said_answer.unsaid(progress.answer);
        let ends = progress.thought_ended && !shown.thought_ended;
        let mut certain = Vec::new();
        if !shown.thought_ended && (ends || !progress.thought.is_empty()) {
            let kind = match ends {
                true => PieceKind::ThoughtEnd,
                false => PieceKind::Thought,
            };
            certain.push((kind, progress.thought));
        }
        if !progress.answer.is_empty() {
            certain.push((PieceKind::Answer, progress.answer));
        }
        self.say_all(certain, shown).await
    }

    async fn say_all(
        &mut self,
        pieces: Vec<(PieceKind, String)>,
        shown: &mut Shown,
    ) -> Result<(), Stop> {
        let pieces: Vec<Piece> = pieces
            .into_iter()
            .map(|(kind, text)| Piece { kind, text })
            .collect();
        pieces.iter().for_each(|piece| shown.add(piece));
        self.say(pieces).await
    }

    async fn end_thought(&mut self, shown: &mut Shown) -> Result<(), Stop> {
        if shown.thought.is_empty() || shown.thought_ended {
            return Ok(());
        }
        self.say_all(vec![(PieceKind::ThoughtEnd, String::new())], shown)
            .await
    }
}

/// How a model call failed.
enum Asked {
    Failed(Error),
    Stop(Stop),
}

impl From<Error> for Asked {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Stop> for Asked {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// What one call took.
fn used(spent: Spent, started: Instant) -> Usage {
    Usage {
        in_token: spent.in_token.unwrap_or(0),
        out_token: spent.out_token.unwrap_or(0),
        model: spent.model.unwrap_or_default(),
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

fn join(all: &mut Progress, more: Progress) {
    all.thought.push_str(&more.thought);
    all.thought_ended |= more.thought_ended;
    all.answer.push_str(&more.answer);
}

fn decided(taken: Taken, shown: Shown, usage: Usage, available: &[&Tool]) -> Decision {
    Decision {
        thought: shown.thought,
        answer: shown.answer,
        taken,
        usage,
        candidates: available.iter().map(|tool| tool.name.clone()).collect(),
        citations: Vec::new(),
        refused: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_not_said_again() {
        let mut said = Said::new(&["The ans".to_owned(), "wer".to_owned()]);
        assert_eq!(said.unsaid("The".to_owned()), "");
        assert_eq!(said.unsaid(" answer is".to_owned()), " is");
        assert!(said.is_over());
        assert_eq!(said.unsaid(" 42".to_owned()), " 42");
    }

    #[test]
    fn another_text_begins_on_a_new_line() {
        let mut said = Said::new(&["The answer".to_owned()]);
        assert_eq!(said.unsaid("The ".to_owned()), "");
        assert_eq!(said.unsaid("end".to_owned()), "\nThe end");
        assert_eq!(said.unsaid(".".to_owned()), ".");
    }
}
