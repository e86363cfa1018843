//! `doctor`: checks of a workspace's flows, each with advice.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tg_clients::{embeddings, text_completion};
use tg_collections::reaper;
use tg_mesh::Mesh;
use tg_mesh::bus::Link;
use tg_schemas::msg::FlowResponse;
use tg_schemas::processors::{self, flow_svc};
use tg_schemas::{Error, Topic, WorkspaceId};

use super::Service;
use super::generation::present;
use super::why::{FULL_DISK, processor_state};
use crate::config::{Config, FLOW};
use crate::handlers::reply;
use crate::store::DeadLetterCount;
use tg_schemas::flow_record::{FlowRecord, Status};

/// How long the model provider may take to answer.
const MODEL: Duration = Duration::from_secs(2);
/// Lines about dead letters at most.
const LINES: u32 = 1000;

impl Service {
    pub(crate) async fn doctor(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
    ) -> Result<FlowResponse, Error> {
        let full = mesh.presence().disk_full();
        let mut checks = vec![bus(mesh), disk(full), standby(mesh)];
        checks.push(self.configuration(mesh).await?);
        let records = Config::new(mesh).values(workspace, FLOW).await?;
        if records.is_empty() {
            checks.push(check(
                "flows",
                false,
                "none runs in this workspace",
                "`tg start-flow` starts one",
            ));
        }
        let (mut model, mut vectors) = (None, None);
        for (id, text) in &records {
            let Some(record) = FlowRecord::read(text) else {
                let advice = "remove the row with `tg delete-config-item`";
                checks.push(check(
                    &format!("flow {id}"),
                    false,
                    "its record cannot be read",
                    advice,
                ));
                continue;
            };
            checks.push(flow(mesh, workspace, id, &record));
            let topic = |interface: &str| {
                let request = record.interfaces.get(interface)?.get("request")?;
                Topic::parse(request).ok()
            };
            model = model.or_else(|| topic("text-completion"));
            vectors = vectors.or_else(|| topic("embeddings"));
        }
        checks.push(self.dead_letter_check(mesh, workspace).await?);
        if let Some(topic) = model {
            checks.push(model_check(mesh, &topic).await);
        }
        if let Some(topic) = vectors {
            checks.extend(vectors_check(mesh, &topic).await);
        }
        Ok(reply::with("doctor", &json!({ "checks": checks })))
    }

    async fn dead_letter_check(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
    ) -> Result<Value, Error> {
        let store = self.store().await?;
        let kept_under = present(mesh, workspace.as_str())?;
        let counts = store.counts(kept_under.as_str(), None, LINES).await?;
        Ok(dead_letters(&counts))
    }
}

/// Records that wait for people fail the check, unless what is in a document, or in rows that somebody loaded, is why:
/// that is no fault of the system, and only told.
fn dead_letters(counts: &[DeadLetterCount]) -> Value {
    let told = |one: &DeadLetterCount| {
        let why = if one.content {
            ", for what documents or rows lack"
        } else {
            ""
        };
        format!("{} {} of {}{why}", one.records, one.reason, one.flow)
    };
    let lines: Vec<String> = counts.iter().map(told).collect();
    let faults = counts
        .iter()
        .any(|one| one.reason != "retry" && !one.content);
    let detail = match lines.is_empty() {
        true => "none".to_owned(),
        false => lines.join("; "),
    };
    let advice = "`tg dead-letters` and `tg parked` list, show, replay and discard them";
    check("dead letters", !faults, &detail, advice)
}

impl Service {
    /// Whether the configuration is the one that the stores have known: what their owners say, and what our own store
    /// says now.
    async fn configuration(&self, mesh: &Mesh) -> Result<Value, Error> {
        let mut refused = mesh.presence().purging_refused();
        let store = self.store().await?;
        match reaper::refusal(mesh, &*store).await? {
            Some(why) => refused.insert(flow_svc::PROCESSOR.id.to_owned(), why.to_owned()),
            None => refused.remove(flow_svc::PROCESSOR.id),
        };
        Ok(stores(&refused))
    }
}

/// Whether the stores have room.
fn disk(full: bool) -> Value {
    let detail = match full {
        true => FULL_DISK,
        false => "there is room",
    };
    check(
        "disk",
        !full,
        detail,
        "make room below data_dir; work then continues by itself",
    )
}

/// Which stores purge nothing, by the reason.
fn stores(refused: &BTreeMap<String, String>) -> Value {
    if refused.is_empty() {
        return check("configuration", true, "matches the stores", "");
    }
    let mut by_reason = BTreeMap::<&str, Vec<&str>>::new();
    for (store, why) in refused {
        by_reason.entry(why).or_default().push(store);
    }
    let told: Vec<String> = by_reason
        .iter()
        .map(|(why, stores)| format!("{why} ({})", stores.join(", ")))
        .collect();
    check(
        "configuration",
        false,
        &format!(
            "{}; data of deleted workspaces is not purged there",
            told.join("; ")
        ),
        "bring the lost configuration back from a backup",
    )
}

fn check(name: &str, ok: bool, detail: &str, advice: &str) -> Value {
    json!({ "name": name, "ok": ok, "detail": detail, "advice": if ok { "" } else { advice } })
}

fn bus(mesh: &Mesh) -> Value {
    let (ok, detail) = match *mesh.bus().link().borrow() {
        Link::Up { .. } => (true, "connected"),
        Link::Down => (false, "not connected"),
        Link::Blocked => (false, "connected, but it takes no messages for now"),
    };
    check(
        "message bus",
        ok,
        detail,
        "look at the broker's disk and memory alarms",
    )
}

/// Owners of stores, and who would take over.
fn standby(mesh: &Mesh) -> Value {
    let processes = mesh.presence().snapshot();
    let in_state = |state: &str| {
        let mut ids: Vec<&str> = processes
            .iter()
            .flat_map(|process| &process.processors)
            .filter(|processor| processor.state == state)
            .map(|processor| processor.id.as_str())
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    let (serving, waiting) = (in_state("serving"), in_state("standby"));
    let orphans: Vec<_> = waiting
        .iter()
        .filter(|id| !serving.contains(id))
        .copied()
        .collect();
    if !orphans.is_empty() {
        let detail = format!("no process serves {}", orphans.join(", "));
        return check(
            "store owners",
            false,
            &detail,
            "a standby takes over in a moment",
        );
    }
    let many = match processes.len() {
        1 => "1 process".to_owned(),
        many => format!("{many} processes"),
    };
    let detail = match waiting.as_slice() {
        [] => format!("{many}, no standby"),
        some => format!("{many}; standby: {}", some.join(", ")),
    };
    check("store owners", true, &detail, "")
}

fn flow(mesh: &Mesh, workspace: &WorkspaceId, id: &str, record: &FlowRecord) -> Value {
    let name = format!("flow {id}");
    if record.status != Status::Running {
        let detail = format!("is {}", record.status.as_str());
        return check(&name, false, &detail, "`tg why` shows what it waits for");
    }
    let names = record.plan.clone().unwrap_or_default();
    let missing: Vec<String> = names
        .rows
        .iter()
        .filter(|row| processors::processor(&row.processor).is_none_or(|known| known.hosted))
        .filter_map(|row| {
            let (processor, variant) = (&row.processor, &row.variant);
            let (state, _) =
                processor_state(mesh, workspace.as_str(), processor, variant, record.epoch);
            (state != "attached").then(|| format!("{processor} {state}"))
        })
        .collect();
    if missing.is_empty() {
        return check(
            &name,
            true,
            "every processor of this release is attached",
            "",
        );
    }
    check(
        &name,
        false,
        &missing.join(", "),
        "`tg why` says what each of them needs",
    )
}

async fn model_check(mesh: &Mesh, topic: &Topic) -> Value {
    let told = text_completion::status(mesh, topic, MODEL).await;
    let advice = "look at the settings llm.url, llm.model and llm.key, or the provider's variables, and at the provider";
    match told {
        Ok(told) => check("language model", true, &told, ""),
        Err(error) => check("language model", false, &error.message, advice),
    }
}

/// The server that makes vectors, where one does.
async fn vectors_check(mesh: &Mesh, topic: &Topic) -> Option<Value> {
    let told = embeddings::status(mesh, topic, MODEL).await;
    let advice = "look at the settings embeddings.url, embeddings.model and embeddings.key, or the provider's variables, \
                  and at the provider";
    match told {
        Ok(told) => told.map(|told| check("embeddings provider", true, &told, "")),
        Err(error) => Some(check("embeddings provider", false, &error.message, advice)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_document_lacks_is_no_fault_of_the_system() {
        let of = |reason: &str, content: bool| DeadLetterCount {
            flow: "f".to_owned(),
            reason: reason.to_owned(),
            content,
            records: 2,
        };
        let only = dead_letters(&[of("dead", true), of("retry", false)]);
        assert_eq!(only["ok"], true);
        assert_eq!(
            only["detail"],
            "2 dead of f, for what documents or rows lack; 2 retry of f"
        );
        assert_eq!(
            dead_letters(&[of("dead", true), of("dead", false)])["ok"],
            false
        );
        assert_eq!(dead_letters(&[of("parked", false)])["ok"], false);
    }

    #[test]
    fn a_full_disk_fails_a_check_and_says_what_helps() {
        let told = disk(true);
        assert_eq!(
            (&told["name"], &told["ok"]),
            (&json!("disk"), &json!(false))
        );
        assert!(
            told["advice"]
                .as_str()
                .is_some_and(|text| text.contains("make room"))
        );
        assert_eq!(disk(false)["ok"], true);
    }

    #[test]
    fn stores_that_purge_nothing_are_named_with_the_reason() {
        let refused = [("vectors", "older"), ("graph", "other"), ("rows", "older")];
        let refused = refused.map(|(store, why)| (store.to_owned(), why.to_owned()));
        let told = stores(&refused.into());
        assert_eq!(told["ok"], false);
        assert_eq!(
            told["detail"],
            "older (rows, vectors); other (graph); data of deleted workspaces is not purged there"
        );
        assert_eq!(stores(&BTreeMap::new())["ok"], true);
    }
}
