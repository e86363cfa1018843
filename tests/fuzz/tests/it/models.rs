//! What models write, and what users write for models.

use serde_json::json;
use tg_agent::engine::arguments::{Argument, Kind, check};
use tg_agent::engine::parser::ReplyParser;
use tg_prompt::engine::template::Engine;
use tg_rag::engine::concepts;
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
