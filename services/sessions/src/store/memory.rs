//! Sessions in memory, for tests: what the trait says, in as few words as possible.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_storage::StorageError;

use super::{
    Agent, AgentRow, AgentStore, Answer, Asked, Began, Finished, LlmService, LlmServiceRow,
    LlmServiceStore, Message, NewSession, Owner, Removed, Role, Session, SessionStore, Surface,
};
use crate::engine::cursor::Key;

/// A session with what was said in it.
struct Kept {
    session: Session,
    messages: Vec<Message>,
    /// Turns by the request that began them.
    requests: BTreeMap<String, i64>,
    /// What turns were answered.
    results: BTreeMap<i64, Finished>,
}

impl Kept {
    fn add(&mut self, id: &str, role: Role, content: &str, at: i64) -> &mut Message {
        let last = self.messages.last().map_or(0, |last| last.at);
        let at = at.max(last + 1);
        self.session.messages += 1;
        self.session.live += 1;
        self.session.characters += i64::try_from(content.chars().count()).unwrap_or(i64::MAX);
        self.session.updated = self.session.updated.max(at);
        self.messages.push(Message {
            seq: self.session.messages,
            id: id.to_owned(),
            at,
            role,
            content: content.to_owned(),
            tool_name: None,
            tool_calls: Vec::new(),
            usage: None,
            synthetic: false,
            compacted: None,
            result: None,
        });
        let last = self.messages.len() - 1;
        &mut self.messages[last]
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct InMemory(
    Mutex<BTreeMap<(String, String), Kept>>,
    /// Agents, each with the request that added it.
    Mutex<BTreeMap<(String, String), (String, Agent)>>,
    /// Workspaces that have had the agents that they begin with.
    Mutex<BTreeSet<String>>,
    /// LLM services, each with the request that added it.
    Mutex<BTreeMap<(String, String), (String, LlmService)>>,
);

fn key(workspace: &str, id: &str) -> (String, String) {
    (workspace.to_owned(), id.to_owned())
}

#[async_trait]
impl SessionStore for InMemory {
    async fn create(&self, workspace: &str, new: NewSession) -> Result<Session, StorageError> {
        let mut all = self.0.lock();
        let kept = all.entry(key(workspace, &new.id)).or_insert_with(|| Kept {
            session: Session {
                id: new.id,
                owner: new.owner,
                title: new.title,
                knowledge: new.knowledge,
                strategy: new.strategy,
                keep: new.keep,
                mask: new.mask,
                messages: 0,
                live: 0,
                characters: 0,
                parent: None,
                successor: None,
                loop_window: "[]".to_owned(),
                created: new.at,
                updated: new.at,
                archived: None,
            },
            messages: Vec::new(),
            requests: BTreeMap::new(),
            results: BTreeMap::new(),
        });
        Ok(kept.session.clone())
    }

    async fn session(&self, workspace: &str, id: &str) -> Result<Option<Session>, StorageError> {
        let all = self.0.lock();
        Ok(all
            .get(&key(workspace, id))
            .map(|kept| kept.session.clone()))
    }

    async fn sessions(
        &self,
        workspace: &str,
        owner: Owner,
        after: Option<Key>,
        most: usize,
    ) -> Result<Vec<Session>, StorageError> {
        let all = self.0.lock();
        let order = |one: &Session| (-one.created, one.id.clone());
        let after = after.map(|key| (-key.created, key.id));
        let mut found: Vec<Session> = all
            .iter()
            .filter(|((of, _), kept)| {
                let hidden = owner.user.is_empty() && owner.surface == Surface::Named;
                of == workspace && kept.session.owner == owner && !hidden
            })
            .map(|(_, kept)| kept.session.clone())
            .filter(|one| after.as_ref().is_none_or(|after| order(one) > *after))
            .collect();
        found.sort_by_key(order);
        found.truncate(most);
        Ok(found)
    }

    async fn rename(
        &self,
        workspace: &str,
        id: &str,
        title: Option<String>,
        knowledge: Vec<String>,
    ) -> Result<Option<Session>, StorageError> {
        let mut all = self.0.lock();
        Ok(all.get_mut(&key(workspace, id)).map(|kept| {
            kept.session.title = title;
            kept.session.knowledge = knowledge;
            kept.session.clone()
        }))
    }

    async fn forget_collection(
        &self,
        workspace: &str,
        collection: &str,
    ) -> Result<usize, StorageError> {
        let mut all = self.0.lock();
        let own = all.iter_mut().filter(|((of, _), _)| of == workspace);
        let own = own.map(|(_, kept)| &mut kept.session);
        let mut changed = 0;
        for session in own.filter(|one| one.owner.surface == Surface::Conversation) {
            let before = session.knowledge.len();
            session.knowledge.retain(|one| one != collection);
            changed += usize::from(session.knowledge.len() < before);
        }
        Ok(changed)
    }

    async fn delete(&self, workspace: &str, id: &str) -> Result<bool, StorageError> {
        let gone = self.0.lock().remove(&key(workspace, id));
        Ok(gone.is_some())
    }

    async fn begin(
        &self,
        workspace: &str,
        session: &str,
        asked: Asked,
    ) -> Result<Option<Began>, StorageError> {
        let mut all = self.0.lock();
        let Some(kept) = all.get_mut(&key(workspace, session)) else {
            return Ok(None);
        };
        let turn = match kept.requests.get(&asked.request) {
            Some(turn) => *turn,
            None => {
                let turn = kept
                    .add(&asked.id, Role::User, &asked.content, asked.at)
                    .seq;
                kept.requests.insert(asked.request, turn);
                turn
            }
        };
        let finished = kept.results.get(&turn).cloned();
        Ok(Some(Began { turn, finished }))
    }

    async fn finish(
        &self,
        workspace: &str,
        session: &str,
        turn: i64,
        answer: Answer,
    ) -> Result<Option<Finished>, StorageError> {
        let mut all = self.0.lock();
        let Some(kept) = all.get_mut(&key(workspace, session)) else {
            return Ok(None);
        };
        if let Some(known) = kept.results.get(&turn) {
            return Ok(Some(known.clone()));
        }
        kept.session.loop_window = answer.loop_window;
        for step in answer.steps {
            let call = kept.add(&step.ids[0], Role::Agent, "", 0);
            call.tool_calls = vec![step.call.clone()];
            let result = kept.add(&step.ids[1], Role::Tool, &step.result, 0);
            result.tool_name = Some(step.call.name);
        }
        let message = kept.add(&answer.id, Role::Agent, &answer.content, answer.at);
        message.usage = Some(answer.usage);
        message.result = Some(answer.result.clone());
        let finished = Finished {
            message: message.clone(),
            result: answer.result,
        };
        kept.results.insert(turn, finished.clone());
        Ok(Some(finished))
    }

    async fn messages(
        &self,
        workspace: &str,
        session: &str,
        after: i64,
        live: bool,
        most: usize,
    ) -> Result<Vec<Message>, StorageError> {
        let all = self.0.lock();
        let messages = all.get(&key(workspace, session));
        let messages = messages.into_iter().flat_map(|kept| &kept.messages);
        let messages = messages
            .filter(|one| one.seq > after && (!live || one.compacted.is_none()))
            .take(most);
        Ok(messages.cloned().collect())
    }

    async fn past(
        &self,
        workspace: &str,
        session: &str,
        (after, before): (i64, i64),
        bytes: usize,
    ) -> Result<Vec<Message>, StorageError> {
        let all = self.0.lock();
        let messages = all.get(&key(workspace, session));
        let messages = messages
            .into_iter()
            .flat_map(|kept| kept.messages.iter().rev());
        let mut room = bytes;
        let fits = |one: &&Message| {
            let left = room.checked_sub(one.content.len());
            room = left.unwrap_or(0);
            left.is_some()
        };
        let mut past: Vec<Message> = messages
            .filter(|one| one.seq < before && one.seq > after && one.compacted.is_none())
            .take_while(fits)
            .cloned()
            .collect();
        past.reverse();
        Ok(past)
    }
}

#[async_trait]
impl AgentStore for InMemory {
    async fn add_agent(
        &self,
        workspace: &str,
        new: AgentRow,
    ) -> Result<Option<Agent>, StorageError> {
        let mut all = self.1.lock();
        if let Some((request, known)) = all.get(&key(workspace, &new.id)) {
            return Ok((*request == new.request).then(|| known.clone()));
        }
        let own = all.iter().filter(|((of, _), _)| of == workspace);
        let last = own.map(|(_, (_, one))| one.created).max().unwrap_or(0);
        let created = new.at.max(last + 1);
        let agent = Agent {
            id: new.id.clone(),
            body: new.body,
            created,
            updated: created,
        };
        all.insert(key(workspace, &new.id), (new.request, agent.clone()));
        Ok(Some(agent))
    }

    async fn seed(&self, workspace: &str, agents: Vec<AgentRow>) -> Result<(), StorageError> {
        if self.2.lock().insert(workspace.to_owned()) {
            for new in agents {
                self.add_agent(workspace, new).await?;
            }
        }
        Ok(())
    }

    async fn is_seeded(&self, workspace: &str) -> Result<bool, StorageError> {
        Ok(self.2.lock().contains(workspace))
    }

    async fn agent(&self, workspace: &str, id: &str) -> Result<Option<Agent>, StorageError> {
        let all = self.1.lock();
        Ok(all.get(&key(workspace, id)).map(|(_, one)| one.clone()))
    }

    async fn agents(
        &self,
        workspace: &str,
        after: Option<Key>,
        most: usize,
    ) -> Result<Vec<Agent>, StorageError> {
        let all = self.1.lock();
        let own = all.iter().filter(|((of, _), _)| of == workspace);
        let mut own: Vec<Agent> = own.map(|(_, (_, one))| one.clone()).collect();
        own.sort_by_key(|one| one.created);
        own.retain(|one| {
            after
                .as_ref()
                .is_none_or(|after| one.created > after.created)
        });
        own.truncate(most);
        Ok(own)
    }

    async fn change_agent(
        &self,
        workspace: &str,
        id: &str,
        body: String,
        at: i64,
    ) -> Result<Option<Agent>, StorageError> {
        let mut all = self.1.lock();
        let found = all.get_mut(&key(workspace, id));
        Ok(found.map(|(_, one)| {
            one.body = body;
            one.updated = at.max(one.updated + 1);
            one.clone()
        }))
    }

    async fn remove_agent(&self, workspace: &str, id: &str) -> Result<bool, StorageError> {
        let of = |kept: &Kept| {
            kept.session.owner.surface == Surface::Conversation && kept.session.owner.agent == id
        };
        let mut sessions = self.0.lock();
        sessions.retain(|(place, _), kept| place != workspace || !of(kept));
        let gone = self.1.lock().remove(&key(workspace, id));
        Ok(gone.is_some())
    }
}

#[async_trait]
impl LlmServiceStore for InMemory {
    async fn add_service(
        &self,
        workspace: &str,
        new: LlmServiceRow,
    ) -> Result<Option<LlmService>, StorageError> {
        let mut all = self.3.lock();
        if let Some((request, known)) = all.get(&key(workspace, &new.id)) {
            return Ok((*request == new.request).then(|| known.clone()));
        }
        let own = all.iter().filter(|((of, _), _)| of == workspace);
        let last = own.map(|(_, (_, one))| one.created).max().unwrap_or(0);
        let created = new.at.max(last + 1);
        let service = LlmService {
            id: new.id.clone(),
            body: new.body,
            created,
            updated: created,
        };
        all.insert(key(workspace, &new.id), (new.request, service.clone()));
        Ok(Some(service))
    }

    async fn service(&self, workspace: &str, id: &str) -> Result<Option<LlmService>, StorageError> {
        let all = self.3.lock();
        Ok(all.get(&key(workspace, id)).map(|(_, one)| one.clone()))
    }

    async fn services(
        &self,
        workspace: &str,
        after: Option<Key>,
        most: usize,
    ) -> Result<Vec<LlmService>, StorageError> {
        let after = after.map_or(i64::MIN, |after| after.created);
        let all = self.3.lock();
        let own = all.iter().filter(|((of, _), _)| of == workspace);
        let own = own.map(|(_, (_, one))| one.clone());
        let mut own: Vec<LlmService> = own.filter(|one| one.created > after).collect();
        own.sort_by_key(|one| one.created);
        own.truncate(most);
        Ok(own)
    }

    async fn change_service(
        &self,
        workspace: &str,
        id: &str,
        body: String,
        at: i64,
    ) -> Result<Option<LlmService>, StorageError> {
        let mut all = self.3.lock();
        let found = all.get_mut(&key(workspace, id));
        Ok(found.map(|(_, one)| {
            one.body = body;
            one.updated = at.max(one.updated + 1);
            one.clone()
        }))
    }

    async fn remove_service(&self, workspace: &str, id: &str) -> Result<Removed, StorageError> {
        let names = |agent: &Agent| {
            let body = serde_json::from_slice::<serde_json::Value>(agent.body.as_bytes());
            body.is_ok_and(|body| body["llmServiceId"] == id)
        };
        let agents = self.1.lock();
        let mut own = agents.iter().filter(|((of, _), _)| of == workspace);
        if let Some((_, (_, agent))) = own.find(|(_, (_, agent))| names(agent)) {
            return Ok(Removed::Named(agent.body.clone()));
        }
        Ok(match self.3.lock().remove(&key(workspace, id)) {
            Some(_) => Removed::Gone,
            None => Removed::Missing,
        })
    }
}
