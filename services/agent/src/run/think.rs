//! Asks the model for the next decision, passing on its thought and answer while they grow.

use std::collections::BTreeMap;

use tg_schemas::{Error, ErrorCode};

use super::again::{RETRIES, broke_off};
use super::compact::{View, is_too_long};
use super::execution::StepExecution;
use super::hearing::{Hearing, Unheard};
use crate::engine::bounds::own_steps;
use crate::engine::citing::{Answer, Cited};
use crate::engine::compacting::given;
use crate::engine::decision::{Chosen, Decision, Taken, Usage};
use crate::engine::exchange::Heard;
use crate::engine::guards::budget;
use crate::engine::parser::{Choice, ParseError, Parsed, Progress, ReplyParser};
use crate::engine::prompt::{self, PROMPT};
use crate::engine::toolset::{Tool, ToolSet};
use crate::error::Stop;
use crate::store::{Piece, PieceKind};

/// Bytes of text read after the decision is complete, waiting for the token counts.
const PATIENCE_BYTES: usize = 512;
/// Bytes of a reply kept to show it to the model again.
const KEPT: usize = 4096;

/// What the asker got of the model's text in this step.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) thought: Vec<String>,
    pub(super) thought_ended: bool,
    answer: Vec<String>,
    /// What the model thought of its own before its reply, as far as the asker was not told it in pieces; `None`: nothing.
    thinking: Option<String>,
    /// What a call that is made again need not say once more.
    said_thought: Said,
    said_answer: Said,
}

impl Shown {
    /// A thought that is sent as a whole.
    pub(super) fn whole(thought: String) -> Self {
        Self {
            thought: vec![thought],
            thought_ended: true,
            ..Self::default()
        }
    }

    /// What was shown by a process that died.
    pub(super) fn before(heard: Vec<Piece>) -> Self {
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

    /// The model thinks before its reply.
    fn think(&mut self, thinking: &str) {
        self.thinking.get_or_insert_default().push_str(thinking);
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

/// A text that was sent before.
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
    /// The model's decision, from what it can read of the steps before.
    pub(super) async fn think(&mut self, tools: &ToolSet) -> Result<Decision, Stop> {
        let mut view = self.view().await?;
        let mut decision = self.think_of(&mut view, tools).await?;
        if let Some(mut compacted) = view.compacted {
            compacted.given = given(&self.run, compacted.steps).to_vec();
            decision.usage.add(&compacted.usage);
            decision.compacted = Some(compacted);
        }
        Ok(decision)
    }

    /// The model's decision. After an unreadable reply it is asked again, with the reason.
    async fn think_of(&mut self, view: &mut View, tools: &ToolSet) -> Result<Decision, Stop> {
        let available = tools.available(&self.run);
        let mut shown = Shown::before(std::mem::take(&mut self.heard));
        let mut usage = Usage::default();
        let mut unread: Option<(String, ParseError)> = None;
        for _ in 0..=self.agent.options.repairs {
            let known = unread.as_ref().map(|(text, fault)| (text.as_str(), fault));
            let told = (&available[..], known);
            let (text, parsed) = self.reply(view, told, &mut shown, &mut usage).await?;
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

    /// A reply of the model; it is shown less where that is too much.
    async fn reply(
        &mut self,
        view: &mut View,
        (available, unread): (&[&Tool], Option<(&str, &ParseError)>),
        shown: &mut Shown,
        usage: &mut Usage,
    ) -> Result<(String, Parsed), Stop> {
        let limit = self.most_steps();
        let nudge = prompt::nudge(own_steps(&self.run).len(), limit);
        let told: Vec<String> = self.additional().into_iter().chain(nudge).collect();
        let additional = (!told.is_empty()).then(|| told.join("\n\n"));
        loop {
            let terms = prompt::terms(view.of(&self.run), available, additional.as_deref(), unread);
            let asked = (PROMPT, &terms, ReplyParser::default as fn() -> ReplyParser);
            match self.ask_model(asked, shown, usage).await? {
                Reply::Read(text, parsed) => return Ok((text, parsed)),
                Reply::TooLong(error) => {
                    if !self.recover(view).await? {
                        return Err(self.ending(&error));
                    }
                }
            }
        }
    }

    pub(super) async fn decision(
        &mut self,
        choice: Choice,
        thought: &str,
        mut shown: Shown,
        usage: Usage,
        available: &[&Tool],
    ) -> Result<Decision, Stop> {
        self.end_thought(&mut shown).await?;
        let stated = shown.thinking.take().map(|thinking| {
            if shown.thought.is_empty() && !thinking.is_empty() {
                let parts = [thinking.trim_end(), thought];
                let parts = parts.into_iter().filter(|part| !part.is_empty());
                shown.thought.push(parts.collect::<Vec<_>>().join("\n"));
            }
            thought.to_owned()
        });
        if shown.thought.is_empty() && !thought.is_empty() {
            shown.thought.push(thought.to_owned());
        }
        let (taken, cited) = match choice {
            Choice::Action { name, arguments } => {
                (Taken::Action { name, arguments }, Cited::default())
            }
            Choice::Actions(calls) => {
                let calls = calls.into_iter().map(|(name, arguments)| Chosen {
                    name,
                    arguments,
                    guard: None,
                    place: None,
                });
                let calls = calls.collect();
                (Taken::Actions { calls }, Cited::default())
            }
            Choice::Answer(text) => {
                let mut cited = Answer::whole(&self.run.citations, &text);
                let text = std::mem::take(&mut cited.text);
                (Taken::Answer { text }, cited)
            }
        };
        Ok(Decision {
            stated,
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

    /// One model call, made again if it broke off before the asker got anything of an answer, or if the run goes on
    /// without an asker.
    pub(super) async fn ask_model(
        &mut self,
        asked: Asking<'_>,
        shown: &mut Shown,
        usage: &mut Usage,
    ) -> Result<Reply, Stop> {
        let mut tries = 0;
        loop {
            let heard = shown.thought.len() + shown.answer.len();
            let result = self.ask_once(asked, shown, usage).await;
            let error = match result {
                Ok((text, parsed)) => return Ok(Reply::Read(text, parsed)),
                Err(Unheard::Stop(stop)) => return Err(stop),
                Err(Unheard::Failed(error)) => error,
            };
            let unheard = heard == shown.thought.len() + shown.answer.len();
            if unheard && is_too_long(&error) {
                return Ok(Reply::TooLong(error));
            }
            // A thought goes on where it was; nobody acts on half of an answer.
            if !(unheard || self.detach || shown.answer.is_empty())
                || !(broke_off(&error) || (!unheard && error.code() == ErrorCode::Provider))
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
        asked: Asking<'_>,
        shown: &mut Shown,
        usage: &mut Usage,
    ) -> Result<(String, Parsed), Unheard> {
        self.ask_again().await?;
        let mut hearing = self.hear(asked.0, asked.1)?;
        let mut came = 0;
        let heard = self.listen(&mut hearing, asked, shown, &mut came).await;
        match heard {
            Ok((kept, parsed, beyond)) => {
                let used = self.end_hearing(hearing, |used| {
                    if beyond > PATIENCE_BYTES && used.in_token + used.out_token == 0 {
                        // Broken off before it was told: as much as such texts usually are.
                        used.in_token = budget::tokens(size(asked.1));
                        used.out_token = budget::tokens(came);
                    }
                })?;
                if self.run.streaming {
                    self.keep_notes().await?;
                }
                usage.add(&used);
                Ok((kept, parsed))
            }
            Err(Unheard::Failed(error)) => {
                let mut used = hearing.broken(&self.cx, (size(asked.1), came));
                self.list(&mut used, true);
                usage.add(&used);
                self.note_failed(&error, used)?;
                Err(error.into())
            }
            Err(stop) => Err(stop),
        }
    }

    /// What is kept of a reply, what was read of it, and bytes of it that were not.
    async fn listen(
        &mut self,
        hearing: &mut Hearing,
        (prompt, terms, parser): Asking<'_>,
        shown: &mut Shown,
        came: &mut usize,
    ) -> Result<(String, Parsed, usize), Unheard> {
        let mut parser = parser();
        let known = self.run.citations.clone();
        let mut cited = Answer::new(&known);
        let (mut kept, mut beyond) = (String::new(), 0);
        if !shown.is_empty() && !shown.thought_ended && shown.said_thought.is_over() {
            // A second reply goes on in the same thought, on a new line.
            self.say_all(vec![(PieceKind::Thought, "\n".to_owned())], shown)
                .await?;
        }
        if let Some(thinking) = &mut shown.thinking {
            thinking.clear();
        }
        // What the reply states begins on a line of its own.
        let mut gap = "";
        while let Some(pieces) = self.hear_more(hearing, (prompt, terms)).await? {
            let mut progress = Progress::default();
            // Pieces that are here already travel together.
            for piece in pieces {
                let piece = match piece {
                    Heard::Text(piece) => piece,
                    Heard::Thinking { thinking } => {
                        // It is shown, and never read.
                        *came += thinking.len();
                        gap = if thinking.ends_with('\n') { "" } else { "\n" };
                        shown.think(&thinking);
                        progress.thought.push_str(&thinking);
                        continue;
                    }
                };
                *came += piece.len();
                if parser.is_complete() {
                    beyond += piece.len();
                }
                if kept.len() < KEPT {
                    kept.push_str(&piece);
                }
                let more = parser.push(&piece);
                if !more.thought.is_empty() {
                    progress.thought.push_str(std::mem::take(&mut gap));
                }
                join(&mut progress, more);
            }
            progress.answer = cited.push(&progress.answer);
            self.show(progress, shown).await?;
            if beyond > PATIENCE_BYTES {
                // The model writes on what is never read; dropping the question stops it.
                break;
            }
        }
        let (mut rest, parsed) = parser.finish();
        rest.answer = cited.push(&rest.answer);
        rest.answer.push_str(&cited.finish().0);
        self.show(rest, shown).await?;
        Ok((kept, parsed, beyond))
    }

    /// Passes on what became certain, if the asker wants pieces.
    async fn show(&mut self, mut progress: Progress, shown: &mut Shown) -> Result<(), Stop> {
        if !self.run.streaming {
            return Ok(());
        }
        progress.thought = shown.said_thought.unsaid(progress.thought);
        progress.answer = shown.said_answer.unsaid(progress.answer);
        // A thought of the model's own ends where the answer begins, whatever the reply states.
        let begun = !(shown.thought.is_empty() && progress.thought.is_empty());
        let answers = begun && !progress.answer.is_empty();
        let ends = (progress.thought_ended || answers) && !shown.thought_ended;
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
        if certain.is_empty() && shown.thought_ended {
            // The end of the thought may wait for what comes with the next piece.
            return Ok(());
        }
        self.say_all(certain, shown).await
    }

    pub(super) async fn say_all(
        &mut self,
        pieces: Vec<(PieceKind, String)>,
        shown: &mut Shown,
    ) -> Result<(), Stop> {
        let pieces: Vec<Piece> = pieces
            .into_iter()
            .map(|(kind, text)| Piece { kind, text })
            .collect();
        pieces.iter().for_each(|piece| shown.add(piece));
        match self.keep_end(&pieces) {
            true => Ok(()),
            false => self.say(pieces).await,
        }
    }

    async fn end_thought(&mut self, shown: &mut Shown) -> Result<(), Stop> {
        if shown.thought.is_empty() || shown.thought_ended {
            return Ok(());
        }
        self.say_all(vec![(PieceKind::ThoughtEnd, String::new())], shown)
            .await
    }
}

/// A prompt with its variables, and what reads the reply.
pub(super) type Asking<'a> = (&'a str, &'a BTreeMap<String, String>, fn() -> ReplyParser);

/// What came of a model call.
pub(super) enum Reply {
    /// A text, and what was read of it.
    Read(String, Parsed),
    /// The model was shown more than it reads.
    TooLong(Error),
}

/// Bytes that a prompt is filled with.
fn size(terms: &BTreeMap<String, String>) -> usize {
    terms.values().map(String::len).sum()
}

fn join(all: &mut Progress, more: Progress) {
    all.thought.push_str(&more.thought);
    all.thought_ended |= more.thought_ended;
    all.answer.push_str(&more.answer);
}

pub(super) fn decided(taken: Taken, shown: Shown, usage: Usage, available: &[&Tool]) -> Decision {
    Decision {
        thought: shown.thought,
        answer: shown.answer,
        stated: shown.thinking.map(|_| String::new()),
        usage,
        candidates: available.iter().map(|tool| tool.name.clone()).collect(),
        ..Decision::of(taken)
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
