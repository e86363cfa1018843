//! One question through the backends: attempts, pauses between them, the next model where one has nobody left.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::time::{Instant, sleep_until, timeout};

use super::Router;
use super::held::Entered;
use crate::engine::router::bucket::reserved;
use crate::engine::router::choice::Strategy;
use crate::engine::router::pauses::Policy;
use crate::engine::router::serving::Server;
use crate::engine::tokens::estimated;
use crate::error::LlmError;
use crate::model::{ChatEvent, ChatRequest, ChatStream, Completion};
use crate::traced;

/// Longest wait for the first piece of a model while another is left to be asked instead.
const HURRIED: Duration = Duration::from_secs(60);
/// The same of an answer in pieces.
const HURRIED_PIECE: Duration = Duration::from_secs(30);

/// The first event and those that follow.
type Opened = (ChatEvent, ChatStream);

/// What follows from a failure before the first piece.
#[derive(Debug, PartialEq, Eq)]
enum Judged {
    /// It may pass: the backend is tried again or left alone.
    Passes,
    /// This backend never answers this question; another may.
    Elsewhere,
    /// Nobody answers this question.
    Final,
}

/// What follows from a failure. A wrong key or question does not count against the backend's health. Nor does a timeout of an
/// answer that comes as a whole: another try would take as long.
fn judged(error: &LlmError, streaming: bool) -> Judged {
    match error {
        LlmError::Timeout if !streaming => Judged::Final,
        LlmError::RateLimited { .. }
        | LlmError::Unavailable(_)
        | LlmError::BrokenOff
        | LlmError::Timeout => Judged::Passes,
        LlmError::Auth(_)
        | LlmError::Quota(_)
        | LlmError::UnknownModel(_)
        | LlmError::Malformed
        | LlmError::Interrupted
        | LlmError::Withheld
        | LlmError::SchemaAndTools
        | LlmError::Unsupported => Judged::Elsewhere,
        _ => Judged::Final,
    }
}

/// What was tried for one question with one model.
struct Tries {
    began: Instant,
    /// Characters of the question.
    characters: usize,
    servers: Vec<Server>,
    /// How often each was tried.
    tried: Vec<u32>,
    /// Those that never answer this question.
    refused: Vec<bool>,
    /// Those whose failure was noted: they are no longer judged by it within this question.
    noted: Vec<bool>,
    /// When each may be asked again.
    ready: Vec<Option<Instant>>,
    /// Who failed last, as long as that is not noted.
    open: Option<(usize, LlmError)>,
    /// How often somebody was asked, those of the models before included.
    made: u32,
}

impl Router {
    /// Asks until somebody begins to answer. From the first piece on nothing is tried again.
    pub(crate) async fn open(
        self: &Arc<Self>,
        request: &ChatRequest,
        until: Instant,
    ) -> Result<Opened, LlmError> {
        let chain = self.chain(request);
        let (mut last, mut made) = (None, 0);
        for (at, model) in chain.iter().enumerate() {
            let later = chain[at + 1..].iter().any(|model| self.is_available(model));
            let policy = match later {
                true => self.policy.hurried(),
                false => self.policy,
            };
            let hurried = match request.streaming {
                true => HURRIED_PIECE,
                false => HURRIED,
            };
            let patience = later.then_some(hurried);
            let asked = self.asked(request, model, policy, patience, until, &mut made);
            match asked.await {
                Ok(opened) => return Ok(opened),
                Err(error) => {
                    let left = at + 1 < chain.len() && Instant::now() < until;
                    if ends(&error, request.streaming, left) {
                        return Err(error);
                    }
                    last = Some(worse(last, error));
                }
            }
        }
        Err(last.unwrap_or(LlmError::UnknownModel(None)))
    }

    /// Whether anybody who has the model may be asked.
    fn is_available(&self, model: &str) -> bool {
        let health = self.health.lock();
        let servers = self.servers(model);
        let mut ids = servers.iter().map(|server| self.id(server));
        ids.any(|id| health.resting(&id, Instant::now()).is_none())
    }

    /// Asks those who have a model.
    async fn asked(
        self: &Arc<Self>,
        request: &ChatRequest,
        model: &str,
        policy: Policy,
        patience: Option<Duration>,
        until: Instant,
        made: &mut u32,
    ) -> Result<Opened, LlmError> {
        let servers = self.servers(model);
        let many = servers.len();
        let mut tries = Tries {
            began: Instant::now(),
            characters: request.characters(),
            servers,
            tried: vec![0; many],
            refused: vec![false; many],
            noted: vec![false; many],
            ready: vec![None; many],
            open: None,
            made: *made,
        };
        let tried = self
            .tried(request, &mut tries, policy, patience, until)
            .await;
        *made = tries.made;
        if tried.is_err()
            && let Some((at, error)) = tries.open.take()
        {
            self.failed(&tries.servers[at], tries.began, &error);
        }
        tried
    }

    async fn tried(
        self: &Arc<Self>,
        request: &ChatRequest,
        tries: &mut Tries,
        policy: Policy,
        patience: Option<Duration>,
        until: Instant,
    ) -> Result<Opened, LlmError> {
        let mut last = None;
        // The end of the pause after the last failure.
        let mut paused = None;
        for attempt in 0..=policy.retries {
            let Some(at) = self.next(tries, until) else {
                return Err(last.unwrap_or_else(|| self.nobody(&tries.servers)));
            };
            if let Some((failed, error)) = tries.open.take_if(|(failed, _)| *failed != at) {
                self.failed(&tries.servers[failed], tries.began, &error);
                tries.noted[failed] = true;
            }
            // Failover goes to another one at once; each one's own pause is waited for.
            let paused_for_all = paused
                .take()
                .filter(|_| self.strategy != Strategy::Failover);
            if let Some(ready) = tries.ready[at].max(paused_for_all) {
                if ready >= until {
                    return Err(last.unwrap_or(LlmError::Timeout));
                }
                sleep_until(ready).await;
            }
            tries.tried[at] += 1;
            tries.made += 1;
            let server = tries.servers[at].clone();
            let counts = (tries.characters, tries.made);
            let asked = self.attempt(request, counts, server, patience);
            let error = match asked.await {
                Ok(opened) => return Ok(opened),
                Err(error) => error,
            };
            let judged = judged(&error, request.streaming);
            if judged != Judged::Passes {
                self.refused(&tries.servers[at], &error);
            }
            match judged {
                Judged::Final => return Err(error),
                Judged::Elsewhere => {
                    tries.refused[at] = true;
                    last = Some(worse(last, error));
                    continue;
                }
                Judged::Passes if !tries.noted[at] => tries.open = Some((at, error.clone())),
                Judged::Passes => {}
            }
            let pause = policy.pause(attempt + 1, error.pause(), (self.chance)());
            last = Some(error);
            // A pause beyond the range of the clock ends the tries.
            paused = Some(Instant::now().checked_add(pause).unwrap_or(until));
            tries.ready[at] = paused;
        }
        Err(last.unwrap_or_else(|| self.nobody(&tries.servers)))
    }

    /// Logs a refusal with the backend's name, which the asker does not get.
    fn refused(&self, server: &Server, error: &LlmError) {
        let backend = &self.abouts[server.at].name;
        let (model, rests) = (&server.model, error.outage().is_some());
        tracing::warn!(backend, model, %error, rests, "a model backend refused a question");
    }

    /// Who is tried next, of those that may be asked in time.
    fn next(&self, tries: &Tries, until: Instant) -> Option<usize> {
        let candidates: Vec<_> = {
            let health = self.health.lock();
            let left = tries.servers.iter().enumerate().filter(|(at, server)| {
                let rests = || health.resting(&self.id(server), Instant::now()).is_some();
                let is_late = tries.ready[*at].is_some_and(|ready| ready >= until);
                !tries.refused[*at] && !is_late && (tries.tried[*at] > 0 || !rests())
            });
            left.map(|(at, server)| self.candidate(server, tries.tried[at]))
                .collect()
        };
        let chosen = self.choose(&candidates)?;
        tries.servers.iter().position(|server| server.at == chosen)
    }

    /// Why nobody is asked at all.
    fn nobody(&self, servers: &[Server]) -> LlmError {
        let health = self.health.lock();
        let left = servers
            .iter()
            .filter_map(|server| health.resting(&self.id(server), Instant::now()));
        left.min()
            .map_or(LlmError::UnknownModel(None), LlmError::Resting)
    }

    async fn attempt(
        self: &Arc<Self>,
        request: &ChatRequest,
        (characters, made): (usize, u32),
        server: Server,
        patience: Option<Duration>,
    ) -> Result<Opened, LlmError> {
        let began = Instant::now();
        let (held, about) = (&self.backends[server.at], &self.abouts[server.at]);
        let mut entered = held.enter(&request.workspace, reserved(characters)).await?;
        // What is asked for by the name that its backend has for it is not copied: a question may be large.
        let own = match request.model.as_ref() == Some(&server.model) {
            true => Cow::Borrowed(request),
            false => Cow::Owned(ChatRequest {
                model: Some(server.model.clone()),
                ..request.clone()
            }),
        };
        let patience = patience.map_or(about.timeout, |most| most.min(about.timeout));
        let opening = async {
            let mut events = traced::chat(&*held.client, &own, self.label(server.at)).await?;
            let first = events.next().await.ok_or(LlmError::BrokenOff)??;
            Ok((first, events))
        };
        let opened = timeout(patience, opening)
            .await
            .unwrap_or(Err(LlmError::Timeout));
        if self.is_operators {
            let outcome = opened
                .as_ref()
                .map_or_else(|error| error.code().as_str(), |_| "ok");
            metrics::counter!(
                "tg_model_attempts_total", "backend" => about.name.clone(), "outcome" => outcome
            )
            .increment(1);
        }
        let (first, rest) = opened.inspect_err(|error| {
            // A backend that answers too late has read the question.
            if *error != LlmError::Timeout {
                entered.used = 0;
            }
        })?;
        let mut answer = Answering {
            router: self.clone(),
            server,
            began,
            entered,
            characters,
            made,
            streaming: request.streaming,
            rest,
        };
        // The first event may be the end.
        let first = answer.seen(Ok(first))?;
        let is_over = matches!(first, ChatEvent::Done(_));
        let rest = stream::unfold((!is_over).then_some(answer), Answering::next);
        Ok((first, rest.boxed()))
    }
}

/// An answer on its way. It holds its place and its tokens.
struct Answering {
    router: Arc<Router>,
    server: Server,
    began: Instant,
    entered: Entered,
    /// Characters of the question and of the answer so far.
    characters: usize,
    /// How often somebody was asked until it began.
    made: u32,
    /// Wanted in pieces.
    streaming: bool,
    rest: ChatStream,
}

impl Answering {
    async fn next(state: Option<Self>) -> Option<(Result<ChatEvent, LlmError>, Option<Self>)> {
        let mut answer = state?;
        let event = answer.rest.next().await.unwrap_or(Err(LlmError::BrokenOff));
        let event = answer.seen(event);
        let more = matches!(event, Ok(ChatEvent::Delta(_) | ChatEvent::Thinking(_)));
        Some((event, more.then_some(answer)))
    }

    /// Notes what an event reports about the backend, and adds the backend to the last event.
    fn seen(&mut self, event: Result<ChatEvent, LlmError>) -> Result<ChatEvent, LlmError> {
        match event {
            Ok(ChatEvent::Delta(ref piece) | ChatEvent::Thinking(ref piece)) => {
                self.characters += piece.chars().count();
                // A client that leaves in the middle has used the tokens so far.
                self.entered.used = self.entered.used.max(self.guessed());
                event
            }
            Ok(ChatEvent::Done(completion)) => {
                self.entered.used = self.used(&completion);
                self.router.answered(&self.server);
                let backend = self.router.label(self.server.at).to_owned();
                Ok(ChatEvent::Done(Completion {
                    backend,
                    attempts: self.made,
                    ..completion
                }))
            }
            Err(error) => {
                if judged(&error, self.streaming) == Judged::Passes {
                    self.router.failed(&self.server, self.began, &error);
                }
                Err(error)
            }
        }
    }

    fn guessed(&self) -> u64 {
        u64::try_from(estimated(self.characters)).unwrap_or(0)
    }

    fn used(&self, completion: &Completion) -> u64 {
        let reported = u64::try_from(completion.counts.tokens().total).unwrap_or(0);
        match reported {
            0 => self.guessed(),
            reported => reported,
        }
    }
}

/// Whether no other model is asked after a failure. Another model may be quicker with a whole answer, so a timeout ends the
/// question only where none is `left`.
fn ends(error: &LlmError, streaming: bool, left: bool) -> bool {
    match error {
        LlmError::Timeout if left => false,
        error => judged(error, streaming) == Judged::Final && !is_ours(error),
    }
}

/// Whether the failure means that no backend was asked.
fn is_ours(error: &LlmError) -> bool {
    matches!(error, LlmError::Resting(_))
}

/// Which of two failures to report: one that may pass before a refusal, and any before the failure that no backend was asked.
fn worse(before: Option<LlmError>, now: LlmError) -> LlmError {
    let rank = |error: &LlmError| match (error, judged(error, true)) {
        (LlmError::Resting(_), _) => 1,
        (LlmError::UnknownModel(None), _) => 0,
        (_, Judged::Passes) => 3,
        _ => 2,
    };
    match before {
        Some(LlmError::Resting(before)) if is_ours(&now) => {
            let left = now.pause().unwrap_or(before);
            LlmError::Resting(left.min(before))
        }
        Some(before) if rank(&before) > rank(&now) => before,
        _ => now,
    }
}
