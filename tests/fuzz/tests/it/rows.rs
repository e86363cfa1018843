//! Rows of configuration that users write: schemas of tables, blueprints, tools.

use tg_flow::engine::blueprint::Blueprint;
use tg_schemas::table;
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

#[test]
fn blueprints() {
    let seeds: [&[u8]; 1] = [
        br#"{"description": "d", "flow": {"agent-manager:{workspace}:{id}": {"topics": {"request":
            "request:tg:agent:{workspace}:{id}"}, "parameters": {"m": "{model}"}}}, "blueprint": {}, "interfaces":
            {"agent": {"request": "request:tg:agent:{workspace}:{id}"}}, "parameters": {"model": {"type": "llm-model",
            "order": 1}}, "tags": ["a"]}"#,
    ];
    run("blueprints", &seeds, |bytes| {
        let (blueprint, _) = Blueprint::parse(&String::from_utf8_lossy(bytes));
        let _ = blueprint.addresses().count();
    });
}
