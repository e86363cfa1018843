//! Descriptors of imports as people write them: each change and check that they name, on a record.

use serde_json::{Value, json};
use tg_testkit::fuzz::run;

use super::descriptor::Descriptor;
use super::records::{Fields, RecordPath};
use super::transform::cell;

#[test]
fn descriptors() {
    let seeds: [&[u8]; 2] = [
        br#"{"format": {"type": "csv", "encoding": "utf-8", "options": {"delimiter": ";", "has_header": true}},
            "globals": {"variables": {"v": "x"}, "lookup_tables": {"t": {"a": "b"}}},
            "mappings": [{"source_field": "a", "target_field": "b", "transforms": [{"type": "trim"},
            {"type": "substring", "start": 1, "end": 18446744073709551615}, {"type": "pad_left", "length": 9, "char": "0"},
            {"type": "regex_replace", "pattern": "(a+)+$", "replacement": "$1"}, {"type": "to_date", "format": "%Y-%m-%d %%"},
            {"type": "lookup", "table": "t"}], "validation": [{"type": "required"}, {"type": "pattern", "pattern": "^.*$"}]}],
            "output": {"schema_name": "s", "options": {"batch_size": 10, "confidence": 0.5}}}"#,
        br#"{"format": {"type": "xml", "options": {"record_path": "//r", "field_attribute": "n"}}, "mappings": [], "output": {}}"#,
    ];
    let records: Vec<Fields> = [
        json!({"a": "2026-01-05 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "b": null}),
        json!({"a": 1e300, "b": [1]}),
        json!({"a": "ü 漢字"}),
    ]
    .into_iter()
    .filter_map(|value| match value {
        Value::Object(fields) => Some(fields.into_iter().collect()),
        _ => None,
    })
    .collect();
    run("descriptors", &seeds, |bytes| {
        let Ok(descriptor) = Descriptor::read(&String::from_utf8_lossy(bytes)) else {
            return;
        };
        for record in &records {
            for mapping in &descriptor.mappings {
                let mut value = cell(record.get(&mapping.source));
                for transform in &mapping.transforms {
                    match transform.apply(value, record) {
                        Ok(changed) => value = changed,
                        Err(_) => return,
                    }
                }
                for check in &mapping.checks {
                    let _ = check.run(&value);
                }
            }
        }
        let _ = RecordPath::read(&descriptor.schema_name);
    });
}
