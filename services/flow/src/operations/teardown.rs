//! Taking names off the bus: queues, then exchanges that nothing listens to any more.

use std::time::Duration;

use futures::future::join_all;
use tg_clients::neighbours::Neighbours;
use tg_mesh::bus::{Delete, Deleted};
use tg_mesh::{BusError, Mesh};
use tg_schemas::{Class, Error, Subscription, Topic};

use super::{FlowKey, Service};
use crate::engine::closure::{Mentions, Other, Released, released};
use tg_schemas::flow_record::FlowRecord;
use tg_schemas::flow_record::Names;
use tg_schemas::processors::is_relay;

/// Operations on the bus at a time.
const PARALLEL: usize = 64;
/// An exchange that something still listens to is tried this often.
const PASSES: usize = 5;
const PAUSE: Duration = Duration::from_millis(100);

/// What was taken away.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Removed {
    pub(super) exchanges: u64,
    pub(super) exchanges_left: u64,
}

impl Service {
    /// What the flow with these names may take away, as things are now. Call with `names` locked.
    pub(super) async fn released(
        &self,
        mesh: &Mesh,
        key: &FlowKey,
        names: &Names,
    ) -> Result<Released, Error> {
        let (workspace, flow) = (key.0.as_str(), key.1.as_str());
        let mut others = Vec::new();
        let mentions = Mentions::of(workspace, flow, names);
        for (ws, id, text) in self.records(mesh).await? {
            if (ws.as_str(), id.as_str()) == (workspace, flow) || !mentions.are_in(&text) {
                continue;
            }
            let names = FlowRecord::read(&text).and_then(|record| held(&ws, &id, record));
            others.push(Other {
                workspace: ws,
                names,
            });
        }
        Ok(released(key.0.as_str(), names, &others))
    }

    /// Deletes queues, each on its condition; what became of them, in order.
    pub(super) async fn delete_queues(
        &self,
        mesh: &Mesh,
        queues: &[Subscription],
        when: impl Fn(&Subscription) -> Delete,
    ) -> Result<Vec<Deleted>, BusError> {
        let mut deleted = Vec::with_capacity(queues.len());
        for some in queues.chunks(PARALLEL) {
            let deletions = some.iter().map(|queue| {
                let when = when(queue);
                self.patiently(mesh, move || mesh.bus().delete_queue(queue, when))
            });
            for outcome in join_all(deletions).await {
                deleted.push(outcome?);
            }
        }
        Ok(deleted)
    }

    /// Deletes exchanges.
    pub(super) async fn remove_topics(
        &self,
        mesh: &Mesh,
        topics: &[Topic],
    ) -> Result<Removed, BusError> {
        let mut removed = Removed::default();
        // Native answers go straight to inboxes: no exchange stands for a response topic.
        let native = Neighbours::of(mesh).answer_to_inboxes();
        let stands = |topic: &&Topic| !native || topic.class() != Class::Response;
        let topics: Vec<&Topic> = topics.iter().filter(stands).collect();
        let (gone, left) = self.delete_topics(mesh, &topics).await?;
        removed.exchanges += gone;
        let mut left = self.delete_absent(mesh, &left).await?;
        for _ in 0..PASSES {
            if left.is_empty() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            let (gone, still) = self.delete_topics(mesh, &left).await?;
            removed.exchanges += gone;
            left = still;
        }
        removed.exchanges_left = left.len() as u64;
        Ok(removed)
    }

    /// Number of exchanges deleted, and the topics that had none or whose exchange is in use.
    async fn delete_topics<'t>(
        &self,
        mesh: &Mesh,
        topics: &[&'t Topic],
    ) -> Result<(u64, Vec<&'t Topic>), BusError> {
        let (mut gone, mut left) = (0, Vec::new());
        for some in together(topics) {
            let deletions = some.iter().map(|topic| self.delete_topic(mesh, topic));
            for (topic, outcome) in some.iter().zip(join_all(deletions).await) {
                match outcome? {
                    true => gone += 1,
                    false => left.push(*topic),
                }
            }
        }
        Ok((gone, left))
    }

    async fn delete_topic(&self, mesh: &Mesh, topic: &Topic) -> Result<bool, BusError> {
        if passes_on(topic) {
            let delete = || mesh.bus().delete_relay(topic);
            return self.patiently(mesh, delete).await;
        }
        self.patiently(mesh, || mesh.bus().delete_topic(topic))
            .await
    }

    /// Tells absent exchanges from those in use: one that was just declared and can be deleted was
    /// absent. Returns those in use.
    async fn delete_absent<'t>(
        &self,
        mesh: &Mesh,
        topics: &[&'t Topic],
    ) -> Result<Vec<&'t Topic>, BusError> {
        if topics.is_empty() {
            return Ok(Vec::new());
        }
        let again: Vec<Topic> = topics.iter().map(|topic| (*topic).clone()).collect();
        self.patiently(mesh, || mesh.bus().declare(&again, &[]))
            .await?;
        Ok(self.delete_topics(mesh, topics).await?.1)
    }

    /// Takes back what a failed start declared, and its record. What cannot be taken back now is left to
    /// the next start or stop of the flow.
    pub(super) async fn undo(&self, mesh: &Mesh, key: &FlowKey, names: &Names) {
        let outcome = async {
            let _names = self.names.write().await;
            let released = self.released(mesh, key, names).await?;
            let queues: Vec<_> = released
                .queues
                .into_iter()
                .chain(released.other_queues)
                .collect();
            let topics: Vec<_> = released.topics.into_iter().collect();
            self.delete_queues(mesh, &queues, |_| Delete::Always)
                .await?;
            self.remove_topics(mesh, &topics).await?;
            self.write_record(mesh, key, None, Vec::new()).await
        };
        if let Err(error) = outcome.await {
            tracing::warn!(workspace = %key.0, flow = %key.1, %error, "a failed start is not rolled back yet");
        }
    }
}

/// What is deleted at the same time: relays before the rest, each by itself. RabbitMQ 3 ends the connection where two exchanges of which
/// one is bound to the other are deleted at the same time.
fn together<'t>(topics: &[&'t Topic]) -> Vec<Vec<&'t Topic>> {
    let (relays, others): (Vec<&Topic>, Vec<&Topic>) =
        topics.iter().copied().partition(|topic| passes_on(topic));
    let relays = relays.chunks(1);
    let all = relays.chain(others.chunks(PARALLEL));
    all.map(<[&Topic]>::to_vec).collect()
}

/// Whether the exchange of a topic is bound to those of others.
fn passes_on(topic: &Topic) -> bool {
    is_relay(topic.name().split(':').next().unwrap_or_default())
}

/// The names that another flow holds, as far as its record says.
fn held(workspace: &str, id: &str, record: FlowRecord) -> Option<Names> {
    if record.plan.is_some() {
        return record.plan;
    }
    // A record of the reference: its interfaces are topics of its own at least.
    let mut names = Names::default();
    let topics = record
        .interfaces
        .values()
        .flat_map(|interface| interface.values());
    names
        .topics
        .extend(topics.filter_map(|text| Topic::parse(text).ok()));
    let own = format!(":{workspace}:{id}");
    names
        .topics
        .iter()
        .all(|topic| topic.name().ends_with(&own))
        .then_some(names)
}

#[cfg(test)]
mod tests {
    use tg_schemas::{FlowId, WorkspaceId};

    use super::*;

    #[test]
    fn exchanges_that_are_bound_to_one_another_are_not_deleted_at_the_same_time() {
        let (workspace, flow) = (WorkspaceId::new("w").unwrap(), FlowId::new("f").unwrap());
        let bases = ["agent-next", "agent-step", "agent-trace", "triples-store"];
        let topics: Vec<Topic> = bases
            .iter()
            .map(|base| Topic::flow(Class::Flow, base, &workspace, &flow))
            .collect();
        let all: Vec<&Topic> = topics.iter().collect();
        let [next, step, trace, store] = all[..] else {
            panic!("there are four")
        };
        assert_eq!(together(&all), [vec![next], vec![trace], vec![step, store]]);
    }
}
