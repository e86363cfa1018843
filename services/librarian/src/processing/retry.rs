//! Starting again what failed only: records that were dead-lettered are sent back to the one reader each
//! belongs to. A run of which that is not possible starts anew; what its model calls said is not paid again.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::Value;
use tg_mesh::{Ask, Deadline, Mesh, clock};
use tg_schemas::msg::{FlowRequest, FlowResponse, ProcessingMetadata};
use tg_schemas::processors::flow_svc;
use tg_schemas::{Error, ErrorCode, Headers, WorkspaceKey};

use crate::config;
use crate::engine::asker::Asker;
use crate::engine::state::State;
use crate::engine::{ids, workspace};
use crate::error::{invalid, missing_processing, wire};
use crate::librarian::Librarian;
use crate::store::runs::{Pair, Run, Wanted};

/// How long one question to the flow service may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Records of a flow looked at, at most.
const MOST: usize = 1000;
/// Why records become dead letters for people.
const REASONS: [&str; 3] = ["dead", "parked", "stale"];

/// Records of a run that are looked at, at most.
const OPEN: u32 = 100_000;

impl Librarian {
    /// Tries again what failed in a processing, or what a stop of its flow left.
    pub(crate) async fn retry_processing(
        &self,
        mesh: &Mesh,
        asker: &Asker,
        id: &str,
    ) -> Result<ProcessingMetadata, Error> {
        let found = self.rows().shown(&asker.workspace, id, 0);
        let found = found.await.map_err(wire)?;
        let run = found.ok_or_else(missing_processing)?.run;
        let open = self.rows().open_pairs(run.number, OPEN);
        let open: HashSet<Pair> = open.await.map_err(wire)?.into_iter().collect();
        match run.state {
            State::Running | State::Failed => {
                // Also one that seems to be under way, if it becomes a dead letter: sending it may have broken off.
                let aside = self.aside(mesh, &run, &open).await?;
                if aside.is_empty() && run.state == State::Failed {
                    self.start_anew(mesh, asker, run).await?;
                } else {
                    self.replay(mesh, &run, aside).await?;
                }
            }
            State::Stopped => self.resume(mesh, asker, run, open).await?,
            State::Dropped => self.start_anew(mesh, asker, run).await?,
            _ => {}
        }
        self.wake.notify_one();
        self.processing_status(asker, id).await
    }

    /// Goes on with a run that a stop of its flow ended, if all of it was kept; else starts anew.
    async fn resume(
        &self,
        mesh: &Mesh,
        asker: &Asker,
        run: Run,
        open: HashSet<Pair>,
    ) -> Result<(), Error> {
        let target = &run.target;
        let flow = config::snapshot(mesh, &target.workspace, &target.flow)
            .map(|snapshot| snapshot.flow)
            .filter(|flow| flow.runs())
            .ok_or_else(|| {
                let flow = &target.flow;
                invalid(format!("flow '{flow}' does not run: start it, then retry"))
            })?;
        let aside = self.aside(mesh, &run, &open).await?;
        if open.is_empty() || aside.len() < open.len() {
            self.discard(mesh, &run, aside).await;
            return self.start_anew(mesh, asker, run).await;
        }
        let revived = self.rows().revive(run.number, flow.epoch);
        revived.await.map_err(wire)?;
        self.replay(mesh, &run, aside).await
    }

    /// Sends records back. One that cannot be sent ends it; those that were sent are on their way.
    async fn replay(
        &self,
        mesh: &Mesh,
        run: &Run,
        aside: HashMap<Pair, String>,
    ) -> Result<(), Error> {
        for (pair, id) in aside {
            // First: it may fail again before the flow service's answer is here.
            let reopened = self.rows().reopen_record(run.number, &pair);
            reopened.await.map_err(wire)?;
            let sent = ask(mesh, run, "replay-put-aside", &[("put-aside-id", &id)]).await;
            if let Err(error) = sent {
                let closed = self.rows().close_record(run.number, &pair, &error.message);
                closed.await.map_err(wire)?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Throws records away whose run starts anew.
    async fn discard(&self, mesh: &Mesh, run: &Run, aside: HashMap<Pair, String>) {
        for id in aside.into_values() {
            let which = [("put-aside-id", id.as_str())];
            if let Err(error) = ask(mesh, run, "discard-put-aside", &which).await {
                tracing::debug!(%error, "a record of a run that starts anew stays dead-lettered");
            }
        }
    }

    async fn start_anew(&self, mesh: &Mesh, asker: &Asker, run: Run) -> Result<(), Error> {
        let space = WorkspaceKey::parse(&asker.workspace);
        let target = &run.target;
        let into = &target.collection;
        let generation = self.ensure_collection(mesh, &space, into).await?;
        let wanted = Wanted {
            workspace: target.workspace.clone(),
            processing: ProcessingMetadata {
                id: run.processing,
                document_id: target.document.clone(),
                time: run.time,
                flow: target.flow.clone(),
                collection: target.collection.clone(),
                tags: run.tags,
                ..ProcessingMetadata::default()
            },
            generation,
        };
        let new = self.rows().replace_run(run.number, wanted, clock::millis());
        let new = new.await.map_err(wire)?;
        self.start_or_later(mesh, new.number).await;
        Ok(())
    }

    /// Dead letters of a run among the wanted ones, by record and reader, with the ids by which the
    /// flow service knows them.
    async fn aside(
        &self,
        mesh: &Mesh,
        run: &Run,
        wanted: &HashSet<Pair>,
    ) -> Result<HashMap<Pair, String>, Error> {
        let mut found = HashMap::new();
        if wanted.is_empty() {
            return Ok(found);
        }
        let readers: HashSet<&str> = wanted
            .iter()
            .map(|pair| pair.subscription.as_str())
            .collect();
        for reason in REASONS {
            for line in listed(mesh, run, reason).await? {
                let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
                let (id, subscription) = (text("id"), text("subscription"));
                if !readers.contains(subscription.as_str()) {
                    continue;
                }
                let options = [("put-aside-id", id.as_str())];
                let Ok(shown) = ask(mesh, run, "show-put-aside", &options).await else {
                    // It was replayed or thrown away meanwhile.
                    continue;
                };
                let headers: Headers =
                    serde_json::from_value(shown["headers"].clone()).unwrap_or_default();
                if headers.thread.as_deref() != Some(run.thread.as_str()) {
                    continue;
                }
                let record = ids::record(headers.id.as_deref().unwrap_or_default());
                let pair = Pair {
                    record,
                    subscription,
                };
                if wanted.contains(&pair) {
                    found.insert(pair, id);
                }
            }
        }
        Ok(found)
    }
}

/// Dead letters of a run's flow with a reason.
async fn listed(mesh: &Mesh, run: &Run, reason: &str) -> Result<Vec<Value>, Error> {
    let mut question = FlowRequest {
        limit: MOST as i64,
        ..question(run, "list-put-aside", &[("reason", reason)])
    };
    let mut lines = Vec::new();
    loop {
        let (page, next) = asked(mesh, run, &question).await?;
        if let Value::Array(page) = page {
            lines.extend(page);
        }
        if next.is_empty() || lines.len() >= MOST {
            return Ok(lines);
        }
        question.after = next;
    }
}

async fn ask(
    mesh: &Mesh,
    run: &Run,
    operation: &str,
    parameters: &[(&str, &str)],
) -> Result<Value, Error> {
    let question = question(run, operation, parameters);
    asked(mesh, run, &question).await.map(|(told, _)| told)
}

fn question(run: &Run, operation: &str, parameters: &[(&str, &str)]) -> FlowRequest {
    FlowRequest {
        operation: operation.to_owned(),
        flow_id: run.target.flow.clone(),
        parameters: parameters
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..FlowRequest::default()
    }
}

/// What is told of dead letters, and where a listing goes on.
async fn asked(mesh: &Mesh, run: &Run, question: &FlowRequest) -> Result<(Value, String), Error> {
    let options = Ask {
        deadline: Some(Deadline::after(TIMEOUT)),
        ..Ask::default()
    };
    let topic = flow_svc::FLOW.of_workspace(&workspace::id(&run.target.workspace)?);
    let asked = mesh.ask::<_, FlowResponse>(&topic, question, options);
    let answered = asked.last().await?;
    let mut read: Value = serde_json::from_slice(answered.flow.as_bytes()).map_err(|_| {
        Error::new(
            ErrorCode::Internal,
            "the flow service's reply cannot be read",
        )
    })?;
    Ok((read["put-aside"].take(), answered.next))
}
