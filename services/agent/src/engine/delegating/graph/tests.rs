//! What graphs of tasks do.

use super::*;

fn choose(id: &str, _: &str) -> Result<(String, Definition), String> {
    match id {
        "" => Ok(("best".to_owned(), Definition::default())),
        "a" | "b" => Ok((id.to_owned(), Definition::default())),
        id => Err(format!("agent_id: there is no agent '{id}'. Agents: a, b")),
    }
}

fn read(tasks: Value, most: usize) -> Result<Graph, String> {
    Graph::read(&json!({"tasks": tasks}), most, &choose)
}

fn task(id: &str, message: &str, after: &[&str]) -> Value {
    json!({"id": id, "agent_id": "a", "message": message, "depends_on": after})
}

fn found(text: &str) -> Finding {
    Finding {
        text: text.into(),
        took_ms: 5,
        ..Finding::default()
    }
}

fn failed() -> Finding {
    Finding {
        error: Some("away".into()),
        ..Finding::default()
    }
}

fn statuses(graph: &Graph) -> Vec<&'static str> {
    graph
        .states
        .iter()
        .map(|state| state.status.as_str())
        .collect()
}

/// Line 119.
#[test]
fn line_119_two_go_side_by_side_and_the_third_after_both() {
    let tasks = json!([
        task("A", "a?", &[]),
        task("B", "b?", &[]),
        task(
            "C",
            "of {{A.output}} and {{ B.output }} {{Z.output}} {{",
            &["A", "B"]
        ),
    ]);
    let mut graph = read(tasks, 5).unwrap();
    assert_eq!(graph.start(), Some((0, "a?".into())));
    assert_eq!(graph.start(), Some((1, "b?".into())));
    assert_eq!(graph.start(), None);
    // An output is never read for placeholders.
    assert_eq!(
        graph.found(1, &found("{{A.output}}")).unwrap(),
        "[1/3] B (a): success"
    );
    assert_eq!(graph.start(), None);
    graph.found(0, &found("x"));
    assert_eq!(
        graph.start(),
        Some((2, "of x and {{A.output}} {{Z.output}} {{".into()))
    );
    graph.found(2, &found("y"));
    assert!(graph.is_over());
    let told = graph.told();
    let json = told.lines().nth(1).unwrap();
    let json: Value = serde_json::from_str(json).unwrap();
    assert_eq!(
        json["tasks"][2],
        json!({"id": "C", "agent_id": "a", "status": "success", "output": "y", "duration_ms": 5})
    );
    assert!(told.starts_with("Tasks: 3 of 3 succeeded\n"), "{told}");
    assert!(
        told.ends_with("[task: C | agent: a | status: success]\ny"),
        "{told}"
    );
}

/// Line 120.
#[test]
fn a_graph_that_cannot_be_done_is_refused() {
    let with = |mut task: Value, key: &str, value: Value| {
        task[key] = value;
        task
    };
    let a = || task("A", "m", &[]);
    for (tasks, told) in [
        (json!([]), "task_graph: has no tasks"),
        (
            json!([with(a(), "id", "".into())]),
            "tasks[0]: id: is required",
        ),
        (
            json!([with(a(), "agent_id", " ".into())]),
            "tasks[0]: agent_id: is required",
        ),
        (
            json!([a(), {"id": "B", "agent_id": "a"}]),
            "tasks[1]: message: is required",
        ),
        (
            json!([with(a(), "timeout_seconds", 0.into())]),
            "tasks[0]: timeout_seconds: must be 1 to 86400",
        ),
        (json!([a(), a()]), "task 'A' is there twice"),
        (
            json!([with(a(), "agent_id", "z".into())]),
            "task 'A': agent_id: there is no agent 'z'. Agents: a, b",
        ),
        (
            json!([task("A", "m", &["B"])]),
            "task 'A' depends on 'B', which there is not",
        ),
        (
            json!([
                task("A", "m", &["B"]),
                task("B", "m", &["A"]),
                task("C", "m", &[])
            ]),
            "depends_on: the tasks go in a circle: A, B",
        ),
        (
            json!([task("A", "m", &["A"])]),
            "depends_on: the tasks go in a circle: A",
        ),
    ] {
        assert_eq!(read(tasks, 5).unwrap_err(), told);
    }
    let many: Vec<Value> = (0..65).map(|at| task(&at.to_string(), "m", &[])).collect();
    assert_eq!(
        read(many.into(), 5).unwrap_err(),
        "task_graph: has more than 64 tasks"
    );
    assert!(
        Graph::read(&json!({"tasks": 1}), 5, &choose)
            .unwrap_err()
            .starts_with("task_graph: ")
    );
}

/// Line 121.
#[test]
fn line_121_a_failure_that_blocks_ends_all_and_another_none() {
    let blocking = |blocking: bool| {
        let mut first = task("A", "a?", &[]);
        first["blocking"] = blocking.into();
        json!([
            first,
            task("B", "b?", &[]),
            task("C", "{{A.output}}", &["A"]),
            task("D", "d", &["C"])
        ])
    };
    let mut graph = read(blocking(true), 5).unwrap();
    while graph.start().is_some() {}
    assert_eq!(graph.found(0, &failed()).unwrap(), "[1/4] A (a): failed");
    assert!(graph.is_over() && graph.start().is_none());
    assert_eq!(
        statuses(&graph),
        ["failed", "cancelled", "cancelled", "cancelled"]
    );
    assert_eq!(graph.found(1, &found("late")), None);
    assert!(graph.fault().is_some());
    let told = graph.told();
    for part in [
        "[task: A | agent: a | status: failed]\nERROR: away",
        "[task: B | agent: a | status: cancelled]\nCANCELLED: cancelled",
        "status: cancelled]\nCANCELLED: cancelled: it depends on 'A', which failed",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let mut graph = read(blocking(false), 5).unwrap();
    while graph.start().is_some() {}
    graph.found(0, &failed());
    assert_eq!(graph.start(), Some((2, "{{A.output}}".into())));
    assert!(!graph.is_over());
}

#[test]
fn a_graph_has_failed_where_no_task_succeeded() {
    let tasks = json!([task("A", "a?", &[]), task("B", "b?", &[])]);
    let mut graph = read(tasks, 5).unwrap();
    while graph.start().is_some() {}
    graph.found(0, &failed());
    let mut other = graph.clone();
    graph.found(1, &failed());
    let fault = "no task succeeded: A (failed): away; B (failed): away";
    assert_eq!(graph.fault().as_deref(), Some(fault));
    other.found(1, &found("b"));
    assert_eq!(other.fault(), None);
}

/// Lines 122 and 123.
#[test]
fn no_more_than_may_go_on_at_once_and_one_may_be_late() {
    let tasks: Vec<Value> = (0..12)
        .map(|at| task(&format!("t{at}"), "m", &[]))
        .collect();
    let mut graph = read(tasks.into(), 3).unwrap();
    let mut under_way = Vec::new();
    let mut most = 0;
    loop {
        while let Some((at, _)) = graph.start() {
            under_way.push(at);
        }
        most = most.max(under_way.len());
        let Some(at) = under_way.pop() else {
            break;
        };
        let late = Finding {
            late: true,
            ..failed()
        };
        graph.found(at, &if at == 4 { late } else { found("x") });
    }
    assert_eq!(most, 3);
    assert!(graph.is_over());
    assert_eq!(statuses(&graph)[4], "timeout");
}

#[test]
fn a_message_is_not_filled_without_end() {
    let many = "{{A.output}}".repeat(1000);
    let tasks = json!([task("A", "a?", &[]), task("B", &many, &["A"])]);
    let mut graph = read(tasks, 1).unwrap();
    graph.start();
    graph.found(0, &found(&"x".repeat(4000)));
    let (_, told) = graph.start().unwrap();
    assert!(told.len() < MAX_MESSAGE + many.len(), "{}", told.len());
    assert!(told.ends_with("{{A.output}}"));
}

#[test]
fn a_long_output_is_cut_where_it_is_inserted() {
    let tasks = json!([task("A", "a?", &[]), task("B", "{{A.output}}", &["A"])]);
    let mut graph = read(tasks, 1).unwrap();
    graph.start();
    graph.found(0, &found(&"x".repeat(5000)));
    let (_, told) = graph.start().unwrap();
    assert!(
        told.ends_with("[cut: 4000 of 5000 characters shown]"),
        "{told}"
    );
    assert_eq!(
        read(json!([{"id": "A", "agent_id": "auto", "message": "m"}]), 1)
            .unwrap()
            .nodes[0]
            .agent,
        "best"
    );
}
