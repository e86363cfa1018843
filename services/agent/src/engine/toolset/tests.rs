//! Tools of a workspace: which of them an agent may use.

use serde_json::json;

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

/// A tool that gives work away is there as soon as somebody is whom a run may give it to.
#[test]
fn work_is_given_only_to_who_is_there() {
    let native = [
        ("delegate", r#"{"description": "Asks."}"#),
        ("dispatch", r#"{"max-concurrent": 17}"#),
        ("dispatch", r#"{"async": "yes"}"#),
    ];
    let agents = [("a", r#"{"description": "Adds.", "agents": []}"#)];
    let read = |agents: &[(&str, &str)]| {
        ToolSet::read(&Rows {
            native: &native,
            agents,
            ..Rows::default()
        })
    };
    let mut run = AgentRun::default();
    assert!(read(&[]).available(&run).is_empty());
    let set = read(&agents);
    assert_eq!(
        set.faults,
        [
            "tool 'dispatch': max-concurrent: must be 1 to 16",
            "tool 'dispatch': async: must be true or false"
        ]
    );
    let available = set.available(&run);
    assert_eq!(available.len(), 1);
    assert_eq!(available[0].described(&run), "Asks.\nAgents:\n- a: Adds.");
    run.agent = "a".into();
    assert!(set.available(&run).is_empty());
}

#[test]
fn a_tool_with_roles_is_for_who_has_one_of_them() {
    let set = read(&[
        LLM,
        (
            "w",
            r#"{"name": "w", "type": "text-completion", "roles": ["writer", "admin"]}"#,
        ),
        (
            "n",
            r#"{"name": "n", "type": "text-completion", "roles": []}"#,
        ),
    ]);
    let run = |roles: &[&str]| AgentRun {
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        ..AgentRun::default()
    };
    assert_eq!(names(&set, &run(&[])), ["llm completion"]);
    assert_eq!(names(&set, &run(&["reader"])), ["llm completion"]);
    assert_eq!(
        names(&set, &run(&["reader", "writer"])),
        ["llm completion", "w"]
    );
    assert_eq!(set.names(&run(&["admin"])), ["llm completion", "w"]);
}

#[test]
fn a_run_uses_the_tools_that_were_fixed_before_its_first_step() {
    let set = read(&[LLM, ("m", r#"{"name": "more", "type": "text-completion"}"#)]);
    let run = |tools: Option<&[&str]>| AgentRun {
        tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
        ..AgentRun::default()
    };
    assert_eq!(names(&set, &run(None)), ["llm completion", "more"]);
    assert_eq!(
        names(&set, &run(Some(&["llm completion"]))),
        ["llm completion"]
    );
    assert!(names(&set, &run(Some(&[]))).is_empty());
    let one = run(Some(&["llm completion"]));
    assert!(find(&set.available(&one), "More").is_none());
}

/// What agents may do that a run gives work to is fixed with it: they use tools of groups of their own, and only who may give work
/// to them has these among those that are fixed.
#[test]
fn the_tools_of_other_agents_are_fixed_with_those_of_the_run() {
    let tools = [
        (
            "far",
            r#"{"name": "far", "type": "text-completion", "group": ["far"]}"#,
        ),
        ("near", r#"{"name": "near", "type": "text-completion"}"#),
        (
            "ask",
            r#"{"name": "ask", "type": "delegate", "group": ["asks"]}"#,
        ),
    ];
    let agents = [("a", r#"{"group": ["far"]}"#)];
    let set = ToolSet::read(&Rows {
        tools: &tools,
        agents: &agents,
        ..Rows::default()
    });
    assert!(set.faults.is_empty(), "{:?}", set.faults);
    let run = |groups: &[&str]| {
        let mut run = AgentRun {
            group: Some(groups.iter().map(|group| (*group).to_owned()).collect()),
            ..AgentRun::default()
        };
        run.tools = Some(set.names(&run));
        run
    };
    assert_eq!(set.names(&run(&["default"])), ["near"]);
    let mut asks = run(&["default", "asks"]);
    assert_eq!(set.names(&asks), ["ask", "far", "near"]);
    assert_eq!(names(&set, &asks), ["ask", "near"]);
    asks.group = Some(vec!["far".to_owned()]);
    assert_eq!(names(&set, &asks), ["far"]);
    let mut near = run(&["default"]);
    near.group = Some(vec!["far".to_owned()]);
    assert!(names(&set, &near).is_empty());
}

#[test]
fn what_writes_is_there_where_it_asks_or_was_granted() {
    let row =
        |flags: &str| format!(r#"{{"name": "pay", "type": "mcp-tool", "mcp-tool": "p"{flags}}}"#);
    let run = |grant: &[&str]| AgentRun {
        grant: grant.iter().map(|tool| (*tool).to_owned()).collect(),
        ..AgentRun::default()
    };
    for (flags, offered, granted, asks) in [
        ("", true, true, false),
        (r#", "writes": true"#, false, true, false),
        (r#", "confirm": true"#, true, true, true),
        (r#", "writes": true, "confirm": true"#, true, true, true),
    ] {
        let row = row(flags);
        let set = read(&[("pay", row.as_str())]);
        let has = |grant: &[&str]| {
            set.available(&run(grant))
                .first()
                .map(|tool| tool.asks(&run(grant)))
        };
        assert_eq!(has(&[]), offered.then_some(asks), "{flags}");
        assert_eq!(has(&["pay"]), granted.then_some(false), "{flags}");
        assert_eq!(has(&["other"]), offered.then_some(asks), "{flags}");
    }
}

/// What a server has is never in the place of what somebody wrote, and no more servers are asked than eight.
#[test]
fn servers_add_tools_and_replace_none() {
    let listing =
        r#"[{"name": "a", "read_only": true, "schema": "{}"}, {"name": "b", "read_only": true}]"#;
    let own = ("own", r#"{"name": "s_a", "type": "text-completion"}"#);
    let of = |tools: &[(&str, &str)], listed: &[(&str, &str)]| {
        ToolSet::read(&Rows {
            tools,
            listed,
            workspace: "default",
            ..Rows::default()
        })
    };
    let server =
        r#"{"name": "s", "type": "mcp_server", "mcp": "m", "group": ["g"], "roles": ["writer"]}"#;
    let set = of(&[own, ("z", server)], &[("m", listing)]);
    let run = |group: &str, role: &str| AgentRun {
        group: Some(vec![group.to_owned()]),
        roles: vec![role.to_owned()],
        ..AgentRun::default()
    };
    assert_eq!(names(&set, &run("default", "writer")), ["s_a"]);
    assert_eq!(names(&set, &run("g", "writer")), ["s_b"]);
    assert!(names(&set, &run("g", "reader")).is_empty());
    let run = run("g", "writer");
    let tool = set.available(&run)[0];
    let expected = Kind::Mcp {
        server: Some("m".to_owned()),
        name: "b".to_owned(),
        repeatable: true,
    };
    assert_eq!(tool.kind, expected);

    let faults = |server: &str, listing: &str| of(&[("z", server)], &[("m", listing)]).faults;
    assert!(faults(server, "{").concat().contains("cannot be read"));
    assert!(
        faults(r#"{"type": "mcp-server"}"#, "[]")
            .concat()
            .contains("mcp: is required")
    );
    assert!(faults(server, "[]").is_empty() && of(&[("z", server)], &[]).faults.is_empty());
    let many: Vec<(String, String)> = (0..9)
        .map(|n| {
            (
                format!("k{n}"),
                json!({"type": "mcp-server", "mcp": format!("m{n}")}).to_string(),
            )
        })
        .collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(of(&many, &[]).faults.len(), 1);
    assert_eq!(ToolSet::servers(&many).len(), 8);
    assert!(ToolSet::servers(&[own, ("x", "{")]).is_empty());
}

/// A name belongs to the row with the longest prefix, and a prefix to one server.
#[test]
fn a_server_takes_no_name_of_another_server() {
    let row = |name: &str, server: &str, tool: &str| {
        json!({"name": name, "type": "mcp-server", "mcp": server, "tools": [tool, "look"], "writes": false})
            .to_string()
    };
    let listed = [
        (
            "near",
            r#"[{"name": "admin_write"}, {"name": "look"}, {"name": "write"}]"#,
        ),
        ("far", r#"[{"name": "look"}, {"name": "write"}]"#),
    ];
    let of = |tools: &[(&str, &str)]| {
        ToolSet::read(&Rows {
            tools,
            listed: &listed,
            workspace: "default",
            ..Rows::default()
        })
    };
    let run = AgentRun::default();
    let server = |set: &ToolSet, name: &str| match find(&set.available(&run), name) {
        Some(Tool {
            kind: Kind::Mcp { server, .. },
            ..
        }) => server.clone(),
        _ => None,
    };
    let files = row("files", "near", "admin_write");
    let admin = row("files_admin", "far", "write");
    let mut rows = [("a", files.as_str()), ("b", admin.as_str())];
    for _ in 0..rows.len() {
        let set = of(&rows);
        let expected = ["files_admin_look", "files_admin_write", "files_look"];
        assert_eq!(names(&set, &run), expected);
        assert_eq!(server(&set, "files_admin_write").as_deref(), Some("far"));
        assert_eq!(set.faults.len(), 1);
        assert!(
            set.faults[0].starts_with("tool 'a': 1 of its server's tools"),
            "{:?}",
            set.faults
        );
        rows.reverse();
    }

    let second = row("files", "far", "write");
    let set = of(&[("a", files.as_str()), ("b", second.as_str())]);
    assert_eq!(names(&set, &run), ["files_admin_write", "files_look"]);
    assert_eq!(server(&set, "files_look").as_deref(), Some("near"));
    assert_eq!(
        set.faults,
        ["tool 'b': name: a row of another server has it"]
    );
    // Rows of one server may share a name.
    let second = row("files", "near", "write");
    let set = of(&[("a", files.as_str()), ("b", second.as_str())]);
    let expected = ["files_admin_write", "files_look", "files_write"];
    assert_eq!(names(&set, &run), expected);
    assert!(set.faults.is_empty(), "{:?}", set.faults);
}

#[test]
fn a_row_that_asks_does_so_whatever_the_server_says() {
    let listed = [(
        "m",
        r#"[{"name": "look", "read_only": true}, {"name": "pay"}]"#,
    )];
    let run = AgentRun::default();
    for (flags, expected) in [
        (r#""confirm": true"#, [true, true]),
        (r#""confirm": true, "writes": true"#, [true, true]),
        (r#""confirm": true, "writes": false"#, [false, false]),
        (r#""writes": false"#, [false, false]),
    ] {
        let row = format!(r#"{{"name": "s", "type": "mcp-server", "mcp": "m", {flags}}}"#);
        let set = ToolSet::read(&Rows {
            tools: &[("s", row.as_str())],
            listed: &listed,
            workspace: "default",
            ..Rows::default()
        });
        let tools = set.available(&run);
        let asks: Vec<bool> = tools.iter().map(|tool| tool.asks(&run)).collect();
        assert_eq!(asks, expected, "{flags}");
    }
}

#[test]
fn the_tools_over_collections_are_shipped() {
    let shipped = include_str!("../../../../../blueprints/tools.json");
    let shipped: serde_json::Value = serde_json::from_slice(shipped.as_bytes()).unwrap();
    let rows = shipped["tool-native"].as_object().unwrap().iter();
    let rows: Vec<(String, String)> = rows
        .map(|(key, row)| (key.clone(), row.to_string()))
        .collect();
    let native: Vec<(&str, &str)> = rows.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let set = ToolSet::read(&Rows {
        native: &native,
        workspace: "default",
        ..Rows::default()
    });
    assert!(set.faults.is_empty(), "{:?}", set.faults);
    let run = AgentRun {
        group: Some(vec!["knowledge".to_owned()]),
        ..AgentRun::default()
    };
    let expected = [
        "count_documents",
        "get_document",
        "list_chunks",
        "list_documents",
        "list_kbs",
        "search_kb",
        "summarize_kb",
    ];
    assert_eq!(names(&set, &run), expected);
    let over = |tool: &&Tool| matches!(tool.kind, Kind::Knowledge(_));
    assert_eq!(set.available(&run).into_iter().filter(over).count(), 7);
    // A document must not lead the model to another collection: neither text invites it to name one.
    let passages = AgentRun {
        group: Some(vec!["passages".to_owned()]),
        ..AgentRun::default()
    };
    let tools = set.available(&passages);
    let tool = tools.iter().find(|tool| tool.name == "rag_query").unwrap();
    let read_by_model = tool.arguments.iter().map(|one| one.description.as_str());
    let row = shipped["tool-native"]["rag_query"]["arguments"].as_array();
    let in_row = row.unwrap().iter();
    let in_row: Vec<&str> = in_row
        .filter_map(|one| one["description"].as_str())
        .collect();
    assert_eq!(read_by_model.collect::<Vec<_>>(), in_row);
    assert!(in_row[1].starts_with("Leave it out."), "{in_row:?}");
    // Nobody writes such a row beside those that come with the system.
    let own = read(&[("x", r#"{"name": "x", "type": "search-kb"}"#)]);
    assert!(own.faults[0].contains("'search-kb' is not known"));
}
