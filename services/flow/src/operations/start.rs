//! start-flow: record `starting` with a new epoch → exchanges and record queues → rows and running record
//! at once → wait until the processors are attached.
//!
//! Safe to repeat after a crash at any point: the record says what was begun.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use tg_mesh::Mesh;
use tg_schemas::ids::check_pair;
use tg_schemas::msg::{FlowRequest, FlowResponse};
use tg_schemas::{Error, ErrorCode, FlowId, WorkspaceId};
use tokio::sync::MutexGuard;

use super::blueprints::blueprint_name;
use super::{FlowKey, Service};
use crate::config::{BLUEPRINT, Config, FLOW, PARAMETER_TYPE};
use crate::engine::blueprint::Blueprint;
use crate::engine::check::check;
use crate::engine::parameters::{ParameterType, resolve};
use crate::engine::plan::{Plan, Subject, plan};
use crate::error::{bad, conflict, known};
use crate::handlers::reply;
use tg_schemas::flow_record::{FlowRecord, Status};
use tg_schemas::flow_record::{Names, RowKey};

/// What a start is asked for.
struct Wanted<'a> {
    key: &'a FlowKey,
    blueprint: &'a str,
    description: &'a str,
    given: &'a BTreeMap<String, String>,
}

/// What was planned.
struct Planned {
    plan: Plan,
    record: FlowRecord,
    unused: Vec<String>,
    /// It ran before.
    again: bool,
}

impl Service {
    pub(crate) async fn start_flow(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        request: &FlowRequest,
    ) -> Result<FlowResponse, Error> {
        let blueprint = blueprint_name(request)?;
        let flow = flow_id(request)?;
        check_pair(workspace, &flow)?;
        let key = (workspace.clone(), flow);
        let wanted = Wanted {
            key: &key,
            blueprint,
            description: &request.description,
            given: &request.parameters,
        };
        let planned = {
            let _turn = self.turn(&key).await;
            self.start(mesh, &wanted).await?
        };
        self.wait_attached(mesh, &key, planned).await
    }

    /// Finishes a start that a crash interrupted.
    pub(super) async fn finish_start(
        &self,
        mesh: &Mesh,
        key: &FlowKey,
        record: &FlowRecord,
    ) -> Result<(), Error> {
        let given = record.given.clone().unwrap_or_default();
        let wanted = Wanted {
            key,
            blueprint: &record.blueprint_name,
            description: &record.description,
            given: &given,
        };
        let _turn = self.turn(key).await;
        self.start(mesh, &wanted).await.map(|_| ())
    }

    /// Everything up to the running record.
    async fn start(&self, mesh: &Mesh, wanted: &Wanted<'_>) -> Result<Planned, Error> {
        let (workspace, flow) = wanted.key;
        let config = Config::new(mesh);
        // Nobody decides meanwhile which names are still held.
        let _names = self.names.read().await;
        let keys = [(FLOW, flow.as_str()), (BLUEPRINT, wanted.blueprint)];
        let [record, definition] = config.get(workspace, keys).await?;
        let before = record.map(|text| FlowRecord::read(&text).unwrap_or_default());
        if let Some(before) = &before
            && (before.status == Status::Stopping
                || !before.same_start(wanted.blueprint, wanted.description, wanted.given))
        {
            return Err(known("Flow already exists"));
        }
        if let Some(running) = before
            .as_ref()
            .filter(|before| before.status == Status::Running)
        {
            return Ok(again(running));
        }
        let begun = before.as_ref().filter(|before| before.epoch > 0);
        let definition = definition.ok_or_else(|| known("Blueprint does not exist"))?;
        let epoch = match begun {
            Some(begun) => begun.epoch,
            None => self.store().await?.next_epoch().await?,
        };
        let mut planned = self.plan(mesh, wanted, &definition, epoch).await?;
        if let Some(Names { topics, queues, .. }) = begun.and_then(|begun| begun.plan.clone()) {
            // The blueprint may have changed since: what was declared then goes with the flow too.
            planned.plan.names.topics.extend(topics);
            planned.plan.names.queues.extend(queues);
        }
        self.no_clash(mesh, wanted, &planned.plan).await?;
        // Who counts is the only one who begins, until its flow counts itself.
        let counted = match &before {
            Some(_) => None,
            None => Some(self.count(mesh, workspace).await?),
        };
        let mut record = FlowRecord {
            description: wanted.description.to_owned(),
            blueprint_name: wanted.blueprint.to_owned(),
            interfaces: planned.plan.interfaces.clone(),
            parameters: planned.record.parameters.clone(),
            status: Status::Starting,
            epoch,
            given: Some(wanted.given.clone()),
            plan: Some(planned.plan.names.clone()),
            drain: None,
        };
        self.write_record(mesh, wanted.key, Some(&record), Vec::new())
            .await?;
        drop(counted);
        let (topics, queues) = (planned.plan.topics(), planned.plan.queues());
        let declared = self
            .patiently(mesh, || mesh.bus().declare(&topics, &queues))
            .await;
        record.status = Status::Running;
        let rows = planned
            .plan
            .rows
            .iter()
            .map(|(row, value)| ((row.kind(), row.variant.clone()), value.clone()));
        let rows = rows.collect();
        let written = match declared {
            Ok(()) => {
                self.write_record(mesh, wanted.key, Some(&record), rows)
                    .await
            }
            Err(fault) => Err(fault.into()),
        };
        if let Err(error) = written {
            drop(_names);
            tracing::warn!(%workspace, %flow, %error, "a start failed and is rolled back");
            self.undo(mesh, wanted.key, &planned.plan.names).await;
            return Err(error);
        }
        // Nobody served it before it had rows. A start that another process has begun may have had some.
        if begun.is_none() {
            self.starts.lock().insert(epoch);
        }
        tracing::info!(%workspace, %flow, epoch, "flow started");
        planned.record = record;
        Ok(planned)
    }

    /// Lets a flow of a workspace begin that has not as many as it may.
    async fn count(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
    ) -> Result<MutexGuard<'_, ()>, Error> {
        let beginning = self.beginning.lock().await;
        let records = self.records_of(mesh, workspace).await?;
        let most = self.flows_per_workspace;
        if records >= most {
            let text = format!(
                "flows: a workspace may have at most {most} (`flow.flows_per_workspace`); stop one first"
            );
            return Err(Error::new(ErrorCode::TooLarge, text));
        }
        Ok(beginning)
    }

    async fn plan(
        &self,
        mesh: &Mesh,
        wanted: &Wanted<'_>,
        definition: &str,
        epoch: u64,
    ) -> Result<Planned, Error> {
        let (workspace, flow) = wanted.key;
        let (blueprint, _) = Blueprint::parse(definition);
        let catalog = self.catalog(mesh, workspace, &blueprint).await?;
        // Rows can be written past this service, so what is stored is checked again.
        let faults = check(wanted.blueprint, definition, &catalog);
        if !faults.is_empty() {
            return Err(bad(format!("blueprint: {}", faults.text())));
        }
        let types = self.parameter_types(mesh, workspace, &blueprint).await?;
        let resolved = resolve(&blueprint, &types, wanted.given)?;
        let subject = Subject {
            workspace,
            flow,
            blueprint: wanted.blueprint,
            epoch,
        };
        let plan = plan(subject, &blueprint, &resolved, &catalog)?;
        let record = FlowRecord {
            parameters: resolved.values,
            epoch,
            ..FlowRecord::default()
        };
        Ok(Planned {
            plan,
            record,
            unused: resolved.unused,
            again: false,
        })
    }

    async fn parameter_types(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        blueprint: &Blueprint,
    ) -> Result<BTreeMap<String, ParameterType>, Error> {
        let parameters = blueprint.parameters.iter().flatten();
        let mut kinds: Vec<String> = parameters
            .map(|(_, use_)| use_.kind.clone())
            .filter(|kind| !kind.is_empty())
            .collect();
        kinds.sort();
        kinds.dedup();
        let keys = kinds
            .iter()
            .map(|kind| (PARAMETER_TYPE.to_owned(), kind.clone()))
            .collect();
        let rows = Config::new(mesh).get_all(workspace, keys).await?;
        let read = |(kind, row): (String, Option<String>)| Some((kind, ParameterType::read(&row?)));
        Ok(kinds.into_iter().zip(rows).filter_map(read).collect())
    }

    /// No row may be another flow's: a shared instance carries the blueprint's name, which could be the
    /// id of a flow.
    async fn no_clash(&self, mesh: &Mesh, wanted: &Wanted<'_>, plan: &Plan) -> Result<(), Error> {
        let (workspace, flow) = wanted.key;
        let config = Config::new(mesh);
        if plan.names.shared_rows.is_empty() {
            let [blueprint] = config.get(workspace, [(BLUEPRINT, flow.as_str())]).await?;
            if blueprint
                .is_none_or(|text| Blueprint::parse(&text).0.entries.iter().all(|e| !e.shared))
            {
                return Ok(());
            }
        }
        for (id, text) in config.values(workspace, FLOW).await? {
            let Some(FlowRecord {
                plan: Some(names),
                blueprint_name,
                ..
            }) = FlowRecord::read(&text)
            else {
                continue;
            };
            if id == flow.as_str() {
                continue;
            }
            let shared = |row: &RowKey| {
                blueprint_name == wanted.blueprint
                    && names.shared_rows.contains(row)
                    && plan.names.shared_rows.contains(row)
            };
            if names
                .all_rows()
                .any(|row| plan.rows.contains_key(row) && !shared(row))
            {
                let text = format!("flow-id: flow '{id}' already uses an instance of this name");
                return Err(conflict(text));
            }
        }
        let own: Vec<_> = plan
            .names
            .rows
            .intersection(&plan.names.shared_rows)
            .collect();
        if !own.is_empty() {
            return Err(conflict("flow-id: must differ from the blueprint's name"));
        }
        Ok(())
    }

    async fn wait_attached(
        &self,
        mesh: &Mesh,
        key: &FlowKey,
        planned: Planned,
    ) -> Result<FlowResponse, Error> {
        let waiting = self
            .until_attached(mesh, key, &planned.plan, planned.record.epoch)
            .await;
        if !waiting.is_empty() {
            tracing::warn!(workspace = %key.0, flow = %key.1, waiting = waiting.join(", "), "processors are not attached yet");
        }
        let rows = planned.plan.names.all_rows();
        let processors: BTreeSet<&str> = rows.map(|row| row.processor.as_str()).collect();
        let mut said = json!({
            "status": "running",
            "processors": processors.len(),
            "waiting-for": waiting,
        });
        if planned.again {
            said["already-running"] = json!(true);
        }
        if !planned.unused.is_empty() {
            said["unused-parameters"] = json!(planned.unused);
        }
        Ok(reply::text(&said))
    }
}

/// A repeated start of a running flow: nothing to do but to wait for the processors.
fn again(record: &FlowRecord) -> Planned {
    let names = record.plan.clone().unwrap_or_default();
    let hosted =
        |id: &str| tg_schemas::processors::processor(id).is_some_and(|processor| processor.hosted);
    let expected = names
        .all_rows()
        .filter(|row| hosted(&row.processor))
        .cloned()
        .collect();
    let plan = Plan {
        expected,
        names,
        ..Plan::default()
    };
    Planned {
        plan,
        record: record.clone(),
        unused: Vec::new(),
        again: true,
    }
}

pub(super) fn flow_id(request: &FlowRequest) -> Result<FlowId, Error> {
    match request.flow_id.as_str() {
        "" => Err(known("No flow ID")),
        id => FlowId::new(id),
    }
}
