//! Rows of configuration that users write: schemas of tables, blueprints, tools.

use std::collections::BTreeMap;

use tg_agent::engine::delegating::Roster;
use tg_agent::engine::guards::Thresholds;
use tg_agent::engine::guards::thresholds::Overrides;
use tg_agent::engine::router::Router;
use tg_agent::engine::toolset::{Rows, ToolSet};
use tg_flow::engine::blueprint::Blueprint;
use tg_flow::engine::catalog::Catalog;
use tg_flow::engine::check::check;
use tg_flow::engine::parameters::ParameterType;
use tg_flow::engine::template::Template;
use tg_schemas::flow_record::{FlowRecord, Names, ProcessorRow};
use tg_schemas::msg::AgentRun;
use tg_schemas::price::Price;
use tg_schemas::{FlowId, WorkspaceId, table};
use tg_templates::PromptSet;
use tg_testkit::fuzz::run;

#[test]
fn schemas_of_tables() {
    let seeds: [&[u8]; 2] = [
        br#"{"name": "t", "description": "d", "fields": [{"name": "id", "type": "integer", "primary_key": true,
            "enum": ["a"], "required": false}, {"name": "x", "type": "timestamp", "indexed": true}]}"#,
        b"-12", 
    ];
    run("schemas of tables", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let _ = table::Table::read("t", &text);
        let _ = (
            table::whole(&text),
            table::number(&text),
            table::truth(&text),
        );
    });
}

/// Patterns, task types, definitions of agents, guards and prices; and what a model replies to a router.
#[test]
fn rows_of_agents() {
    let seeds: [&[u8]; 5] = [
        br#"{"description": "d", "max_replan_depth": 3, "max_parallel_steps": 2, "max_subagents": 8, "valid_patterns": ["react", "supervisor"]}"#,
        br#"{"name": "a", "description": "d", "capabilities": [{"name": "code-review", "domains": ["go"], "score": 0.8}],
            "agents": ["b"], "group": ["g"], "async": true, "pattern": "react"}"#,
        br#"{"warningThreshold": 3, "criticalThreshold": -4, "historySize": 100000000, "pingPong": false}"#,
        br#"{"input_price": 1e-6, "output_price": -0.0, "cache_read_price": 1e308}"#,
        b"task type: research. react",
    ];
    run("rows of agents", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let rows = [
            ("react", text.as_ref()),
            ("supervisor", text.as_ref()),
            ("x", text.as_ref()),
        ];
        let router = Router::read(&rows, &rows);
        let task = router.task_type("x", Some(&text));
        let _ = (
            router.revisions(),
            router.subagents(),
            router.pattern(&task, Some(&text)),
        );
        let _ = (router.classify(&text, "x"), router.select(&text, &task));
        let mut faults = Vec::new();
        let roster = Roster::read(&rows, &[], &mut faults);
        let _ = roster.list(&AgentRun::default());
        if let Ok(own) = Overrides::read(&text) {
            assert!(Thresholds::default().with(&own).window() > 0);
        }
        if let Some(price) = Price::read(&text) {
            let _ = price.nanodollars(u64::MAX, 7, 3);
        }
    });
}

#[test]
fn blueprints() {
    let seeds: [&[u8]; 1] = [
        br#"{"description": "d", "flow": {"agent-manager:{workspace}:{id}": {"topics": {"request":
            "request:tg:agent:{workspace}:{id}"}, "parameters": {"m": "{model}"}}}, "blueprint": {}, "interfaces":
            {"agent": {"request": "request:tg:agent:{workspace}:{id}"}}, "parameters": {"model": {"type": "llm-model",
            "order": 1}}, "tags": ["a"]}"#,
    ];
    run("blueprints", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let (blueprint, _) = Blueprint::parse(&text);
        let _ = blueprint.addresses().count();
        let catalog = Catalog::new(
            [("agent-manager", text.as_ref()), ("x", text.as_ref())],
            true,
        );
        let _ = check("b", &text, &catalog).text();
        let _ = ParameterType::read(&text);
        if let Ok(template) = Template::parse(&text) {
            let _ = template.names().count();
        }
    });
}

/// What the flow service wrote, or a release before it; another process of the mesh reads it.
#[test]
fn records_of_flows() {
    let seeds: [&[u8]; 3] = [
        br#"{"blueprint-name": "b", "description": "d", "parameters": {"n": "3"}, "epoch": 7, "state": "running",
            "interfaces": {"agent": {"request": "request:tg:agent:w:f", "response": "response:tg:agent:w:f"},
            "triples-store": {"flow": "flow:tg:triples-store:w:f"}, "old": "text"}, "queues": [], "names":
            {"rows": ["graph-rag:f"], "topics": ["request:tg:agent:w:f"], "other-queues": []}}"#,
        br#"{"topics": {"input": "flow:tg:chunk-load:w:f", "x": "y"}, "parameters": {"n": 3, "m": " 4 "}, "epoch": 2,
            "unread": ["output"]}"#,
        br#"{"interfaces": [], "names": 3, "epoch": -1}"#,
    ];
    let workspace = WorkspaceId::new("w").expect("a workspace");
    let flow = FlowId::new("f").expect("a flow");
    run("records of flows", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Some(record) = FlowRecord::read(&text) {
            let again = FlowRecord::read(&record.text()).expect("what was written");
            assert_eq!(again.text(), record.text());
            let _ = (record.shown(), record.inputs().count(), record.number("n"));
        }
        if let Some(row) = ProcessorRow::read(&text) {
            let _ = (row.parameter_texts(), row.number("n"));
        }
        let _ = Names::from_rows(&workspace, &flow, [("graph-rag", text.as_ref())]);
    });
}

#[test]
fn prompts() {
    let seeds: [&[u8]; 3] = [
        br#"{"prompt": "Say {{question}}", "response-type": "json", "schema": {"type": "object", "$ref": "y"}}"#,
        br#"{"prompt": "{% for a in b %}{{ a }}{% endfor %}", "response-type": "jsonl", "id": "p", "system": "s"}"#,
        br#""a text""#,
    ];
    run("prompts", &seeds, |bytes| {
        // Compiled twice and rendered twice: a part is enough.
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(16 << 10)]);
        let set = PromptSet::read([("system", text.as_ref()), ("template.p", text.as_ref())]);
        let terms = BTreeMap::from([("question".to_owned(), "\"q\"".to_owned())]);
        let _ = set.render("p", &terms);
        let broken = BTreeMap::from([("question".to_owned(), text.into_owned())]);
        let _ = set.render("p", &broken);
    });
}

/// What a server of tools says that it has.
const LISTED: &str = r#"[{"name": "a", "description": "d", "schema": {"properties": {"x": {"type": ["integer", "null"]}}}},
    {"name": "b", "read-only": true}]"#;

#[test]
fn tools() {
    let seeds: [&[u8]; 5] = [
        br#"{"type": "mcp-server", "name": "s", "mcp": "d", "tools": ["a"], "confirm": true}"#,
        br#"[{"name": "a", "schema": {"type": "object", "required": ["x"], "properties": {"x": {"enum": [1, "b"]}}}}]"#,
        br#"{"type": "mcp-tool", "name": "a b", "description": "d", "mcp-tool": "m", "group": ["default"], "state": "s",
            "arguments": [{"name": "x", "type": "integer", "description": "y"}], "applicable-states": ["*"]}"#,
        br#"{"type": "prompt", "name": "p", "template": "t", "arguments": []}"#,
        br#"{"type": "structured-query", "name": "q", "collection": "c", "config-params": ["a", {"name": "b"}]}"#,
    ];
    run("tools", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let rows = Rows {
            tools: &[("a", &text)],
            native: &[("b", &text)],
            services: &[("c", &text)],
            agents: &[("d", &text)],
            programs: &[],
            listed: &[("m", &text), ("d", LISTED)],
            workspace: "w",
        };
        let set = ToolSet::read(&rows);
        // One row and one native tool; a row of a server stands for what it has, which is two.
        let has_server = !ToolSet::servers(&[("a", &text), ("b", &text)]).is_empty();
        let most = 2 + usize::from(has_server);
        assert!(set.available(&AgentRun::default()).len() <= most);
    });
}
