//! Tools of a workspace: which of them an agent may use.

use super::*;
use crate::engine::arguments;

const LLM: (&str, &str) = (
    "llm",
    r#"{"name": "llm completion", "type": "text-completion", "description": "d"}"#,
);

fn read(tools: &[(&str, &str)]) -> ToolSet {
    ToolSet::read(&Rows {
        tools,
        workspace: "default",
        ..Rows::default()
    })
}

fn names(set: &ToolSet, run: &AgentRun) -> Vec<String> {
    set.available(run)
        .iter()
        .map(|tool| tool.name.clone())
        .collect()
}

#[test]
fn one_bad_row_costs_only_itself() {
    let set = read(&[
        ("a", "{not json"),
        ("b", r#"{"name": "b", "type": "no-such"}"#),
        ("c", r#"{"name": "c", "type": "prompt"}"#),
        (
            "d",
            r#"{"name": "d", "type": "text-completion", "group": "default"}"#,
        ),
        (
            "e",
            r#"{"name": "e", "type": "tool-service", "service": "none"}"#,
        ),
        (
            "f",
            r#"{"name": "f", "type": "mcp-tool", "mcp-tool": "m", "arguments": [{"name": "x", "type": "blob"}]}"#,
        ),
        LLM,
    ]);
    assert_eq!(names(&set, &AgentRun::default()), ["llm completion"]);
    assert_eq!(set.faults.len(), 6, "{:?}", set.faults);
    assert!(set.faults[1].contains("'no-such' is not known"));
    assert!(set.faults[2].contains("template: is required"));
}

#[test]
fn groups_and_states_decide_what_is_available() {
    let set = read(&[
        ("a", r#"{"name": "a", "type": "text-completion"}"#),
        (
            "b",
            r#"{"name": "b", "type": "text-completion", "group": ["x", "y"], "state": "next"}"#,
        ),
        (
            "c",
            r#"{"name": "c", "type": "text-completion", "applicable-states": ["next"]}"#,
        ),
    ]);
    let run = |groups: Option<&[&str]>, state: &str| AgentRun {
        group: groups.map(|groups| groups.iter().map(|g| (*g).to_owned()).collect()),
        state: state.to_owned(),
        ..AgentRun::default()
    };
    assert_eq!(names(&set, &run(None, "")), ["a"]);
    assert_eq!(names(&set, &run(None, "next")), ["a", "c"]);
    assert!(names(&set, &run(Some(&[]), "")).is_empty());
    assert_eq!(names(&set, &run(Some(&["x"]), "")), ["b"]);
    assert_eq!(names(&set, &run(Some(&["*"]), "undefined")), ["a", "b"]);
    let all = run(Some(&["*"]), "");
    let tools = set.available(&all);
    assert_eq!(tools[1].next_state(""), "next");
    assert_eq!(tools[0].next_state(""), UNDEFINED);
}

#[test]
fn native_rows_take_kind_and_name_from_their_key() {
    let native = [
        ("graph_about", r#"{"description": "d", "arguments": []}"#),
        ("sums", r#"{"type": "calculator", "name": "add"}"#),
    ];
    let set = ToolSet::read(&Rows {
        tools: &[("calculator", r#"{"name": "c", "type": "calculator"}"#)],
        native: &native,
        workspace: "default",
        ..Rows::default()
    });
    assert_eq!(names(&set, &AgentRun::default()), ["add", "graph_about"]);
    assert_eq!(
        set.faults.len(),
        1,
        "a foreign tool cannot take a native kind"
    );
    let run = AgentRun::default();
    let about = find(&set.available(&run), "Graph About").cloned().unwrap();
    assert_eq!(about.kind, Kind::GraphAbout);
    assert_eq!(about.arguments[0].kind, arguments::Kind::String);
    assert!(find(&set.available(&run), "nothing").is_none());
}

#[test]
fn a_tool_service_stays_in_its_workspace() {
    let tool = r#"{"name": "joke", "type": "tool-service", "service": "jokes", "style": "pun"}"#;
    let with = |request: &str| {
        let service = format!(
            r#"{{"request-queue": "{request}", "response-queue": "r", "config-params": [{{"name": "style", "required": true}}]}}"#
        );
        ToolSet::read(&Rows {
            tools: &[("joke", tool)],
            services: &[("jokes", service.as_str())],
            workspace: "default",
            ..Rows::default()
        })
    };
    let good = with("request:tg:tool-joke:default");
    assert!(good.faults.is_empty(), "{:?}", good.faults);
    let run = AgentRun::default();
    let Kind::ToolService { config, .. } = &good.available(&run)[0].kind else {
        panic!()
    };
    assert_eq!(config["style"], "pun");
    for bad in [
        "request:tg:config",
        "request:tg:tool-joke:other",
        "flow:tg:tool-joke:default",
        "request:tg:librarian:default",
        "non-persistent://tg/request/joke",
        "",
    ] {
        assert_eq!(with(bad).faults.len(), 1, "{bad}");
    }
}
