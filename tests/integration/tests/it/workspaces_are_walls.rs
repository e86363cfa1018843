//! Every operation that the gateway describes, tried from one workspace on another by `tg audit-isolation`, shows nothing,
//! changes nothing and tells nothing of it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::{tg, tg_as};

use crate::edge::{first_key, with_keys};
use crate::shared::system;
use crate::workspaces::{has, make, patiently, put};
use crate::world::{Bus, on_both_buses, up};

/// Some of what is tried, by endpoint and operation.
const TRIED: [(&str, &str); 20] = [
    ("POST /v1/chat/completions", ""),
    ("POST /v1/completions", ""),
    ("POST /v1/messages", ""),
    ("POST /v1/messages/count_tokens", ""),
    ("POST /v1/responses", ""),
    ("POST /v1/embeddings", ""),
    ("POST /langgraph/assistants/search", ""),
    ("POST /langgraph/threads", ""),
    ("POST /langgraph/runs/wait", ""),
    ("GET /v1/models", ""),
    ("GET /v1/models/health", ""),
    ("GET /v1/models/{model}", ""),
    ("GET /api/v1/runs/{run}", ""),
    ("POST /api/v1/requests", "read-run"),
    ("POST /api/v1/requests", "replay-run"),
    ("POST /api/v1/requests", "expand-summary"),
    ("POST /api/v1/requests", "remake-summary"),
    ("SOCKET /api/v1/socket", "resume"),
    ("POST /api/v1/threads", "close-thread"),
    ("POST /api/v1/threads", "show-thread"),
];

async fn nothing_gets_through(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let server = with_keys().over(broker.as_ref()).ready().await?;
    let admin = first_key(&server).await?;
    let audit = ["audit-isolation", "--json"];
    let ran = tg_as(&server.url(), &admin, "", &audit).await?;
    let report: Value =
        serde_json::from_str(&ran.stdout).with_context(|| format!("{ran:?}\n{}", server.log()))?;
    let cells = report["cells"].as_array().context("no cells")?;
    let faults: Vec<_> = cells
        .iter()
        .filter(|cell| !cell["fault"].is_null())
        .collect();
    ensure!(faults.is_empty(), "{faults:#?}");
    ensure!(report["changed"] == json!([]), "{}", report["changed"]);
    for how in ["named", "by_id", "frames"] {
        let timed = report["timed"][how].as_u64();
        ensure!(timed > Some(100), "{how}: {timed:?}");
    }
    exists_timing(&report)?;
    ensure!(ran.code == Some(0), "{ran:?}");
    // Whatever is there was asked by each role, over REST and, where it can be, over a socket.
    let seen = |key: &'static str| -> BTreeSet<&str> {
        cells.iter().filter_map(|cell| cell[key].as_str()).collect()
    };
    assert_eq!(
        seen("role"),
        BTreeSet::from(["manager", "nobody", "reader", "writer"])
    );
    assert_eq!(seen("over"), BTreeSet::from(["rest", "socket", "upgrade"]));
    assert_eq!(seen("effect"), BTreeSet::from(["delete", "read", "write"]));
    // It means something: in their own workspace, the same requests are let in.
    let of = |role: &str, named: bool| {
        let mut of = cells.iter();
        of.any(|cell| {
            cell["operation"] == "list-documents"
                && cell["role"] == role
                && cell["named"] == named
                && cell["status"] == 200
        })
    };
    for role in ["reader", "writer", "manager"] {
        assert!(of(role, false) && !of(role, true), "{role}");
    }
    assert!(!of("nobody", false));
    // The words of the OpenAI API, and runs of the agent and threads by their ids, are tried like the rest.
    for (endpoint, operation) in TRIED {
        for named in [true, false] {
            let tried = cells.iter().filter(|cell| {
                cell["endpoint"] == endpoint
                    && cell["operation"] == operation
                    && cell["role"] == "manager"
                    && cell["named"] == named
            });
            let statuses: Vec<_> = tried.map(|cell| cell["status"].as_u64()).collect();
            ensure!(!statuses.is_empty(), "{endpoint} {operation}: {named}");
            let refused = statuses.iter().all(|status| *status == Some(403));
            ensure!(refused == named, "{endpoint} {operation}: {statuses:?}");
        }
    }
    // So are sockets of records, each way.
    for way in ["import", "export"] {
        let endpoint = format!("SOCKET /api/v1/flow/{{flow}}/{way}/{{kind}}");
        let of = |named: bool, status: u16| {
            let mut of = cells.iter();
            of.any(|cell| {
                cell["endpoint"] == endpoint
                    && cell["role"] == "manager"
                    && cell["named"] == named
                    && cell["status"] == status
            })
        };
        ensure!(of(false, 200) && of(true, 403), "{endpoint}");
        ensure!(!of(true, 200), "{endpoint}");
    }
    // What was made for it is gone.
    let left = tg_as(&server.url(), &admin, "", &["list-workspaces"]).await?;
    ensure!(!left.stdout.contains("isolation"), "{left:?}");
    let left = tg_as(&server.url(), &admin, "", &["list-users"]).await?;
    ensure!(!left.stdout.contains("isolation"), "{left:?}");
    Ok(())
}

/// Of each operation the times were compared often enough for a median: naming the other workspace, and by ids of it wherever
/// that looks something up.
fn exists_timing(report: &Value) -> Result<()> {
    let timing = report["timing"].as_array().context("no timing")?;
    for one in timing {
        let (pairs, median) = (one["pairs"].as_u64(), one["median_ms"].as_f64());
        ensure!(one["once"] == json!(true) || pairs >= Some(9), "{one}");
        ensure!(median.zip(one["bound_ms"].as_f64()).is_some(), "{one}");
    }
    let timed = |named: bool| -> BTreeSet<(&str, &str)> {
        let of = timing.iter().filter(|one| one["named"] == named);
        of.filter_map(|one| Some((one["endpoint"].as_str()?, one["operation"].as_str()?)))
            .collect()
    };
    let cells = report["cells"].as_array().context("no cells")?;
    // A page is asked for once, and names nothing: all else names the other workspace.
    let named = cells.iter().filter(|cell| cell["named"] == json!(true));
    let named: BTreeSet<_> = named
        .filter_map(|cell| Some((cell["endpoint"].as_str()?, cell["operation"].as_str()?)))
        .collect();
    let by_name = timed(true);
    let missing: Vec<_> = named.difference(&by_name).collect();
    ensure!(missing.is_empty(), "not timed: {missing:?}");
    ensure!(timed(false).len() > 100, "{}", timed(false).len());
    Ok(())
}

async fn without_keys_there_is_nothing_to_audit(bus: Bus) -> Result<()> {
    let url = system(bus).await?.url();
    let ran = tg(&url, &["audit-isolation"]).await?;
    ensure!(ran.code != Some(0), "{ran:?}");
    ensure!(ran.stderr.contains("asks for no key"), "{ran:?}");
    Ok(())
}

/// Who may write configuration may write the record of a flow, and so topics of another workspace: what goes there is still
/// about the workspace that asks.
async fn topics_of_another_workspace_lead_to_ones_own_data(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let url = server.url();
    make(&url, "acme").await?;
    put(&url, "acme", "of acme").await?;
    put(&url, "default", "of default").await?;
    has(&url, "acme", &["of acme"]).await?;
    has(&url, "default", &["of default"]).await?;

    let key = json!([{"type": "flow", "key": "default"}]);
    let get = json!({"operation": "get", "workspace": "default", "keys": key});
    let told = patiently(&url, "api/v1/config", get).await?;
    let record = told["values"][0]["value"].as_str();
    let record = record.with_context(|| told.to_string())?;
    ensure!(record.contains(":default:default"), "{record}");
    let row = json!([{"type": "flow", "key": "default", "value": record}]);
    let write = json!({"operation": "put", "workspace": "acme", "values": row});
    patiently(&url, "api/v1/config", write).await?;

    // Before the gateway has read it, and after.
    for _ in 0..20 {
        // A flow that changed while a record was on its way is said to have stopped.
        let _ = put(&url, "acme", "of acme").await;
        has(&url, "acme", &["of acme"]).await?;
        has(&url, "default", &["of default"]).await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

on_both_buses!(
    without_keys_there_is_nothing_to_audit,
    topics_of_another_workspace_lead_to_ones_own_data,
);

/// Thousands of requests one after the other, whose times are compared.
mod alone {
    use super::*;

    #[tokio::test]
    async fn nothing_gets_through_embedded() -> Result<()> {
        nothing_gets_through(Bus::Embedded).await
    }

    #[tokio::test]
    async fn nothing_gets_through_over_rabbitmq() -> Result<()> {
        nothing_gets_through(Bus::Rabbit).await
    }
}
