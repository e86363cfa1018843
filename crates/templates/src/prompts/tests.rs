//! The shipped prompts, and broken ones.

use serde_json::json;

use super::*;

/// The texts this project ships.
const SHIPPED: &str = include_str!("../../../../blueprints/prompts.json");
/// The agent's prompt as rendered by the reference's template engine.
const RENDERED: &str = include_str!("../../fixtures/agent-react.txt");

fn shipped() -> PromptSet {
    let rows: BTreeMap<String, Value> = serde_json::from_str(SHIPPED).unwrap();
    let rows: Vec<(String, String)> = rows
        .into_iter()
        .map(|(key, value)| (key, value.to_string()))
        .collect();
    PromptSet::read(
        rows.iter()
            .map(|(key, value)| (key.as_str(), value.as_str())),
    )
}

fn terms(value: Value) -> BTreeMap<String, String> {
    let map = value.as_object().unwrap().clone();
    map.into_iter()
        .map(|(name, value)| (name, value.to_string()))
        .collect()
}

#[test]
fn the_shipped_agent_prompt_renders_as_in_the_reference() {
    let argument =
        |name: &str, about: &str| json!({"name": name, "type": "string", "description": about});
    let values = json!({
        "question": "When was the Old Bridge built?",
        "tool_names": "graph_about,calculator",
        "context": null,
        "tools": [
            {"name": "graph_about", "description": "Facts about a thing.",
             "arguments": [argument("name", "name of the thing")]},
            {"name": "calculator", "description": "Calculates.",
             "arguments": [argument("expression", "expression")]},
        ],
        "history": [{
            "thought": "look", "action": "graph_about", "arguments": {"name": "Old Bridge", "x": "y"},
            "observation": "Old Bridge | built | 1429\nOld Bridge | crosses | Arno",
        }],
    });
    let set = shipped();
    let prompt = set.render("agent-react", &terms(values)).unwrap();
    assert_eq!(prompt.text, RENDERED);
    assert!(!prompt.system.is_empty());
    assert_eq!(prompt.kind, Kind::Text);
    let prompt = set
        .render("question", &terms(json!({"question": "<Why> & \"how\"?"})))
        .unwrap();
    assert_eq!(prompt.text, "<Why> & \"how\"?");
}

#[test]
fn every_shipped_prompt_is_whole() {
    let set = shipped();
    for (id, entry) in &set.entries {
        assert!(entry.is_ok(), "{id}");
    }
    let rows: BTreeMap<String, Value> = serde_json::from_str(SHIPPED).unwrap();
    let index: Vec<String> = serde_json::from_value(rows["template-index"].clone()).unwrap();
    let mut index: Vec<&String> = index.iter().collect();
    let mut ids: Vec<&String> = set.entries.keys().collect();
    index.sort();
    ids.sort();
    assert_eq!(index, ids);
}

#[test]
fn one_broken_prompt_harms_no_other() {
    let set = PromptSet::read([
        ("system", "not json"),
        (
            "template.good",
            r#"{"prompt": "hi {{ name }}", "unknown": 1}"#,
        ),
        ("template.bad", r#"{"prompt": "{% if %}"}"#),
        ("template.worse", "nonsense"),
        (
            "template.kind",
            r#"{"prompt": "x", "response-type": "xml"}"#,
        ),
    ]);
    let good = set.render("good", &terms(json!({"name": "you"}))).unwrap();
    assert_eq!(
        (good.text.as_str(), good.system.as_str()),
        ("hi you", "Be helpful.")
    );
    assert_eq!(set.kind("good"), Some(Kind::Text));
    for id in ["bad", "worse", "kind", "none"] {
        assert_eq!(set.kind(id), None);
    }
    for id in ["bad", "worse", "kind"] {
        let error = set.render(id, &BTreeMap::new()).err().unwrap();
        assert!(matches!(error, RenderError::Broken { .. }), "{error}");
    }
    assert_eq!(
        set.render("none", &BTreeMap::new()).err(),
        Some(RenderError::Unknown("none".into()))
    );
    let raw = BTreeMap::from([("name".to_owned(), "you".to_owned())]);
    assert_eq!(
        set.render("good", &raw).err(),
        Some(RenderError::Term {
            name: "name".into()
        })
    );
    let empty = PromptSet::read([("system", "\"x\"")]);
    assert_eq!(
        empty.render("good", &BTreeMap::new()).err(),
        Some(RenderError::NoneConfigured)
    );
}

#[test]
fn a_system_prompt_with_tags_reads_the_values_and_another_is_as_it_stands() {
    let system = |text: &str| {
        let row = json!(text).to_string();
        let set = PromptSet::read([
            ("system", row.as_str()),
            ("template.p", r#"{"prompt": "for {{ name }}"}"#),
        ]);
        let prompt = set.render("p", &terms(json!({"name": "you"}))).unwrap();
        assert_eq!(prompt.text, "for you");
        prompt.system
    };
    assert_eq!(system("Help {{ name }}."), "Help you.");
    for constant in ["Help.\n", "It costs $5 }} %} #", ""] {
        assert_eq!(system(constant), constant);
    }
}

#[test]
fn values_read_as_their_json_says_in_its_order() {
    let row = json!({
        "prompt": "{% for k, v in o.items() %}{{ k }}={{ v }};{% endfor %}{{ o.k11 }}|{{ big }}|{{ f }}|{{ l.1.x }}",
    });
    let row = row.to_string();
    let set = PromptSet::read([("template.p", row.as_str())]);
    let many: String = (0..12).map(|n| format!("\"k{n}\": {n}, ")).collect();
    let terms = [
        ("o", format!("{{{many}\"k0\": \"again\"}}")),
        ("big", u64::MAX.to_string()),
        ("f", "-1.5".to_owned()),
        ("l", r#"[null, {"x": "y", "z": true}]"#.to_owned()),
    ];
    let terms = terms.map(|(name, term)| (name.to_owned(), term));
    let prompt = set.render("p", &terms.into()).unwrap();
    let rest: String = (1..12).map(|n| format!("k{n}={n};")).collect();
    let expected = format!("k0=again;{rest}11|18446744073709551615|-1.5|y");
    assert_eq!(prompt.text, expected);
}

#[test]
fn only_strict_json_is_enforced() {
    let strict = json!({
        "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
        "additionalProperties": false,
    });
    let row = |kind: &str, key: &str| {
        json!({"prompt": "p", "response-type": kind, key: strict}).to_string()
    };
    let (json_row, lines_row) = (row("json", "schema"), row("jsonl", "object-schema"));
    let set = PromptSet::read([
        ("template.j", json_row.as_str()),
        ("template.l", lines_row.as_str()),
    ]);
    assert!(
        set.render("j", &BTreeMap::new())
            .unwrap()
            .enforceable()
            .is_some()
    );
    let lines = set.render("l", &BTreeMap::new()).unwrap();
    assert!(lines.enforceable().is_none());
    assert!(lines.schema.is_some());
}

/// Renders a shipped prompt and holds it against what the built-in model's tests read.
fn renders_as(id: &str, values: Value, expected: &str) {
    let set = shipped();
    let prompt = set.render(id, &terms(values)).unwrap();
    if let Ok(dir) = std::env::var("TG_WRITE_FIXTURES") {
        std::fs::write(format!("{dir}/{id}.txt"), &prompt.text).unwrap();
    }
    assert_eq!(prompt.text, expected, "{id}");
}

#[test]
fn the_shipped_data_prompts_render() {
    let text = "The Old Bridge is a stone bridge over the River Sell. It was built in 1429.";
    let field = |name: &str, kind: &str| json!({"name": name, "type": kind});
    let bridge = json!({
        "name": "bridge", "description": "Bridges of the town",
        "fields": [
            {"name": "name", "type": "string", "primary_key": true, "description": "its name"},
            {"name": "material", "type": "string", "enum": ["stone", "wood"], "enum_values": ["stone", "wood"]},
            {"name": "built", "type": "integer", "required": true},
        ],
    });
    let flood = json!({"name": "flood", "fields": [field("year", "integer")]});
    let schemas = json!([bridge, flood]);
    renders_as(
        "extract-definitions",
        json!({"text": text}),
        include_str!("../../fixtures/extract-definitions.txt"),
    );
    renders_as(
        "extract-relationships",
        json!({"text": text}),
        include_str!("../../fixtures/extract-relationships.txt"),
    );
    renders_as(
        "agent-kg-extract",
        json!({"text": text}),
        include_str!("../../fixtures/agent-kg-extract.txt"),
    );
    renders_as(
        "extract-rows",
        json!({"text": text, "schema": bridge}),
        include_str!("../../fixtures/extract-rows.txt"),
    );
    renders_as(
        "extract-with-ontologies",
        json!({
            "text": text,
            "classes": {
                "Bridge": {"label": "bridge", "subclass_of": "Structure", "comment": "crosses something"},
                "Structure": {}, "River": {"label": "river"},
            },
            "object_properties": {
                "crosses": {"label": "leads over", "domain": "Bridge", "range": "River"},
                "near": {},
            },
            "datatype_properties": {"built": {"domain": "Structure", "range": "gYear", "comment": "year"}},
        }),
        include_str!("../../fixtures/extract-with-ontologies.txt"),
    );
    renders_as(
        "extract-concepts",
        json!({"query": "When was the Old Bridge built?"}),
        include_str!("../../fixtures/extract-concepts.txt"),
    );
    renders_as(
        "kg-synthesis",
        json!({
            "query": "When was the Old Bridge built?",
            "knowledge": [
                {"s": "Old Bridge", "p": "crosses", "o": "River Sell"},
                {"s": "Old Bridge", "p": "built", "o": "1429",
                    "read": "The Old Bridge was built in 1429 and restored in 1987."},
            ],
        }),
        include_str!("../../fixtures/kg-synthesis.txt"),
    );
    renders_as(
        "document-prompt",
        json!({
            "query": "When was the Old Bridge built?",
            "documents": ["The River Sell rises in the hills.\nIt is cold.", text],
        }),
        include_str!("../../fixtures/document-prompt.txt"),
    );
    renders_as(
        "schema-selection",
        json!({"question": "Which bridges are of stone?", "schemas": schemas}),
        include_str!("../../fixtures/schema-selection.txt"),
    );
    renders_as(
        "graphql-generation",
        json!({"question": "Which bridges are of stone?", "schemas": schemas}),
        include_str!("../../fixtures/graphql-generation.txt"),
    );
    renders_as(
        "diagnose-csv",
        json!({
            "sample": "name,material,year built\nOld Bridge,stone,1429\n", "schemas": [bridge],
            "options": {"delimiter": ","},
        }),
        include_str!("../../fixtures/diagnose-csv.txt"),
    );
    renders_as(
        "diagnose-structured-data",
        json!({"sample": "name,material,year built\nOld Bridge,stone,1429\n", "schemas": [bridge]}),
        include_str!("../../fixtures/diagnose-structured-data.txt"),
    );
}

#[test]
fn the_shipped_prompts_of_the_router_list_what_may_be_chosen() {
    let set = shipped();
    let offered = json!([{"name": "risk", "description": "hazards"}, {"name": "general", "description": "else"}]);
    let values = json!({"question": "Which?", "task_types": offered});
    let prompt = set.render("task-type-classify", &terms(values)).unwrap();
    let listed = "## Kinds\n* risk: hazards\n* general: else\n\n## Question\nWhich?";
    assert!(prompt.text.contains(listed), "{}", prompt.text);
    let values = json!({"question": "Which?", "task_type": "risk", "task_type_description": "hazards",
        "patterns": [{"name": "react", "description": "step by step"}]});
    let prompt = set.render("pattern-select", &terms(values)).unwrap();
    let listed = "* react: step by step\n\n## Kind of task\nrisk: hazards\n\n## Question\nWhich?";
    assert!(prompt.text.contains(listed), "{}", prompt.text);
}

#[test]
fn tools_are_offered_as_they_are_now() {
    let set = shipped();
    let text = |about: &str| {
        let tools = json!([{"name": "a", "description": about, "arguments": []}]);
        let terms = terms(json!({"question": "q", "tools": tools}));
        set.render("agent-react", &terms).unwrap().text
    };
    let (one, long) = ("One.".to_owned(), "x".repeat(10_000));
    let mut all = vec![one.clone(), one.clone(), long.clone(), long];
    all.extend((0..20).map(|number| format!("Tool {number}.")));
    all.push(one);
    for about in all {
        assert!(text(&about).contains(&about), "{about}");
    }
}
