//! What models write, and what users write for models.

use serde_json::json;
use tg_agent::engine::arguments::{Argument, Kind, check};
use tg_agent::engine::decision::Finding;
use tg_agent::engine::delegating::Definition;
use tg_agent::engine::delegating::graph::{Graph, MAX_TASKS};
use tg_agent::engine::parser::ReplyParser;
use tg_agent::engine::{plan, planning};
use tg_rag::engine::concepts;
use tg_templates::template::Engine;
use tg_testkit::fuzz::run;
use tg_tool::engine::calculator;

#[test]
fn decisions_of_an_agent() {
    let seeds: [&[u8]; 4] = [
        b"Thought: a\nAction: calculator\nArgs: {\"expression\": \"1+1\"}\n",
        b"Thought: a\nFinal Answer: **b** {\"c\": [1, 2]}",
        b"<think>x</think>\n```json\n{\"thought\": \"a\", \"final-answer\": \"b\"}\n```",
        b"Action: x\nAction Input: {\"a\": {\"b\": [\"\\u00fc\"]}}\nObservation: no",
    ];
    run("decisions of an agent", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let _ = ReplyParser::parse(&text);
        // In pieces, as a model streams them.
        let mut parser = ReplyParser::default();
        let mut rest = text.as_ref();
        let mut size = bytes.len() % 7 + 1;
        while !rest.is_empty() {
            let end = rest
                .char_indices()
                .nth(size)
                .map_or(rest.len(), |(at, _)| at);
            let _ = parser.push(&rest[..end]);
            rest = &rest[end..];
            size = size % 64 + 3;
        }
        let _ = parser.finish();
    });
}

/// Goals, plans and choices of tools: whatever a model writes, none is over its bound and no step waits for itself.
#[test]
fn plans_of_models() {
    let seeds: [&[u8]; 5] = [
        br#"Here: ["find the lantern", "", 7, "who made it"] done"#,
        br#"```json
[{"goal": "a", "tool_hint": "x", "depends_on": [0, 2, 2, -1]}, {"goal": "b", "depends_on": [0]}, {"goal": "c"}]
```"#,
        br#"{"steps": [{"goal": "a", "depends_on": [1]}, {"goal": "b", "depends_on": [0]}]}"#,
        br#"I choose {"tool": " calculator ", "arguments": {"expression": "1+1"}}."#,
        br#"[{"tool": null, "arguments": []}, "x]"]"#,
    ];
    const MOST: usize = 8;
    run("plans of models", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        assert!(plan::goals(&text, MOST).unwrap_or_default().len() <= MOST);
        let steps = plan::read(&text, MOST).unwrap_or_default();
        assert!(steps.len() <= MOST);
        for (own, step) in (0..).zip(&steps) {
            let count = i64::try_from(steps.len()).expect("a small number");
            assert!(
                step.depends_on
                    .iter()
                    .all(|on| (0..count).contains(on) && *on != own)
            );
        }
        let _ = planning::choice(&text);
    });
}

#[test]
fn graphs_of_tasks() {
    let seeds: [&[u8]; 4] = [
        br#"{"tasks": [{"id": "A", "agent_id": "a", "message": "m", "blocking": true},
            {"id": "B", "agent_id": "auto", "message": "{{A.output}} {{ A.output }} {{", "depends_on": ["A"]}]}"#,
        br#"{"tasks": [{"id": "A", "agent_id": "a", "message": "x", "depends_on": ["B"], "timeout_seconds": 86400},
            {"id": "B", "agent_id": "a", "message": "{{A.output}}", "depends_on": ["A"], "timeout_seconds": -1}]}"#,
        br#"{"tasks": [{"id": "{{", "agent_id": " a ", "message": "}}{{{{.output}}", "depends_on": []}]}"#,
        br#"{"tasks": [{"id": "A", "agent_id": 1}], "more": [[[[null]]]]}"#,
    ];
    let choose = |id: &str, _: &str| match id.len() {
        0..8 => Ok((id.to_owned(), Definition::default())),
        _ => Err("there is no such agent".to_owned()),
    };
    run("graphs of tasks", &seeds, |bytes| {
        let Ok(written) = serde_json::from_slice(bytes) else {
            return;
        };
        let Ok(mut graph) = Graph::read(&written, 3, &choose) else {
            return;
        };
        let _ = (graph.begun(), graph.outline());
        // Whatever comes of them, each task begins once and all end.
        let mut begun = 0;
        while let Some((at, told)) = graph.start() {
            begun += 1;
            assert!(begun <= MAX_TASKS, "a task began twice");
            let finding = Finding {
                text: format!("{told}{{{{A.output}}}}"),
                error: bytes.len().is_multiple_of(3).then(|| "away".to_owned()),
                late: bytes.len().is_multiple_of(2),
                ..Finding::default()
            };
            assert!(graph.found(at, &finding).is_some());
        }
        assert!(graph.is_over(), "{}", graph.outline());
        let _ = graph.told();
    });
}

#[test]
fn arguments_of_tools() {
    let kinds = [
        "string", "number", "integer", "boolean", "object", "array", "any",
    ];
    let takes = kinds.map(|name| Argument {
        name: name.to_owned(),
        kind: Kind::parse(name).expect("a kind"),
        description: String::new(),
        required: name == "string",
    });
    let seeds: [&[u8]; 3] = [
        br#"{"string": 7, "number": "1e3", "integer": "0009", "boolean": "TRUE", "object": "{\"a\": 1}", "array": "[1]"}"#,
        br#"{"string": null, "number": 1e308, "integer": 9.5, "any": [[[]]], "other": "x"}"#,
        br#"{"string": "", "integer": "18446744073709551616", "array": "a, b", "object": "{"}"#,
    ];
    run("arguments of tools", &seeds, |bytes| {
        if let Ok(given) = serde_json::from_slice(bytes)
            && let Ok(taken) = check(&takes, given)
        {
            assert!(taken.contains_key("string"));
        }
    });
}

#[test]
fn templates_of_prompts() {
    let seeds: [&[u8]; 4] = [
        b"Hello {{name}}, {% for x in items %}{{ x.a | upper }}{% endfor %}",
        b"{{#if name}}a{{else}}b{{/if}} {{{raw}}} {{items.0.a}}",
        b"{% if name == 'x' and not items %}{{ items | tojson }}{% else %}{{ name[1:3] }}{% endif %}",
        b"{% set a = [1, 2] %}{{ a | length }} {{ name.split(' ')[0] }} {# no #}",
    ];
    run("templates of prompts", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let mut engine = Engine::default();
        if engine.add("x", &text).is_ok() {
            let values = json!({"name": "N", "items": [{"a": "b"}], "raw": "<&>"});
            let _ = engine.render("x", values.as_object().expect("an object").clone());
        }
    });
}

#[test]
fn expressions() {
    let seeds: [&[u8]; 3] = [
        b"2*(3+4)^2 - sqrt(2)/ln(e)",
        b"min(1, 2, -3) % 4",
        b"1e308*10 + (((1)))",
    ];
    run("expressions", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(value) = calculator::evaluate(&text) {
            assert!(value.is_finite());
            let _ = calculator::show(value);
        }
    });
}

#[test]
fn lists_of_concepts() {
    let seeds: [&[u8]; 3] = [
        b"- a\n- b\n* c",
        b"[\"a\", {\"entity\": \"b\"}]",
        b"1. a\n2) b, c; d",
    ];
    run("lists of concepts", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let found = concepts::read(&text, "what is a?");
        let _ = concepts::searches("what is a?", &found);
    });
}
