//! The work of a turn: keeps the message, asks the agent and keeps its answer, in the order of the session's turns.

use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tg_clients::flow_records::ReadyFlows;
use tg_mesh::{Cx, LeasedStore, TaskKind, clock, warn_of};
use tg_schemas::operations::{Compacted, TenantSettings, TurnResult, WhenBusy};
use tg_schemas::{Error, ErrorCode, WorkspaceKey};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::asking::{Answered, Asking, Events, FAILED, Hearing, flow_of};
use super::continuing::{continued, shortened_by};
use super::recalling;
use super::retrieving::passages;
use super::summing::{Shortened, Shortener, Spent, Trigger, window_for};
use crate::engine::definition::Definition;
use crate::engine::summing::{is_announcement, is_due, surely_fits};
use crate::engine::transcript::{Said, TOLD, framing};
use crate::error::SessionsError;
use crate::pasts::{Past as Known, Pasts, size};
use crate::store::{
    self, Asked, Finished, LineageStore, Message, Role, Session, SessionStore, SqliteSessions,
    Surface,
};
use crate::trail::{ModelCall, Trail, Who};
use crate::turns::{Alone, Turn, Turns};

/// Bytes that are read of what was said since the turn before. Where that is more, all of it is read.
const MORE: usize = 64 << 10;

/// What a client is answered, of what an agent answered.
pub(super) fn result(
    cx: &Cx,
    agent: &str,
    session: Option<String>,
    answered: Answered,
) -> TurnResult {
    TurnResult {
        request_id: cx.request().unwrap_or(&cx.id).to_owned(),
        agent: agent.to_owned(),
        session_id: session,
        model: answered.model,
        content: answered.content,
        finish_reason: answered.finish_reason,
        stopped: answered.stopped,
        tool_calls: answered.tool_calls,
        usage: answered.usage,
        cost: answered.cost,
        compacted: None,
        error_message: answered.fault,
        context_chunks: Vec::new(),
        explain_session: answered.trace,
    }
}

/// A turn of a session or of a conversation.
pub(super) struct Work {
    /// Who answers.
    pub(super) agent: Arc<Definition>,
    /// Not held while the agent works: it may have to go to another process meanwhile.
    pub(super) store: Arc<LeasedStore<SqliteSessions>>,
    /// In which order.
    pub(super) turns: Arc<Turns>,
    /// What was said in it before, as far as that is known.
    pub(super) pasts: Arc<Pasts>,
    /// Which flows there are.
    pub(super) flows: Arc<ReadyFlows>,
    /// What the workspace says of its sessions.
    pub(super) settings: TenantSettings,
    /// Id of the session.
    pub(super) session: String,
    /// What the user says.
    pub(super) text: String,
    /// What the agent is told before the first message of the session.
    pub(super) opening: Option<String>,
    /// What happens while another turn is in progress.
    pub(super) when_busy: WhenBusy,
    /// Id of the message that must be the newest one of the user.
    pub(super) follows: Option<String>,
    /// Whether it has to be a turn that the same request began before.
    pub(super) repeats: bool,
    /// Whether an agent that fails is kept as an answer.
    pub(super) keeps_failure: bool,
    /// Most calls of tools.
    pub(super) calls: usize,
    /// Who reads what happens as it comes.
    pub(super) events: Option<Events>,
    /// How these show a message.
    pub(super) shows: fn(&Cx, &str, Message) -> Value,
    /// Whether the turn ends when its reader is gone.
    pub(super) ends_with_reader: bool,
    /// Euros for a dollar; 0: not set.
    pub(super) rate: f64,
    /// Where it is written down that there was a turn.
    pub(super) trail: Arc<Trail>,
    /// Who asked.
    pub(super) who: Who,
}

/// Where a turn runs: in the session that it was sent to, or in the one that continues it.
struct Place {
    session: Session,
    /// Whether an earlier attempt at the request made it.
    was_there: bool,
    compacted: Option<Compacted>,
    spent: Spent,
}

/// What an agent is told, and what it cost to make it fit.
struct Past {
    said: Vec<Arc<Said>>,
    spent: Spent,
    /// The passages that it is given.
    context: Vec<Vec<String>>,
}

impl Work {
    /// Runs the turn beside its caller: it goes on when the caller is gone. Returns its session, the message that began it, and its answer.
    pub(super) async fn run(self, cx: &Cx) -> Result<(String, Message, Finished), SessionsError> {
        let mut own = cx.outliving();
        let left = match self.ends_with_reader {
            true => cx.cancel.clone(),
            false => CancellationToken::new(),
        };
        own.cancel = cx.mesh.shutdown().child_token();
        let (tell, told) = oneshot::channel();
        cx.mesh.spawn(TaskKind::Handler, async move {
            let started = Instant::now();
            let mut made = Vec::new();
            let done = self.done(&own, left, &mut made).await;
            self.note(&own, &done, &made, started).await;
            let heard = done.as_ref().ok().map(|(session, ..)| session.clone());
            // The caller may have gone: what was answered is kept all the same.
            let _ = tell.send(done);
            if let Some(session) = heard.filter(|_| self.agent.memory) {
                let over = recalling::Over {
                    agent: &self.agent,
                    store: &self.store,
                    turns: &self.turns,
                    flows: &self.flows,
                    usual_flow: self.usual_flow(),
                    session: &session,
                };
                let made = recalling::remember(&own, &over).await;
                self.trail.calls(&own, &self.who, &made).await;
            }
        });
        told.await.map_err(|_| {
            let text = "the turn was not finished";
            SessionsError::from(Error::new(ErrorCode::Interrupted, text))
        })?
    }

    /// Waits for its turn, keeps the message, asks the agent, and keeps its answer. A request that comes again goes on where it
    /// stands.
    async fn done(
        &self,
        cx: &Cx,
        left: CancellationToken,
        made: &mut Vec<ModelCall>,
    ) -> Result<(String, Message, Finished), SessionsError> {
        self.came_before(cx).await?;
        let key = cx.workspace_key();
        let turns = &self.turns;
        let turn = turns.enter(key.clone(), &self.session, self.when_busy, self.who.depth);
        let turn = turn.await?;
        let flow = flow_of(&self.flows, cx, &self.agent, self.usual_flow())?;
        let shortener = Shortener {
            cx,
            store: &self.store,
            settings: &self.settings,
            flow: &flow,
        };
        let (place, turn, _beside) = self.held(cx, &shortener, turn).await?;
        made.extend(place.spent.made.iter().cloned());
        let asked = Asked {
            request: self.request(cx),
            id: Uuid::now_v7().to_string(),
            content: self.text.clone(),
            at: clock::millis(),
        };
        let (workspace, session) = (key.as_str(), place.session.id.as_str());
        let store = self.store.get().await?;
        let began = store.begin(workspace, session, asked).await?;
        let began = began.ok_or(SessionsError::NoSession)?;
        drop(store);
        let hearing = self.hearing(&turn, left);
        turn.answers(&began.message.id);
        if hearing.events.is_some() {
            let shown = (self.shows)(cx, session, began.message.clone());
            hearing.tell("user-message", shown).await;
        }
        if let Some(finished) = began.finished {
            // Who reads events learns the answer from them.
            let delta = json!({ "delta": finished.message.content });
            hearing.tell("token", delta).await;
            return Ok((session.to_owned(), began.message, finished));
        }
        let mut spent = Spent::default();
        let past = self.past(cx, &shortener, (&place.session, began.turn), &mut spent);
        let past = past.await;
        made.extend(spent.made.iter().cloned());
        let past = Past { spent, ..past? };
        let found = passages(cx, (&self.flows, &flow), &self.agent, &self.text).await;
        let question = match self.opening.as_deref().filter(|_| began.turn == 1) {
            Some(opening) => format!("{opening}\n\n{}", self.text),
            None => self.text.clone(),
        };
        let asking = Asking {
            agent: &self.agent,
            question: &question,
            framing: framing(&self.agent, &found.shown, &past.said),
            session,
            window: &place.session.loop_window,
            flow: flow.clone(),
            depth: self.who.depth,
        };
        let mut asked = Vec::new();
        let heard = asking.ask(cx, &hearing, &mut asked).await;
        let asked = asked.into_iter();
        made.extend(asked.map(|call| ModelCall::of_agent(self.who.surface, call)));
        let heard = match heard {
            Err(SessionsError::Unanswered(error)) if self.keeps_failure => Answered {
                content: "The agent could not answer. Please try again.".to_owned(),
                finish_reason: FAILED.to_owned(),
                fault: Some(format!("the agent failed: {}", error.code().as_str())),
                ..Answered::default()
            },
            heard => heard?,
        };
        let heard = match self.keeps_failure {
            true => heard.without_circles(),
            false => heard,
        };
        let context = found.chunks.into_iter().map(Vec::from);
        let past = Past {
            context: context.collect(),
            ..past
        };
        let finished = self.keep(cx, &place, past, began.turn, heard).await?;
        Ok((session.to_owned(), began.message, finished))
    }

    /// Writes the turn down.
    async fn note(
        &self,
        cx: &Cx,
        done: &Result<(String, Message, Finished), SessionsError>,
        made: &[ModelCall],
        started: Instant,
    ) {
        let took = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        let told = match done {
            Ok((_, _, finished)) => Ok(turn_result(&finished.result).unwrap_or_default()),
            Err(error) => Err(error.code()),
        };
        let ended = told.as_ref().map_err(|code| *code);
        self.trail.turn(cx, &self.who, made, ended, took).await;
    }

    /// Refuses a request that has to be a repetition and is none: before it waits, and before it takes the place of another turn.
    async fn came_before(&self, cx: &Cx) -> Result<(), SessionsError> {
        if !self.repeats {
            return Ok(());
        }
        let (key, request) = (cx.workspace_key(), self.request(cx));
        let store = self.store.get().await?;
        let key = key.as_str();
        if store.begun(key, &self.session, &request).await?.is_some() {
            return Ok(());
        }
        // Its first attempt may have shortened the session: then the one that continues it has the turn.
        let own = shortened_by(&store, (key, &self.session), (&cx.id, &request)).await?;
        match own {
            Some(_) => Ok(()),
            None => Err(SessionsError::NoRepetition),
        }
    }

    /// What the turn is kept under: the request, as its client calls it, what it says and what it follows. A client that lost the
    /// answer and asks again finds the turn that began; another text under the same id is a turn of its own. What no client asks
    /// itself is known by its question.
    fn request(&self, cx: &Cx) -> String {
        let Some(called) = cx.request().filter(|_| cx.headers.depth.is_none()) else {
            return cx.id.to_string();
        };
        let mut hash = Sha256::new_with_prefix(self.text.as_bytes());
        if let Some(follows) = &self.follows {
            hash.update([0_u8]);
            hash.update(follows);
        }
        let hash: [u8; 32] = hash.finalize().into();
        let said = u128::from_be_bytes(std::array::from_fn(|at| hash[at]));
        format!("{called} {said:032x}")
    }

    fn hearing(&self, turn: &Turn, left: CancellationToken) -> Hearing {
        Hearing {
            events: self.events.clone(),
            interrupted: turn.interrupted().clone(),
            left,
            calls: self.calls,
        }
    }

    fn usual_flow(&self) -> &str {
        self.settings.agent_flow.as_deref().unwrap_or_default()
    }

    /// The session in which the turn runs, and the right to it. Nobody else knows one that was just made. One that an earlier
    /// attempt at this request made may have turns of its own, which must not wait for this one: it waits for them.
    async fn held(
        &self,
        cx: &Cx,
        by: &Shortener<'_>,
        turn: Turn,
    ) -> Result<(Place, Turn, Option<Alone>), SessionsError> {
        let key = cx.workspace_key();
        let place = self.place(cx, by).await?;
        if place.session.id == self.session {
            return Ok((place, turn, None));
        }
        let id = place.session.id.clone();
        if !place.was_there {
            let beside = self.turns.beside(key, &id, &turn).await;
            return Ok((place, turn, Some(beside)));
        }
        drop(turn);
        let depth = self.who.depth;
        let entered = self.turns.enter(key.clone(), &id, WhenBusy::Queue, depth);
        let turn = entered.await?;
        // Whoever waited finds the session as the turn before left it.
        let store = self.store.get().await?;
        let session = store.session(key.as_str(), &id).await?;
        let session = session.ok_or(SessionsError::NoSession)?;
        let begun = store.begun(key.as_str(), &id, &self.request(cx)).await?;
        if session.archived.is_some() && begun.is_none() {
            return Err(continued(&store, key.as_str(), session).await?);
        }
        Ok((Place { session, ..place }, turn, None))
    }

    /// The session in which the turn runs, shortened before where it fills its model.
    async fn place(&self, cx: &Cx, by: &Shortener<'_>) -> Result<Place, SessionsError> {
        let (key, request) = (cx.workspace_key(), self.request(cx));
        let store = self.store.get().await?;
        // Whoever waited finds the session as the turn before left it.
        let kept = store.session(key.as_str(), &self.session).await?;
        let kept = kept.ok_or(SessionsError::NoSession)?;
        if kept.owner.surface == Surface::Named && kept.owner.agent != self.agent.name {
            // It was given to another agent meanwhile.
            return Err(SessionsError::OtherAgent);
        }
        let stays = |session| Place {
            session,
            was_there: false,
            compacted: None,
            spent: Spent::default(),
        };
        if kept.archived.is_some() {
            let begun = store.begun(key.as_str(), &kept.id, &request).await?;
            if begun.is_some_and(|begun| begun.finished.is_some()) {
                // Whatever became of the session since: its answer is kept.
                return Ok(stays(kept));
            }
            let own = shortened_by(&store, (key.as_str(), &kept.id), (&cx.id, &request)).await?;
            let next = own.as_ref().and_then(|one| one.successor.clone());
            let (Some(own), Some(next)) = (own, next) else {
                return Err(continued(&store, key.as_str(), kept).await?);
            };
            let next = store.session(key.as_str(), &next).await?;
            return Ok(Place {
                session: next.ok_or(SessionsError::NoSession)?,
                was_there: true,
                compacted: Some(Compacted {
                    from: kept.id,
                    to: own.successor.unwrap_or_default(),
                    tokens: own.before,
                }),
                spent: Spent::default(),
            });
        }
        if let Some(follows) = &self.follows {
            let newest = store.last_asked(key.as_str(), &kept.id).await?;
            let is_newest = newest.as_ref() == Some(follows);
            let begun = store.begun(key.as_str(), &kept.id, &request).await?;
            if begun.is_none() && !is_newest {
                return Err(SessionsError::Followed);
            }
        }
        let lineage = kept.owner.surface == Surface::Named;
        let auto = kept.strategy == tg_schemas::operations::CompactStrategy::Auto;
        let window = window_for(cx, &self.agent);
        if !lineage || !auto || !is_due(&kept, window) {
            return Ok(stays(kept));
        }
        let begun = store.begun(key.as_str(), &kept.id, &request).await?;
        if begun.is_some() {
            return Ok(stays(kept));
        }
        drop(store);
        let mut spent = Spent::default();
        match by.shorten(&kept, Trigger::Auto(window), &mut spent).await {
            Ok(Shortened { successor, summary }) => Ok(Place {
                compacted: Some(Compacted {
                    from: kept.id,
                    to: successor.id.clone(),
                    tokens: summary.before,
                }),
                session: successor,
                was_there: false,
                spent,
            }),
            Err(error) => {
                warn_of!(
                    cx,
                    session = kept.id,
                    ?error,
                    "a session could not be shortened, and goes on as it is"
                );
                Ok(Place {
                    spent,
                    ..stays(kept)
                })
            }
        }
    }

    /// What was said before, as the agent is told it.
    async fn past(
        &self,
        cx: &Cx,
        by: &Shortener<'_>,
        (session, turn): (&Session, i64),
        spent: &mut Spent,
    ) -> Result<Past, SessionsError> {
        let key = cx.workspace_key();
        let user = &session.owner.user;
        let mut said = Vec::new();
        if self.agent.memory && !user.is_empty() {
            let store = self.store.get().await?;
            let known = recalling::recalled(&store, key.as_str(), user).await?;
            said.extend(known.into_iter().map(Arc::new));
        }
        let before = match session.owner.surface {
            // Nothing was said before the first message.
            _ if turn == 1 => Vec::new(),
            Surface::Named => self.of_session(&key, session, turn).await?,
            Surface::Conversation => self.of_conversation(by, session, turn, spent).await?,
        };
        said.extend(before);
        Ok(Past {
            said,
            spent: Spent::default(),
            context: Vec::new(),
        })
    }

    /// What was said in a session before a turn. What the turn before read is not read again.
    async fn of_session(
        &self,
        key: &WorkspaceKey,
        session: &Session,
        turn: i64,
    ) -> Result<Vec<Arc<Said>>, SessionsError> {
        let store = self.store.get().await?;
        let mut known = self.pasts.of(key, session).await;
        loop {
            let (after, most) = match &known {
                Some(known) => (known.reads_after(), MORE),
                None => (0, TOLD),
            };
            let found = store.past(key.as_str(), &session.id, (after, turn), most);
            let found = found.await?;
            let other = known.take_if(|known| !known.ends_with_first(&found));
            if other.is_some() {
                // All of it is read.
                continue;
            }
            let past = Known::with(known.as_deref(), session, &found, told);
            let said = past.told().collect();
            self.pasts.keep(key, session, past).await;
            return Ok(said);
        }
    }

    /// The same of a conversation, which is summed up where it fills its model.
    async fn of_conversation(
        &self,
        by: &Shortener<'_>,
        session: &Session,
        turn: i64,
        spent: &mut Spent,
    ) -> Result<Vec<Arc<Said>>, SessionsError> {
        let newest = by.in_place(&session.id).await?;
        let (key, reads) = (by.cx.workspace_key(), window_for(by.cx, &self.agent));
        if newest.is_none() && surely_fits(session, 0, reads) {
            // Nothing is summed up, so that a session goes on in the same way.
            let said = self.of_session(&key, session, turn).await?;
            if surely_fits(session, said.iter().map(|one| size(one)).sum(), reads) {
                return Ok(said);
            }
        }
        let (mut summary, after) = newest.unwrap_or_default();
        let store = self.store.get().await?;
        let found = store.past(key.as_str(), &session.id, (after, turn), TOLD);
        let mut found = found.await?;
        drop(store);
        let summed = by.sum_up(session, (summary.as_str(), reads), &mut found, spent);
        if let Some(text) = summed.await? {
            summary = text;
        }
        let summary = (!summary.is_empty()).then(|| Said {
            who: "Summary of what was said before".to_owned(),
            text: summary,
        });
        Ok(summary
            .into_iter()
            .chain(found.iter().filter_map(told))
            .map(Arc::new)
            .collect())
    }

    async fn keep(
        &self,
        cx: &Cx,
        place: &Place,
        past: Past,
        turn: i64,
        mut heard: Answered,
    ) -> Result<Finished, SessionsError> {
        let key = cx.workspace_key();
        let session = &place.session.id;
        let window = serde_json::to_string(&heard.window).unwrap_or_default();
        let steps = std::mem::take(&mut heard.steps);
        let mut told = result(cx, &self.agent.name, Some(session.clone()), heard);
        for spent in [&place.spent, &past.spent] {
            spent.onto(&mut told.usage, &mut told.cost, self.rate);
        }
        told.context_chunks = past.context;
        told.compacted.clone_from(&place.compacted);
        let content = std::mem::take(&mut told.content);
        let answer = store::Answer {
            id: Uuid::now_v7().to_string(),
            steps,
            content,
            usage: told.usage,
            // The text stands in the message.
            result: serde_json::to_string(&told).unwrap_or_default(),
            loop_window: window,
            to_search: self.agent.memory,
            at: clock::millis(),
        };
        let store = self.store.get().await?;
        let finished = store.finish(key.as_str(), session, turn, answer);
        finished.await?.ok_or(SessionsError::NoSession)
    }
}

/// What an agent is told of a message; nothing of one that only says that the agent failed.
pub(super) fn told(message: &Message) -> Option<Said> {
    // Most did not fail, and are not read for that.
    let may_fail = |kept: &&str| kept.contains(FAILED);
    let kept = message.result.as_deref().filter(may_fail);
    let failed = kept.and_then(turn_result);
    if failed.is_some_and(|told| told.finish_reason == FAILED) {
        return None;
    }
    let (who, text) = match (message.role, message.tool_calls.first()) {
        (Role::System, _) => return None,
        (Role::User, _) => ("User".to_owned(), message.content.clone()),
        (Role::Agent, Some(call)) => (
            "Assistant calls".to_owned(),
            format!("{} {}", call.name, call.arguments),
        ),
        // It may have been read anywhere, and the assistant did not say it.
        (Role::Agent, None) if is_announcement(message) => {
            ("Result of a task".to_owned(), message.content.clone())
        }
        (Role::Agent, None) => ("Assistant".to_owned(), message.content.clone()),
        (Role::Tool, _) => {
            let tool = message.tool_name.as_deref().unwrap_or("tool");
            (format!("Result of {tool}"), message.content.clone())
        }
    };
    Some(Said { who, text })
}

/// What a turn was answered, without its text.
pub(super) fn turn_result(kept: &str) -> Option<TurnResult> {
    serde_json::from_slice(kept.as_bytes()).ok()
}
