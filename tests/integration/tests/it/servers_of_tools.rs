//! The tools of an MCP server become tools of the agent, as the server describes them: the reference server of the protocol, as a
//! program that the settings list and at an address. Where users have tokens of their own, the server gets the token of the user
//! whose key asked the agent.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::mcp::McpServer;
use tg_testkit::model::{ScriptedModel, two_step_react};
use tg_testkit::process::{Server, client, free_port, root, tg, tg_as};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::{Socket, brief, text_of};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::edge::{first_key, iam};
use crate::revocation_is_immediate::key_of;
use crate::world::{Bus, launch, on_both_buses, post};

const AGENT: &str = "api/v1/flow/default/service/agent";
/// An agent of a file, by its name and by its endpoint.
const FINDER: &str = "name: finder\nmodel: m1\ntools: [own_find]\n";
const CHAT: &str = "a1/agents/finder/chat";
/// Whatever these tests wait for comes within this.
const BOUND: Duration = Duration::from_secs(60);
/// Between two looks at something that tells nobody of itself.
const LOOK: Duration = Duration::from_millis(50);
/// The server as a program, and at an address.
const SERVERS: [&str; 2] = ["program", "address"];
/// What is heard of it goes to a file.
const HEARD: &str = r#"echo $$ > "$0/pid"; tee "$0/heard" | "$@""#;

fn entry() -> Vec<String> {
    let server = ".cache/everything/node_modules/@modelcontextprotocol/server-everything";
    let paths =
        [".cache/npm/node", &format!("{server}/dist/index.js")].map(|path| root().join(path));
    paths
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}

/// The server at an address.
async fn at_address() -> Result<(Child, String)> {
    // It does not report which port it chose.
    let port = free_port()?;
    let [node, script] = &entry()[..] else {
        unreachable!("two paths");
    };
    let child = Command::new(node)
        .args([script, "streamableHttp"])
        .env("PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .context("cannot run Node.js: run the set-up first")?;
    let end = Instant::now() + BOUND;
    while tokio::net::TcpStream::connect(("127.0.0.1", port))
        .await
        .is_err()
    {
        ensure!(Instant::now() < end, "no server at an address");
        tokio::time::sleep(LOOK).await;
    }
    Ok((child, format!("http://127.0.0.1:{port}/mcp")))
}

struct System {
    server: Server,
    model: ScriptedModel,
    noted: tempfile::TempDir,
    _at: Child,
    _node: Option<VirtualHost>,
}

impl System {
    async fn new(bus: Bus) -> Result<Self> {
        let noted = tempfile::tempdir()?;
        let mut args = vec![
            "-c".to_owned(),
            HEARD.to_owned(),
            noted.path().to_string_lossy().into_owned(),
        ];
        args.extend(entry());
        args.push("stdio".to_owned());
        let programs = json!({"everything": {"command": "sh", "args": args, "env": {"TOLD": "of the program"}}});
        let (at, url) = at_address().await?;
        let model = ScriptedModel::start(Vec::new()).await?;
        let node = bus.broker().await?;
        let launch = launch(&model, node.as_ref());
        let launch = launch.env("THREADGRAPH_TOOL__MCP_SERVERS", programs.to_string());
        let server = launch.ready().await?;
        let system = Self {
            server,
            model,
            noted,
            _at: at,
            _node: node,
        };
        let [program, address] = SERVERS;
        for (id, place) in [
            (program, ["--server", "everything"]),
            (address, ["--tool-url", &url]),
        ] {
            let row = ["set-mcp-tool", "--id", id, "--all-tools"];
            system.tg(&[&row[..], &place].concat()).await?;
            let row = [
                "set-tool",
                "--id",
                id,
                "--name",
                id,
                "--type",
                "mcp-server",
                "--mcp",
                id,
            ];
            system.tg(&row).await?;
        }
        Ok(system)
    }

    /// What a command that succeeds prints.
    async fn tg(&self, args: &[&str]) -> Result<String> {
        let done = tg(&self.server.url(), args).await?;
        ensure!(done.code == Some(0), "{args:?}: {done:?}");
        Ok(done.stdout)
    }

    async fn call(&self, server: &str, tool: &str, given: Value) -> Result<String> {
        let given = given.to_string();
        let call = ["invoke-mcp-tool", "-s", server, "-n", tool, "-P", &given];
        self.tg(&call).await
    }

    /// What the agent's tool returned, and which tools the model was offered.
    async fn run(&self, tool: &str, given: Value) -> Result<(String, String)> {
        self.model.set_rules(two_step_react(tool, given, 1));
        let before = self.model.calls().len();
        let ask = json!({"question": "What is it? nonce-1"});
        let (status, reply) = post(&self.server.url(), AGENT, ask).await?;
        ensure!(status == 200, "{reply}");
        let answer = reply["answer"].as_str().unwrap_or_default();
        ensure!(
            answer.trim() == "The answer for nonce-1 is here.",
            "{reply}"
        );
        let seen = reply["observation"].as_str().unwrap_or_default();
        let offered = self.model.calls()[before].body.to_string();
        Ok((seen.to_owned(), offered))
    }

    fn noted(&self, name: &str) -> String {
        read(&self.noted.path().join(name))
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

async fn its_tools_are_listed_and_called(bus: Bus) -> Result<()> {
    let system = System::new(bus).await?;
    for server in SERVERS {
        let listed = system.tg(&["list-mcp-tools", server, "--json"]).await?;
        let listed: Vec<Value> = serde_json::from_str(&listed)?;
        let tool = |name: &str| listed.iter().find(|tool| tool["name"] == name);
        let sum = tool("get-sum").with_context(|| format!("{listed:?}"))?;
        ensure!(sum["description"] == "Returns the sum of two numbers" && sum["read-only"] == true);
        ensure!(
            sum["schema"]["properties"]["a"]["type"] == "number",
            "{sum}"
        );
        ensure!(sum["schema"]["required"] == json!(["a", "b"]), "{sum}");
        let writes = tool("toggle-simulated-logging").context("no tool that writes")?;
        ensure!(writes["read-only"] == false, "{writes}");
        let table = system.tg(&["list-mcp-tools", server]).await?;
        ensure!(
            table.contains("get-sum") && table.contains("arguments"),
            "{table}"
        );

        let said = system
            .call(server, "echo", json!({"message": "hello"}))
            .await?;
        ensure!(said.trim() == "Echo: hello", "{said}");
        let sum = system
            .call(server, "get-sum", json!({"a": 2, "b": 40}))
            .await?;
        ensure!(sum.trim() == "The sum of 2 and 40 is 42.", "{sum}");
        let place = json!({"location": "Chicago"});
        let object = system.call(server, "get-structured-content", place).await?;
        let object: Value = serde_json::from_str(&object)?;
        ensure!(object["conditions"].is_string(), "{object}");
        let picture = system.call(server, "get-tiny-image", json!({})).await?;
        ensure!(picture.contains("[image, image/png]"), "{picture}");

        let call = [
            "invoke-mcp-tool",
            "-s",
            server,
            "-n",
            "get-sum",
            "-P",
            r#"{"a": "two"}"#,
        ];
        let failed = tg(&system.server.url(), &call).await?;
        ensure!(failed.code != Some(0), "{failed:?}");
        ensure!(
            failed.stderr.contains("Input validation error"),
            "{failed:?}"
        );
    }
    // The program has what the settings give it, and nothing of the system's own.
    let variables = system.call("program", "get-env", json!({})).await?;
    ensure!(variables.contains("of the program"), "{variables}");
    ensure!(!variables.contains("sk-test-secret"), "{variables}");
    let all = ["show-mcp-tools", "--json"];
    let shown = system.tg(&all).await?;
    ensure!(
        shown.contains(r#""server": "everything""#) || shown.contains(r#""server":"everything""#),
        "{shown}"
    );
    Ok(())
}

async fn an_agent_uses_what_was_found(bus: Bus) -> Result<()> {
    let system = System::new(bus).await?;
    for server in SERVERS {
        let given = json!({"a": 2, "b": 40});
        let (seen, offered) = system.run(&format!("{server}_get-sum"), given).await?;
        ensure!(seen.trim() == "The sum of 2 and 40 is 42.", "{seen}");
        for told in [
            format!("{server}_echo"),
            "Returns the sum of two numbers".to_owned(),
            "Message to echo".to_owned(),
        ] {
            ensure!(offered.contains(&told), "{told}: {offered}");
        }
        ensure!(!offered.contains("toggle-simulated-logging"), "{offered}");

        let tool = format!("{server}_get-tiny-image");
        let (seen, _) = system.run(&tool, json!({})).await?;
        ensure!(seen.contains("The image above is the MCP logo."), "{seen}");
        let wrong = json!({"a": 2});
        let (seen, _) = system.run(&format!("{server}_get-sum"), wrong).await?;
        ensure!(seen.contains("argument 'b' is required"), "{seen}");
        // What writes was granted to nobody.
        let writes = format!("{server}_toggle-simulated-logging");
        let (seen, _) = system.run(&writes, json!({})).await?;
        ensure!(seen.contains("there is no tool"), "{seen}");
    }
    Ok(())
}

async fn a_cancelled_run_is_told_to_the_program(bus: Bus) -> Result<()> {
    let system = System::new(bus).await?;
    let url = system.server.url();
    let long = json!({"duration": 600, "steps": 2});
    let tool = "program_trigger-long-running-operation";
    system.model.set_rules(two_step_react(tool, long, 1));
    let socket = Socket::connect(&url, "").await?;
    let request = json!({"question": "What is it? nonce-1", "streaming": true});
    let envelope = json!({"service": "agent", "flow": "default", "request": request});
    let mut shown = socket.send(envelope).await?;
    let first = tokio::time::timeout(BOUND, shown.next()).await?;
    let run = first.context("no frame")?["run"].clone();
    let end = Instant::now() + BOUND;
    let until = async |what: &str| {
        while !system.noted("heard").contains(what) {
            ensure!(Instant::now() < end, "{what}: {}", system.noted("heard"));
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    };
    until("trigger-long-running-operation").await?;
    let cancel = json!({"operation": "cancel-run", "run": run});
    let (_, told) = post(&url, "api/v1/requests", cancel).await?;
    ensure!(told["cancelled"] == run, "{told}");
    let frames = shown.all(BOUND).await?;
    ensure!(text_of(&frames, "answer").is_empty(), "{}", brief(&frames));
    until("notifications/cancelled").await?;
    // The program goes on with what else it is asked.
    let said = system
        .call("program", "echo", json!({"message": "still here"}))
        .await?;
    ensure!(said.trim() == "Echo: still here", "{said}");
    Ok(())
}

async fn a_program_ends_with_the_system(bus: Bus) -> Result<()> {
    for killed in [false, true] {
        let system = System::new(bus).await?;
        system
            .call("program", "echo", json!({"message": "hello"}))
            .await?;
        let pid = system.noted("pid");
        let stat = format!("/proc/{}/stat", pid.trim());
        ensure!(!read(Path::new(&stat)).is_empty(), "{pid} runs");
        match killed {
            true => system.server.kill9().await?,
            false => drop(system.server.terminate().await?),
        }
        let end = Instant::now() + BOUND;
        loop {
            let state = read(Path::new(&stat));
            // One that nobody has looked after yet is a zombie.
            if state.is_empty() || state.contains(") Z ") {
                break;
            }
            ensure!(Instant::now() < end, "killed: {killed}; {state}");
            tokio::time::sleep(LOOK).await;
        }
    }
    Ok(())
}

/// A system with users and a server of tools that knows each user by a token.
struct OfUsers {
    server: Server,
    admin: String,
    tools: Arc<McpServer>,
    _model: ScriptedModel,
    _agents: tempfile::TempDir,
    _node: Option<VirtualHost>,
}

impl OfUsers {
    async fn new(bus: Bus) -> Result<Self> {
        let tools = McpServer::start().await?;
        *tools.listed.lock() = vec![vec![json!({"name": "find", "description": "Finds.",
            "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}})]];
        let model = ScriptedModel::start(two_step_react("own_find", json!({}), 1)).await?;
        let agents = tempfile::tempdir()?;
        std::fs::write(agents.path().join("finder.yaml"), FINDER)?;
        let node = bus.broker().await?;
        let launch = launch(&model, node.as_ref()).env(
            "THREADGRAPH_SESSIONS__AGENTS_DIR",
            agents.path().to_string_lossy(),
        );
        let server = launch.arg("--auth").arg("iam").ready().await?;
        let admin = first_key(&server).await?;
        let system = Self {
            server,
            admin,
            tools,
            _model: model,
            _agents: agents,
            _node: node,
        };
        let url = system.tools.url();
        let at = ["set-mcp-tool", "--id", "own", "--tool-url", &url];
        system
            .tg(&[&at[..], &["--all-tools", "--user-tokens"]].concat())
            .await?;
        let row = ["set-tool", "--id", "own", "--name", "own"];
        system
            .tg(&[&row[..], &["--type", "mcp-server", "--mcp", "own"]].concat())
            .await?;
        Ok(system)
    }

    /// A command of the administrator, which succeeds.
    async fn tg(&self, args: &[&str]) -> Result<()> {
        let done = tg_as(&self.server.url(), &self.admin, "", args).await?;
        ensure!(done.code == Some(0), "{args:?}: {done:?}");
        Ok(())
    }

    /// The key of a new user, who has a token at the server if one is given.
    async fn key(&self, name: &str, token: Option<&str>) -> Result<String> {
        let user = json!({"operation": "create-user", "workspace": "default",
            "user": {"username": name, "roles": ["writer"]}});
        let made = iam(&self.server, &self.admin, user).await?;
        let user = made["user"]["id"].as_str().context("no user")?;
        if let Some(token) = token {
            let (key, value) = (format!("{user}/own"), json!({"auth-token": token}));
            let item = ["put-config-item", "--type", "mcp-user-token", "--key", &key];
            self.tg(&[&item[..], &["--value", &value.to_string()]].concat())
                .await?;
        }
        Ok(key_of(&self.server, &self.admin, user, "").await?.0)
    }

    /// Asks an agent by the key of a user; the token that the server got, and how often it was called.
    async fn asked(&self, key: &str, path: &str) -> Result<(Option<String>, usize)> {
        let before = self.tools.count("find");
        *self.tools.authorization.lock() = None;
        let field = if path == CHAT { "message" } else { "question" };
        let body = json!({field: "What is it? nonce-1"});
        let request = client()?.post(format!("{}{path}", self.server.url()));
        let request = request.bearer_auth(key).json(&body).timeout(BOUND);
        let reply: Value = request.send().await?.json().await?;
        let answer = reply["answer"].as_str().or(reply["content"].as_str());
        ensure!(
            answer.map(str::trim) == Some("The answer for nonce-1 is here."),
            "{path}: {reply}\n{}",
            self.server.log()
        );
        let token = self.tools.authorization.lock().clone();
        Ok((token, self.tools.count("find") - before))
    }
}

async fn the_server_gets_the_token_of_the_user_whose_key_asked(bus: Bus) -> Result<()> {
    let system = OfUsers::new(bus).await?;
    let ann = system.key("ann", Some("of-ann")).await?;
    let bob = system.key("bob", Some("of-bob")).await?;
    let eve = system.key("eve", None).await?;
    for path in [AGENT, CHAT] {
        for (key, token) in [(&ann, "of-ann"), (&bob, "of-bob"), (&ann, "of-ann")] {
            let got = system.asked(key, path).await?;
            let wanted = (Some(format!("Bearer {token}")), 1);
            ensure!(got == wanted, "{path}: {got:?} and not {wanted:?}");
        }
        // No other token stands in for one that is missing.
        let got = system.asked(&eve, path).await?;
        ensure!(got == (None, 0), "{path}: {got:?}");
    }
    Ok(())
}

on_both_buses!(
    its_tools_are_listed_and_called,
    an_agent_uses_what_was_found,
    a_cancelled_run_is_told_to_the_program,
    a_program_ends_with_the_system,
    the_server_gets_the_token_of_the_user_whose_key_asked,
);
