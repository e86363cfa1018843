//! Summaries that stand for messages of conversations: which there are, what they stand for, and taking the newest one back.

use async_trait::async_trait;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::{Cx, clock};
use tg_schemas::operations::{
    Conversation, ConversationSummaries, ConversationSummary, ExpandConversationSummary,
    ExpandedConversation, Failure, FailureCode, ListConversationSummaries, OneConversation,
    OneConversationSummary, UndoConversationCompaction, WhichPage,
};

use super::Agents;
use super::conversations::{is_listed, message, shown};
use super::lineage::stood_for;
use crate::engine::{cursor, request};
use crate::error::SessionsError;
use crate::store::{LineageStore, SummaryRow};

/// A summary as clients read it.
fn summary(row: SummaryRow) -> ConversationSummary {
    ConversationSummary {
        conversation_id: row.session,
        summary_id: row.id,
        model: row.model,
        prompt: row.prompt,
        tier: row.tier,
        message_count: row.count,
        messages: vec![row.first, row.last],
        created_at: clock::rfc3339_of(row.at),
    }
}

impl Agents {
    async fn summaries(
        &self,
        cx: &Cx,
        asked: &WhichPage,
    ) -> Result<ConversationSummaries, SessionsError> {
        let (agent, id) = (&asked.agent_id, &asked.conversation_id);
        let (_, known) = self.conversation(cx, agent, id).await?;
        let most = request::limit(asked.limit)?;
        let after = request::after_message(asked.cursor.as_deref())?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let found = store.in_place(key.as_str(), &known.id, after, most + 1);
        let mut found = found.await?;
        let more = found.len() > most;
        found.truncate(most);
        let last = found.last().filter(|_| more).map(|last| last.last);
        Ok(ConversationSummaries {
            items: found.into_iter().map(summary).collect(),
            next_cursor: last.map(cursor::of_message),
        })
    }

    async fn opened(
        &self,
        cx: &Cx,
        asked: &OneConversationSummary,
    ) -> Result<ExpandedConversation, SessionsError> {
        let (agent, id) = (&asked.agent_id, &asked.conversation_id);
        let (_, known) = self.conversation(cx, agent, id).await?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let found = store.one_in_place(key.as_str(), &known.id, &asked.summary_id);
        let found = found.await?.ok_or(SessionsError::NoSummary)?;
        let said = stood_for(&store, key.as_str(), &found).await?;
        let said = said.into_iter().filter(is_listed);
        Ok(ExpandedConversation {
            messages: said.map(|one| message(cx, &known.id, one)).collect(),
            text: found.text.clone(),
            summary: summary(found),
        })
    }

    async fn taken_back(
        &self,
        cx: &Cx,
        asked: &OneConversation,
    ) -> Result<Conversation, SessionsError> {
        let (agent, id) = (&asked.agent_id, &asked.conversation_id);
        let (_, known) = self.conversation(cx, agent, id).await?;
        let key = cx.workspace_key();
        // It asks no model: it needs no place among the turns.
        let _alone = self.turns.alone(key.clone(), &known.id).await?;
        let store = self.store.get().await?;
        match store.take_back(key.as_str(), &known.id, &cx.id).await? {
            true => Ok(shown(cx, known)),
            false => {
                let text = "conversation_id: no summary stands for messages of the conversation";
                let failure = Failure::new(FailureCode::SummaryNotFound, text);
                Err(SessionsError::Invalid(failure))
            }
        }
    }
}

#[async_trait]
impl Handle<ListConversationSummaries> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: WhichPage,
        _: &mut Chunks<'_, ListConversationSummaries>,
    ) -> Result<ConversationSummaries, Refused<Failure>> {
        Ok(self.summaries(cx, &asked).await?)
    }
}

#[async_trait]
impl Handle<ExpandConversationSummary> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneConversationSummary,
        _: &mut Chunks<'_, ExpandConversationSummary>,
    ) -> Result<ExpandedConversation, Refused<Failure>> {
        Ok(self.opened(cx, &asked).await?)
    }
}

#[async_trait]
impl Handle<UndoConversationCompaction> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneConversation,
        _: &mut Chunks<'_, UndoConversationCompaction>,
    ) -> Result<Conversation, Refused<Failure>> {
        Ok(self.taken_back(cx, &asked).await?)
    }
}
