//! Credentials in rows and flows leave by no door for who may only read: not in lists, exports, bundles or what commands show. A
//! bundle holds none, whoever made it, and writes no mask over one.

use std::io::Read;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tg_testkit::official::official_as;
use tg_testkit::process::{Output, Server, client, tg_as};
use tg_testkit::shared_node::VirtualHost;

use crate::edge::{first_key, iam, with_keys};
use crate::world::{Bus, on_both_buses};

on_both_buses!(
    no_door_tells_a_reader,
    a_bundle_writes_no_mask_over_a_secret
);

const SECRET: &str = "S3CRET-of-the-server";
const MASK: &str = "********";
const SOON: Duration = Duration::from_secs(60);
/// Until gateways have told what they decided, which they do once a second.
const PAUSE: Duration = Duration::from_millis(200);

/// What an operator sets to find out what is wrong with a server of tools.
const FILTER: &str = "info,lapin=off,tg_tool=debug,rmcp=trace";
const TOOL: &str = "flow/default/service/mcp-tool";
/// Logged when that server cannot be reached.
const NO_SESSION: &str = "no session with an MCP server";

/// What readers run. Each looks at rows or flows, or takes them out.
const COMMANDS: [&[&str]; 13] = [
    &["show-config"],
    &["show-mcp-tools"],
    &["show-tools"],
    &["show-flows"],
    &["show-flow-blueprints"],
    &["show-parameter-types"],
    &["show-token-costs"],
    &["get-flow-blueprint", "-n", "held"],
    &["list-config-items", "--type", "mcp"],
    &["export-workspace-config", "-o", "-"],
    &["why"],
    &["doctor"],
    &["dead-letters"],
];

/// What they ask.
fn questions() -> Vec<(&'static str, Value)> {
    let key =
        |kind: &str, key: &str| json!({"operation": "get", "keys": [{"type": kind, "key": key}]});
    vec![
        ("config", json!({"operation": "config"})),
        ("config", json!({"operation": "list", "type": "mcp"})),
        (
            "config",
            json!({"operation": "getvalues", "type": "of-somebody"}),
        ),
        ("config", key("mcp", "k")),
        ("config", key("of-somebody", "text")),
        ("config", key("of-somebody", "list")),
        ("config", key("tool-service", "k")),
        ("flow", json!({"operation": "list-flows"})),
        ("flow", json!({"operation": "list-blueprints"})),
        (
            "flow",
            json!({"operation": "get-blueprint", "blueprint-name": "held"}),
        ),
        ("flow", json!({"operation": "get-flow", "flow-id": "held"})),
        ("flow", json!({"operation": "why", "flow-id": "held"})),
        ("flow", json!({"operation": "doctor"})),
        ("flow", json!({"operation": "list-put-aside"})),
        ("knowledge", json!({"operation": "list-kg-cores"})),
        (
            "collection-management",
            json!({"operation": "list-collections"}),
        ),
        ("requests", json!({"operation": "list-requests"})),
    ]
}

/// That it is an answer and no fault.
fn answered(told: &str) -> Result<()> {
    let body: Value = serde_json::from_str(told).with_context(|| told.to_owned())?;
    ensure!(body.get("error").is_none_or(Value::is_null), "{told}");
    Ok(())
}

struct System {
    server: Server,
    admin: String,
    reader: String,
    /// Ends with the system.
    _broker: Option<VirtualHost>,
}

impl System {
    async fn start(bus: Bus) -> Result<Self> {
        let broker = bus.broker().await?;
        let launch = with_keys().over(broker.as_ref());
        let server = launch
            .env("THREADGRAPH_LOG__FILTER", FILTER)
            .ready()
            .await?;
        let admin = first_key(&server).await?;
        let user = json!({"operation": "create-user", "workspace": "default",
            "user": {"username": "looks", "roles": ["reader"]}});
        let made = iam(&server, &admin, user).await?;
        let ask = json!({"operation": "create-api-key", "workspace": "default",
            "key": {"user_id": made["user"]["id"], "name": "k"}});
        let made = iam(&server, &admin, ask).await?;
        let reader = made["api_key_plaintext"].as_str().context("no key")?;
        let system = Self {
            reader: reader.to_owned(),
            server,
            admin,
            _broker: broker,
        };
        system.configure().await?;
        Ok(system)
    }

    async fn ask(&self, key: &str, service: &str, ask: &Value) -> Result<String> {
        let url = format!("{}api/v1/{service}", self.server.url());
        let ask = client()?.post(url).bearer_auth(key).json(ask);
        Ok(ask.send().await?.text().await?)
    }

    async fn tg(&self, key: &str, args: &[&str]) -> Result<Output> {
        tg_as(&self.server.url(), key, "", args).await
    }

    /// Rows and a flow that hold the secret, and what only looks like one.
    async fn configure(&self) -> Result<()> {
        let row = |kind: &str, key: &str, value: Value| {
            let value = match value {
                Value::String(text) => text,
                other => other.to_string(),
            };
            json!({"type": kind, "key": key, "value": value})
        };
        let blueprint = self
            .ask(
                &self.admin,
                "flow",
                &json!({"operation": "get-blueprint", "blueprint-name": "everything"}),
            )
            .await?;
        let blueprint: Value = serde_json::from_str(&blueprint)?;
        let blueprint = blueprint["blueprint-definition"]
            .as_str()
            .context("no blueprint")?;
        let mut blueprint: Value = serde_json::from_str(blueprint)?;
        blueprint["settings"] = json!({"api-key": SECRET});
        let values = [
            row(
                "mcp",
                "k",
                json!({"url": format!("http://me:{SECRET}@127.0.0.1:9/mcp?api_key={SECRET}"),
                "remote-name": "seen", "auth-token": SECRET}),
            ),
            row(
                "tool-service",
                "k",
                json!({"name": "seen", "headers": [format!("Authorization: Bearer {SECRET}")],
                "args": ["--api-key", SECRET]}),
            ),
            row("of-somebody", "text", json!(format!("user:{SECRET}"))),
            row("of-somebody", "list", json!({"api-keys": [SECRET]})),
            row(
                "of-somebody",
                "limits",
                json!({"max-token": "512", "token": 64, "note": "seen"}),
            ),
            row("flow-blueprint", "held", blueprint),
        ];
        let put = json!({"operation": "put", "values": values});
        let told = self.ask(&self.admin, "config", &put).await?;
        answered(&told)?;
        let start = json!({"operation": "start-flow", "flow-id": "held", "blueprint-name": "everything",
            "description": "seen", "parameters": {"api-key": SECRET, "max-token": "512"}});
        let told = self.ask(&self.admin, "flow", &start).await?;
        answered(&told)?;
        Ok(())
    }

    /// Calls the tool of the row, whose server is not there.
    async fn call(&self) -> Result<()> {
        let call = json!({"name": "k", "parameters": {}});
        let end = Instant::now() + SOON;
        // The row takes a moment to arrive.
        while !self.server.log().contains(NO_SESSION) {
            let told = self.ask(&self.admin, TOOL, &call).await?;
            ensure!(!told.contains(SECRET), "{told}");
            ensure!(Instant::now() < end, "no server was asked: {told}");
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// That the row still holds the secret.
    async fn keeps_it(&self) -> Result<()> {
        let ask = json!({"operation": "get", "keys": [{"type": "mcp", "key": "k"}]});
        let row = self.ask(&self.admin, "config", &ask).await?;
        ensure!(row.contains(SECRET) && !row.contains(MASK), "{row}");
        Ok(())
    }
}

async fn no_door_tells_a_reader(bus: Bus) -> Result<()> {
    let system = System::start(bus).await?;
    for (service, ask) in questions() {
        let told = system.ask(&system.reader, service, &ask).await?;
        ensure!(!told.contains(SECRET), "{service} {ask}: {told}");
        answered(&told).with_context(|| format!("{service} {ask}"))?;
    }
    for args in COMMANDS {
        let told = system.tg(&system.reader, args).await?;
        // 2 says that there is no such command.
        ensure!(
            told.code.is_some_and(|code| code != 2),
            "{args:?}: {told:?}"
        );
        let all = format!("{}{}", told.stdout, told.stderr);
        ensure!(!all.contains(SECRET), "{args:?}: {all}");
    }
    for kind in ["triples", "rows"] {
        let path = format!("flow/default/export/{kind}?stored=1");
        let url = format!("{}api/v1/{path}", system.server.url());
        let told = client()?
            .get(url)
            .bearer_auth(&system.reader)
            .send()
            .await?;
        let told = told.text().await?;
        ensure!(!told.contains(SECRET), "{kind}: {told}");
    }
    // What is counted is no secret.
    let limits = json!({"operation": "get", "keys": [{"type": "of-somebody", "key": "limits"}]});
    let told = system.ask(&system.reader, "config", &limits).await?;
    ensure!(
        told.contains("512") && told.contains("64") && !told.contains(MASK),
        "{told}"
    );
    let held = json!({"operation": "get-flow", "flow-id": "held"});
    let told = system.ask(&system.reader, "flow", &held).await?;
    ensure!(told.contains("512") && told.contains(MASK), "{told}");
    // Nobody finds it where it is written down what was done.
    let events = json!({"operation": "list-events"});
    let end = Instant::now() + SOON;
    loop {
        let told = system.ask(&system.admin, "audit", &events).await?;
        ensure!(!told.contains(SECRET), "{told}");
        if told.contains("start-flow") {
            break;
        }
        ensure!(Instant::now() < end, "not in the audit: {told}");
        tokio::time::sleep(PAUSE).await;
    }
    system.call().await?;
    let log = system.server.log();
    ensure!(!log.contains(SECRET), "{log}");
    Ok(())
}

async fn a_bundle_writes_no_mask_over_a_secret(bus: Bus) -> Result<()> {
    let system = System::start(bus).await?;
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (ours, theirs, rows) = (path("ours.tgx"), path("theirs.tgx"), path("rows.json"));
    let made = system
        .tg(
            &system.reader,
            &["export-workspace", "-o", &ours, "--config-only"],
        )
        .await?;
    ensure!(
        made.code == Some(0) && made.stderr.contains("mcp/k"),
        "{made:?}"
    );
    let restored = system.tg(&system.admin, &restore_of(&ours)).await?;
    ensure!(restored.code == Some(0), "{restored:?}");
    system.keeps_it().await?;

    // The official command writes what it is shown.
    let args = ["-o", theirs.as_str(), "--config-only"];
    let made = official_as(
        &system.server.url(),
        &system.reader,
        "tg-export-workspace",
        &args,
    )
    .await?;
    ensure!(made.code == Some(0), "{made:?}");
    let restored = system.tg(&system.admin, &restore_of(&theirs)).await?;
    ensure!(restored.code == Some(1), "{restored:?}");
    ensure!(
        restored.stderr.contains("config mcp/k was not imported"),
        "{restored:?}"
    );
    system.keeps_it().await?;
    let args = ["-i", theirs.as_str(), "--config-only", "--overwrite"];
    official_as(
        &system.server.url(),
        &system.admin,
        "tg-import-workspace",
        &args,
    )
    .await?;
    system.keeps_it().await?;

    let file = json!({"config": {"mcp": {"k": json!({"auth-token": MASK}).to_string()},
        "prompt": {"own": "\"is new\""}}});
    std::fs::write(&rows, file.to_string())?;
    let restored = system
        .tg(&system.admin, &["import-workspace-config", "-i", &rows])
        .await?;
    ensure!(
        restored.code == Some(1) && restored.stderr.contains("mcp/k"),
        "{restored:?}"
    );
    system.keeps_it().await?;
    let ask = json!({"operation": "get", "keys": [{"type": "prompt", "key": "own"}]});
    let row = system.ask(&system.admin, "config", &ask).await?;
    ensure!(row.contains("is new"), "{row}");

    // A bundle of somebody who may see it does not hold it either, and says what it lacks. What is plain text is nobody's to know.
    let delete = json!({"operation": "delete", "keys": [{"type": "of-somebody", "key": "text"}]});
    system.ask(&system.admin, "config", &delete).await?;
    let made = system
        .tg(
            &system.admin,
            &["export-workspace", "-o", &ours, "--config-only"],
        )
        .await?;
    ensure!(
        made.code == Some(0) && made.stderr.contains("Left out") && made.stderr.contains("mcp/k"),
        "{made:?}"
    );
    let mut held = Vec::new();
    GzDecoder::new(std::fs::File::open(&ours)?).read_to_end(&mut held)?;
    let held = String::from_utf8_lossy(&held);
    ensure!(
        held.contains("manifest") && !held.contains(SECRET),
        "{held}"
    );
    let restored = system.tg(&system.admin, &restore_of(&ours)).await?;
    ensure!(restored.code == Some(0), "{restored:?}");
    system.keeps_it().await
}

fn restore_of(bundle: &str) -> [&str; 5] {
    [
        "import-workspace",
        "-i",
        bundle,
        "--config-only",
        "--overwrite",
    ]
}
