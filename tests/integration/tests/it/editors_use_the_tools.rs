//! Editors and other agents use graph, library and agents as tools, by the Model Context Protocol: its official client, unmodified,
//! over HTTP and through `tg mcp-server`, in its revisions with a handshake and without; nobody gets more by it than they may
//! otherwise. A call that is cancelled, or whose caller goes, ends what it asked for.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel, two_step_react};
use tg_testkit::process::{Server, bin_dir, client, root};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::edge::{first_key, iam};
use crate::world::{Bus, World, launch, on_both_buses};

const BOUND: Duration = Duration::from_secs(240);
/// What a call's end leads to comes within this.
const SOON: Duration = Duration::from_secs(60);

/// A user of the role with a key that is held to some capabilities, or to none.
async fn keys(server: &Server, admin: &str, scopes: &[&[&str]]) -> Result<Vec<String>> {
    let user = json!({"username": "rita", "roles": ["reader"]});
    let ask = json!({"operation": "create-user", "user": user});
    let made = iam(server, admin, ask).await?;
    let mut keys = Vec::new();
    for (at, scopes) in scopes.iter().enumerate() {
        let key =
            json!({"user_id": made["user"]["id"], "name": format!("k{at}"), "scopes": scopes});
        let ask = json!({"operation": "create-api-key", "key": key});
        let made = iam(server, admin, ask).await?;
        let key = made["api_key_plaintext"].as_str();
        keys.push(key.context("no key")?.to_owned());
    }
    Ok(keys)
}

async fn the_official_client_uses_the_tools(bus: Bus) -> Result<()> {
    let script = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let model = ScriptedModel::start(script).await?;
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref()).arg("--auth").arg("iam");
    let server = launch.ready().await?;
    let admin = first_key(&server).await?;
    let keys = keys(&server, &admin, &[&[], &["triples:read"]]).await?;
    let record = json!({"id": "acme", "name": "acme", "enabled": true});
    let make = json!({"operation": "create-workspace", "workspace_record": record});
    iam(&server, &admin, make).await?;
    let iri = |text: &str| json!({"t": "i", "i": text});
    let triple = json!({"s": iri("urn:a"), "p": iri("urn:b"), "o": {"t": "l", "v": "told"}});
    let triples = json!({"metadata": {"id": "x", "collection": "default"}, "triples": [triple]});
    let url = format!("{}api/v1/flow/default/import/triples", server.url());
    let sent = client()?.post(url).bearer_auth(&admin);
    let sent = sent.body(format!("{triples}\n")).send().await?;
    ensure!(sent.status().is_success(), "{}", sent.text().await?);

    let tg = bin_dir()?.join("tg");
    let tg = tg.to_str().context("a path")?;
    let args = [tg, &keys[0], &keys[1], &admin];
    let (told, errors) = client_tells(&server, "mcp_tools.py", &args).await?;
    ensure!(
        told["wrong"] == json!([]),
        "{told:#}\n{errors}\n{}",
        server.log()
    );
    the_audit_knows(&server, &admin).await
}

/// What a client in Python tells of a gateway, and what it wrote beside it.
async fn client_tells(server: &Server, client: &str, args: &[&str]) -> Result<(Value, String)> {
    let work = Command::new(root().join(".cache/mcp/bin/python3"))
        .arg(root().join("tests/integration/clients").join(client))
        .arg(server.url())
        .args(args)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work)
        .await
        .with_context(|| format!("the client did not end\n{}", server.log()))?
        .context("cannot run Python: run the set-up first")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = serde_json::from_str(&text).with_context(|| format!("{text}\n{errors}"))?;
    Ok((told, errors))
}

/// It finds the authorization server, registers and sends its user to the page; nobody gave it a key. Nothing of it is in the log.
async fn the_official_client_signs_its_user_in(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(Vec::new()).await?;
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref()).arg("--auth").arg("iam");
    let server = launch.ready().await?;
    let admin = first_key(&server).await?;
    let user = json!({"username": "paula", "password": "a horse of stone", "roles": ["reader"]});
    iam(
        &server,
        &admin,
        json!({"operation": "create-user", "user": user}),
    )
    .await?;
    let args = ["paula", "a horse of stone"];
    let (told, errors) = client_tells(&server, "mcp_sign_in.py", &args).await?;
    let whole = || format!("{told:#}\n{errors}\n{}", server.log());
    ensure!(
        told["pages"] == 1 && told["form"] == true && told["sent"] == 303,
        "{}",
        whole()
    );
    ensure!(
        told["for"] == true && told["returned"] == true,
        "{}",
        whole()
    );
    let tools = told["tools"].as_array().with_context(whole)?;
    ensure!(tools.contains(&json!("search")), "{}", whole());
    let left = told["seconds"].as_i64();
    ensure!(left > Some(0) && left <= Some(3600), "{}", whole());
    let token = told["token"].as_str().with_context(whole)?;
    let log = server.log();
    ensure!(
        !log.contains(token) && !log.contains("a horse of stone"),
        "{log}"
    );
    Ok(())
}

/// What was refused by way of a tool is written down as what it is, and where it came in.
async fn the_audit_knows(server: &Server, admin: &str) -> Result<()> {
    let deadline = tokio::time::Instant::now() + SOON;
    loop {
        let url = format!("{}api/v1/audit", server.url());
        let ask = json!({"operation": "list-events", "limit": 1000});
        let asked = client()?.post(url).bearer_auth(admin).json(&ask).send();
        let told: Value = asked.await?.json().await?;
        let all = told.to_string();
        if all.contains("librarian/load-document") && all.contains("\"mcp\"") {
            return Ok(());
        }
        ensure!(tokio::time::Instant::now() < deadline, "{told}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A call of the agent, without its answer.
fn call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "ask_agent", "arguments": {"question": "What is it? nonce-1"}}})
}

async fn a_call_ends_with_its_caller_or_by_a_notice(bus: Bus) -> Result<()> {
    let slow = Reply::text("Thought: late\n").delayed(Duration::from_secs(300));
    let world = World::with(bus, vec![Rule::always(slow)]).await?;
    let url = format!("{}mcp", world.server.url());
    let post = |body: Value, session: Option<String>| {
        let request = client().map(|client| client.post(&url).json(&body));
        async move {
            let mut request = request?;
            if let Some(session) = session {
                request = request.header("mcp-session-id", session);
            }
            Ok::<_, anyhow::Error>(request.send().await?)
        }
    };
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let begun = post(begin, None).await?;
    let session = begun
        .headers()
        .get("mcp-session-id")
        .context("no session")?;
    let session = Some(session.to_str()?.to_owned());

    // By a notice: it is answered, as one that was cancelled.
    let asked = tokio::spawn(post(call(1), session.clone()));
    ensure!(world.model.wait_calls(1, SOON).await, "not asked");
    let again = post(call(1), session.clone()).await?.text().await?;
    ensure!(again.contains("under way"), "{again}");
    let notice = |of: u64| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": of}});
    // One of the same name in another session is not meant.
    let other = post(notice(1), Some("other".to_owned())).await?;
    ensure!(other.status().as_u16() == 202, "{}", other.status());
    ensure!(!asked.is_finished(), "another session ended it");
    post(notice(1), session.clone()).await?;
    let answer = tokio::time::timeout(SOON, asked).await???.text().await?;
    ensure!(answer.contains("\"isError\":true"), "{answer}");
    ensure!(
        world.model.wait_closed(1, SOON).await,
        "the model is still asked"
    );

    // By going.
    let asked = tokio::spawn(post(call(2), session));
    ensure!(world.model.wait_calls(2, SOON).await, "not asked");
    asked.abort();
    ensure!(
        world.model.wait_closed(2, SOON).await,
        "the model is still asked"
    );

    // The same through the program.
    let mut program = Command::new(bin_dir()?.join("tg"))
        .args(["mcp-server", "-u", &world.server.url()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = program.stdin.take().context("no input")?;
    input.write_all(format!("{}\n", call(3)).as_bytes()).await?;
    ensure!(world.model.wait_calls(3, SOON).await, "not asked");
    input
        .write_all(format!("{}\nno message\n", notice(3)).as_bytes())
        .await?;
    ensure!(
        world.model.wait_closed(3, SOON).await,
        "the model is still asked"
    );
    drop(input);
    let output = tokio::time::timeout(SOON, program.wait_with_output()).await??;
    ensure!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout)?;
    let lines: Vec<&str> = lines.lines().collect();
    ensure!(lines.len() == 1 && lines[0].contains("-32700"), "{lines:?}");
    Ok(())
}

on_both_buses!(
    the_official_client_uses_the_tools,
    the_official_client_signs_its_user_in,
    a_call_ends_with_its_caller_or_by_a_notice,
);
