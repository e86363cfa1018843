//! MCP servers that are programs, and what tools servers have.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tg_schemas::msg::{McpTool, ToolRequest, ToolResponse};
use tg_schemas::{Class, Error, ErrorCode};
use tg_testkit::bus::within;
use tg_testkit::config::Config;
use tg_testkit::flow::{TestFlow, Wiring, topic};
use tg_testkit::mcp::McpServer;
use tg_testkit::place::Place;

const WIRING: &[Wiring] = &[("mcp-tool", &[("request", Class::Request, "mcp-tool")])];
/// Between two looks at something that tells nobody of itself.
const LOOK: Duration = Duration::from_millis(50);

struct System(TestFlow);

impl System {
    /// With these programs, and a row for each of the same name.
    async fn start(place: &Place, programs: Value, more: Value) -> Self {
        Self::with(place, programs, more, &[]).await
    }

    /// With more rows.
    async fn with(place: &Place, programs: Value, more: Value, rows: &[(&str, Value)]) -> Self {
        let config = Config::new();
        for (key, row) in rows {
            config.put("mcp", key, &row.to_string());
        }
        for name in programs.as_object().unwrap().keys() {
            config.put("mcp", name, &json!({"server": name}).to_string());
            let one = json!({"server": name, "remote-name": "pid"});
            config.put("mcp", &format!("pid of {name}"), &one.to_string());
        }
        let mut options = json!({"mcp_servers": programs.to_string(), "private_addresses": "true"});
        let more = more.as_object().unwrap().clone();
        options.as_object_mut().unwrap().extend(more);
        let given = options.as_object().unwrap().iter();
        let given = given.map(|(key, value)| {
            let text = value.as_str().map_or(value.to_string(), str::to_owned);
            (key.clone(), text)
        });
        let (options, faults) = tg_settings::read::<tg_tool::Options>(given.collect());
        assert_eq!((faults, options.faults()), (vec![], vec![]));
        let host = |mesh: &_| tg_tool::processors(mesh, options.clone());
        Self(TestFlow::start(place, config, WIRING, host).await)
    }

    async fn ask(&self, request: ToolRequest) -> Result<ToolResponse, Error> {
        let answer: ToolResponse = self.0.ask("mcp-tool", &request).await?;
        match answer.error {
            Some(error) => Err(error),
            None => Ok(answer),
        }
    }

    /// Waits until this server's tool counts something.
    async fn until(&self, server: &str, tool: &str) {
        let counts = async {
            while self.call(server, tool).await.unwrap() == "0" {
                tokio::time::sleep(LOOK).await;
            }
        };
        within(counts).await;
    }

    async fn list(&self, server: &str) -> Result<Vec<McpTool>, Error> {
        let listed = self.ask(ToolRequest {
            operation: "list-tools".to_owned(),
            server: server.to_owned(),
            ..ToolRequest::default()
        });
        Ok(listed.await?.tools)
    }

    async fn call(&self, server: &str, tool: &str) -> Result<String, Error> {
        let called = self.ask(call(server, tool));
        Ok(called.await?.text)
    }
}

fn call(server: &str, tool: &str) -> ToolRequest {
    ToolRequest {
        name: tool.to_owned(),
        server: server.to_owned(),
        ..ToolRequest::default()
    }
}

/// The program of these tests, with some variables.
fn small(variables: Value) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server.py");
    json!({"command": "python3", "args": [script], "env": variables})
}

/// Waits until these processes are gone.
async fn gone(pids: &str) {
    let is = |pid: &str| {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // One that nobody has looked after yet is a zombie.
        !state.is_empty() && !state.contains(") Z ")
    };
    let looking = async {
        while pids.split(' ').any(is) {
            tokio::time::sleep(LOOK).await;
        }
    };
    within(looking).await;
}

async fn a_program_is_listed_called_and_told_of_cancellations(place: Place) {
    let system = System::start(&place, json!({"small": small(json!({}))}), json!({})).await;
    let tools = system.list("small").await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "pid",
            "variables",
            "fail",
            "picture",
            "hang",
            "grow",
            "cancelled",
            "hanging"
        ]
    );
    let pid = &tools[0];
    assert_eq!(
        (
            &*pid.description,
            &*pid.schema,
            pid.read_only,
            tools[2].read_only
        ),
        ("Does pid.", r#"{"type":"object"}"#, true, false)
    );
    // By the row of one tool, and by that of the server: one process.
    let own = ToolRequest {
        name: "pid of small".to_owned(),
        ..ToolRequest::default()
    };
    let own = system.ask(own).await.unwrap();
    let one = system.list("pid of small").await.unwrap();
    assert_eq!(one, std::slice::from_ref(pid));
    let other = system.call("pid of small", "variables").await.unwrap_err();
    assert_eq!(other.code(), ErrorCode::NotFound);
    assert_eq!(system.call("small", "pid").await.unwrap(), own.text);
    let failed = system.call("small", "fail").await.unwrap_err();
    assert_eq!(
        (failed.code(), &*failed.message),
        (ErrorCode::Tool, "unknown")
    );
    // Who gives up has the server told.
    let to = topic(Class::Request, "mcp-tool");
    let options = system.0.options();
    let given_up = options.cancel.clone();
    let hangs = call("small", "hang");
    let answer = system.0.mesh.ask::<_, ToolResponse>(&to, &hangs, options);
    let answer = tokio::spawn(answer.last());
    system.until("small", "hanging").await;
    given_up.cancel();
    assert!(within(answer).await.unwrap().is_err());
    system.until("small", "cancelled").await;
    assert_eq!(system.call("small", "pid").await.unwrap(), own.text);
}

async fn a_list_is_asked_for_again_when_it_has_changed(place: Place) {
    // A server at an address that answers in pages.
    let server = McpServer::start().await.unwrap();
    let web = [("web", json!({"url": server.url()}))];
    let programs = json!({"small": small(json!({}))});
    let system = System::with(&place, programs, json!({}), &web).await;
    assert_eq!(system.list("small").await.unwrap().len(), 8);
    assert_eq!(system.call("small", "grow").await.unwrap(), "it grew");
    let grown = system.list("small").await.unwrap();
    assert_eq!(grown.last().unwrap().name, "grown");

    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    *server.listed.lock() = vec![vec![tool("a")], vec![tool("b"), tool("c")]];
    for _ in 0..2 {
        let tools = system.list("web").await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }
    // It does not tell of changes, so what it said holds for a while.
    assert_eq!(server.lists.load(Ordering::SeqCst), 2, "a page each");
}

/// Without the announcements the last of these lists would come after two minutes.
async fn a_server_at_an_address_announces_changes_of_its_list(place: Place) {
    let server = McpServer::start().await.unwrap();
    server.promises.store(true, Ordering::SeqCst);
    server.streams.store(true, Ordering::SeqCst);
    let web = [("web", json!({"url": server.url()}))];
    let programs = json!({"small": small(json!({}))});
    let system = System::with(&place, programs, json!({}), &web).await;
    let mut all = Vec::new();
    let announced = async {
        for name in ["a", "b", "c"] {
            all.push(json!({"name": name, "inputSchema": {"type": "object"}}));
            *server.listed.lock() = vec![all.clone()];
            if all.len() > 1 {
                server.changed.notify_one();
            }
            while system.list("web").await.unwrap().len() < all.len() {
                tokio::time::sleep(LOOK).await;
            }
        }
    };
    within(announced).await;
    assert_eq!(server.lists.load(Ordering::SeqCst), 3);
    assert_eq!(server.opened.load(Ordering::SeqCst), 1);
}

async fn a_program_has_what_it_is_given_and_nothing_of_the_services_own(place: Place) {
    let programs = json!({"small": small(json!({"KEY": "env:CARGO_PKG_NAME"}))});
    let system = System::start(&place, programs, json!({})).await;
    let variables = system.call("small", "variables").await.unwrap();
    let variables: Vec<_> = variables.split(' ').collect();
    assert!(variables.contains(&"KEY") && variables.contains(&"PATH"));
    assert!(
        !variables.iter().any(|name| name.starts_with("CARGO")),
        "{variables:?}"
    );
}

async fn no_workspace_starts_what_is_not_listed_for_it(place: Place) {
    let elsewhere = json!({"command": "python3", "workspaces": ["other"]});
    let programs = json!({"elsewhere": elsewhere, "broken": {"command": "/no/such/program"}});
    let own = json!({"command": "python3", "args": ["-c", "print()"]});
    let rows = [("own", own), ("none", json!({"server": "none"}))];
    let system = System::with(&place, programs, json!({}), &rows).await;
    for (row, code, told) in [
        ("elsewhere", ErrorCode::NotFound, "there is no 'elsewhere'"),
        (
            "broken",
            ErrorCode::Tool,
            "the tool's server cannot be reached",
        ),
        ("own", ErrorCode::BadRequest, "'url' is required"),
        ("none", ErrorCode::NotFound, "there is no 'none'"),
        (
            "absent",
            ErrorCode::NotFound,
            "there is no MCP tool 'absent'",
        ),
    ] {
        let error = system.list(row).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        let text = &error.message;
        assert!(text.contains(told) && !text.contains("/no/"), "{text}");
    }
    let error = system.ask(ToolRequest {
        operation: "start".to_owned(),
        ..ToolRequest::default()
    });
    assert_eq!(error.await.unwrap_err().code(), ErrorCode::BadOperation);
}

async fn a_program_that_nobody_uses_is_ended_with_all_that_it_started(place: Place) {
    let programs = json!({"small": small(json!({"CHILD": "1"}))});
    let more = json!({"session_idle_seconds": 1});
    let system = System::start(&place, programs, more).await;
    let first = system.call("small", "pid").await.unwrap();
    gone(&first).await;
    let second = system.call("small", "pid").await.unwrap();
    assert_ne!(first, second);
}

async fn a_place_is_made_by_ending_what_nobody_uses(place: Place) {
    let programs = json!({"one": small(json!({})), "two": small(json!({}))});
    let system = System::start(&place, programs, json!({"mcp_processes": 1})).await;
    let first = system.call("one", "pid").await.unwrap();
    let second = system.call("two", "pid").await.unwrap();
    gone(&first).await;
    // One that is in use is not ended for another.
    let to = topic(Class::Request, "mcp-tool");
    let options = system.0.options();
    let given_up = options.cancel.clone();
    let hangs = call("two", "hang");
    let answer = system.0.mesh.ask::<_, ToolResponse>(&to, &hangs, options);
    let answer = tokio::spawn(answer.last());
    system.until("two", "hanging").await;
    assert_eq!(system.call("two", "pid").await.unwrap(), second);
    let (waits, _) = tokio::join!(system.call("one", "pid"), async {
        assert_eq!(system.call("two", "pid").await.unwrap(), second);
        given_up.cancel();
        assert!(within(answer).await.unwrap().is_err());
    });
    assert_ne!(waits.unwrap(), first);
    gone(&second).await;
}

async fn a_program_ends_with_the_service(place: Place) {
    let programs = json!({"small": small(json!({"CHILD": "1"}))});
    let system = System::start(&place, programs, json!({})).await;
    let pids = system.call("small", "pid").await.unwrap();
    system.0.mesh.stop(Duration::from_secs(5)).await;
    gone(&pids).await;
}

tg_testkit::on_both_buses!(
    a_program_is_listed_called_and_told_of_cancellations,
    a_list_is_asked_for_again_when_it_has_changed,
    a_server_at_an_address_announces_changes_of_its_list,
    a_program_has_what_it_is_given_and_nothing_of_the_services_own,
    no_workspace_starts_what_is_not_listed_for_it,
    a_program_that_nobody_uses_is_ended_with_all_that_it_started,
    a_place_is_made_by_ending_what_nobody_uses,
    a_program_ends_with_the_service,
);
