//! Shortening a session on demand, taking that back, and the chain of sessions that continue each other.

use async_trait::async_trait;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::{Cx, clock};
use tg_schemas::limits;
use tg_schemas::operations::{
    CompactResult, CompactSession, CompactStrategy, Cost, ExpandSummary, Expanded, Failure,
    FailureCode, Lineage, LineageNode, OneSession, OneSummary, Session, SessionLineage, Summary,
    UndoCompaction, Usage, WhenBusy,
};

use super::Agents;
use super::asking::flow_of;
use super::sessions::{Wanted, message, shown, wanted};
use super::summing::{Shortener, Spent, Trigger};
use crate::error::SessionsError;
use crate::store::{
    self, LineageStore, SessionStore, Span, SqliteSessions, SummaryKind, SummaryRow,
};
use crate::trail::Who;

/// Sessions of a chain that are shown in each direction.
const CHAIN: usize = 1_000;
/// Most messages of a summary that are shown.
const MOST: i64 = 10_000;

/// A summary as clients read it.
fn summary(row: SummaryRow) -> Summary {
    Summary {
        id: row.id,
        source_session_id: row.session,
        successor_session_id: row.successor,
        text: row.text,
        model: row.model,
        message_count: row.count,
        observation_mask: row.mask,
        tokens_before: row.before,
        tokens_after: row.after,
        created_at: clock::rfc3339_of(row.at),
        tier: row.tier,
        trigger: row.trigger,
        prompt: row.prompt,
        messages: vec![row.first, row.last],
    }
}

fn node(session: &store::Session) -> LineageNode {
    LineageNode {
        id: session.id.clone(),
        created_at: clock::rfc3339_of(session.created),
        archived_at: session.archived.map(clock::rfc3339_of),
        message_count: session.messages,
    }
}

/// The sessions of a chain from one on, the nearest first. One that was deleted ends it.
async fn walk(
    store: &SqliteSessions,
    workspace: &str,
    from: &store::Session,
    next: fn(&store::Session) -> Option<&String>,
) -> Result<Vec<store::Session>, SessionsError> {
    let mut all: Vec<store::Session> = Vec::new();
    while all.len() < CHAIN {
        let last = all.last().unwrap_or(from);
        let Some(id) = next(last).cloned() else {
            break;
        };
        let Some(found) = store.session(workspace, &id).await? else {
            break;
        };
        all.push(found);
    }
    Ok(all)
}

/// The messages that a summary stands for.
///
/// # Errors
/// They are more than one answer holds, or the store failed.
pub(super) async fn stood_for(
    store: &SqliteSessions,
    workspace: &str,
    summary: &SummaryRow,
) -> Result<Vec<store::Message>, SessionsError> {
    let count = summary.last - summary.first + 1;
    let span = Span {
        after: summary.first - 1,
        live: false,
        plain: false,
        most: usize::try_from(count).unwrap_or_default(),
        bytes: limits::SESSION_TEXTS,
    };
    let said = match count {
        ..=MOST => {
            store
                .messages(workspace, &summary.session, span)
                .await?
                .items
        }
        _ => Vec::new(),
    };
    if said.last().is_none_or(|last| last.seq < summary.last) {
        let text = "summary_id: the summary stands for more than 10,000 messages or 8 MiB of text, which one answer cannot \
                    hold; list the messages of its session in pages";
        let failure = Failure::new(FailureCode::PayloadTooLarge, text);
        return Err(SessionsError::Invalid(failure));
    }
    Ok(said)
}

/// A chain, and the summaries in it.
struct Chain {
    backward: Vec<store::Session>,
    forward: Vec<store::Session>,
    summaries: Vec<SummaryRow>,
}

impl Agents {
    async fn chain(&self, cx: &Cx, of: &store::Session) -> Result<Chain, SessionsError> {
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let backward = walk(&store, key.as_str(), of, |one| one.parent.as_ref()).await?;
        let forward = walk(&store, key.as_str(), of, |one| one.successor.as_ref()).await?;
        let mut summaries = Vec::new();
        let oldest_first = backward.iter().rev().chain([of]).chain(&forward);
        for one in oldest_first {
            summaries.extend(store.summaries(key.as_str(), &one.id).await?);
        }
        summaries.retain(|one| one.kind == SummaryKind::Lineage);
        Ok(Chain {
            backward,
            forward,
            summaries,
        })
    }

    async fn lineage(&self, cx: &Cx, asked: &OneSession) -> Result<Lineage, SessionsError> {
        let session = self.session(cx, &wanted(asked)).await?;
        let chain = self.chain(cx, &session).await?;
        let mut line = std::iter::once(&session).chain(&chain.forward);
        let live = line.find(|one| one.archived.is_none());
        Ok(Lineage {
            live_session_id: live.map(|live| live.id.clone()),
            session_id: session.id,
            backward: chain.backward.iter().map(node).collect(),
            forward: chain.forward.iter().map(node).collect(),
            summaries: chain.summaries.into_iter().map(summary).collect(),
        })
    }

    async fn compact(&self, cx: &Cx, asked: &OneSession) -> Result<CompactResult, SessionsError> {
        let session = self.session(cx, &wanted(asked)).await?;
        let key = cx.workspace_key();
        let turns = &self.turns;
        let turn = turns.enter(key.clone(), &session.id, WhenBusy::Queue, 0);
        let _turn = turn.await?;
        // Whoever waited finds the session as the turn before left it.
        let session = self.session(cx, &wanted(asked)).await?;
        let store = self.store.get().await?;
        let all = store.summaries(key.as_str(), &session.id).await?;
        if let Some(own) = all.into_iter().find(|one| *one.request == *cx.id) {
            return Ok(compacted(own, session.live, Cost::default()));
        }
        drop(store);
        if session.archived.is_some() {
            return Err(SessionsError::NothingToCompact);
        }
        if session.strategy == CompactStrategy::Off {
            return Err(SessionsError::CompactDisabled);
        }
        if session.live <= session.keep {
            return Err(SessionsError::NothingToCompact);
        }
        // Before a model is paid for.
        let store = self.store.get().await?;
        store.has_room(key.as_str()).await?;
        drop(store);
        let settings = self.tenant(cx).await?.effective;
        let usual = settings.agent_flow.as_deref().unwrap_or_default();
        let flow = flow_of(&self.flows, cx, self.agent(&asked.name)?, usual)?;
        let shortener = Shortener {
            cx,
            store: &self.store,
            settings: &settings,
            flow: &flow,
        };
        let mut spent = Spent::default();
        let done = shortener.shorten(&session, Trigger::Manual, &mut spent);
        let done = done.await;
        let who = Who {
            surface: "a1",
            agent: session.owner.agent.clone(),
            user: session.owner.user.clone(),
            session: Some(session.id.clone()),
            ..Who::default()
        };
        self.trail.calls(cx, &who, &spent.made).await;
        let done = done?;
        let (mut usage, mut cost) = (Usage::default(), Cost::default());
        spent.onto(&mut usage, &mut cost, self.rate);
        Ok(compacted(done.summary, done.successor.messages - 1, cost))
    }

    async fn undone(&self, cx: &Cx, asked: &OneSession) -> Result<Session, SessionsError> {
        let session = self.session(cx, &wanted(asked)).await?;
        if self.is_done(cx, &session.id).await? {
            return Ok(shown(session, self.agent(&asked.name)?));
        }
        let key = cx.workspace_key();
        let successor = session.successor.ok_or(SessionsError::NotUndone)?;
        // It asks no model: it needs no place among the turns.
        let _alone = self.turns.alone(key.clone(), &session.id).await?;
        let _next = self.turns.alone(key.clone(), &successor).await?;
        let store = self.store.get().await?;
        let restored = store.restore(key.as_str(), &session.id, &cx.id).await?;
        let restored = restored.ok_or(SessionsError::NotUndone)?;
        Ok(shown(restored, self.agent(&asked.name)?))
    }

    async fn expanded(&self, cx: &Cx, asked: &OneSummary) -> Result<Expanded, SessionsError> {
        let wanted = Wanted {
            agent: &asked.name,
            user: &asked.user_id,
            id: &asked.session_id,
        };
        let session = self.session(cx, &wanted).await?;
        let chain = self.chain(cx, &session).await?;
        let mut all = chain.summaries.into_iter();
        let found = all.find(|one| one.id == asked.summary_id);
        let found = found.ok_or(SessionsError::NoSummary)?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let said = stood_for(&store, key.as_str(), &found).await?;
        Ok(Expanded {
            messages: said.into_iter().map(message).collect(),
            summary: summary(found),
        })
    }
}

/// What became of a session, by its summary.
fn compacted(row: SummaryRow, kept: i64, cost: Cost) -> CompactResult {
    CompactResult {
        source_session_id: row.session,
        successor_session_id: row.successor.unwrap_or_default(),
        summary_id: row.id,
        summary_text: row.text,
        summary_model: row.model,
        compacted_count: row.count,
        kept_count: kept,
        tokens_before: row.before,
        tokens_after: row.after,
        cost,
    }
}

#[async_trait]
impl Handle<CompactSession> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneSession,
        _: &mut Chunks<'_, CompactSession>,
    ) -> Result<CompactResult, Refused<Failure>> {
        Ok(self.compact(cx, &asked).await?)
    }
}

#[async_trait]
impl Handle<SessionLineage> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneSession,
        _: &mut Chunks<'_, SessionLineage>,
    ) -> Result<Lineage, Refused<Failure>> {
        Ok(self.lineage(cx, &asked).await?)
    }
}

#[async_trait]
impl Handle<UndoCompaction> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneSession,
        _: &mut Chunks<'_, UndoCompaction>,
    ) -> Result<Session, Refused<Failure>> {
        Ok(self.undone(cx, &asked).await?)
    }
}

#[async_trait]
impl Handle<ExpandSummary> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneSummary,
        _: &mut Chunks<'_, ExpandSummary>,
    ) -> Result<Expanded, Refused<Failure>> {
        Ok(self.expanded(cx, &asked).await?)
    }
}
