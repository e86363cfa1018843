//! Parameters: where values come from and which are refused.

use serde_json::json;
use tg_schemas::{FlowId, WorkspaceId};

use super::super::blueprint::Blueprint;
use super::super::catalog::Catalog;
use super::super::parameters::{Resolved, resolve};
use super::super::plan::{Subject, plan};
use super::{given, resolved, shipped, types};

#[test]
fn a_controlled_parameter_follows_what_the_user_set() {
    let everything = shipped("everything");
    let values = resolved(&everything, &[]).unwrap().values;
    assert_eq!((&*values["llm-model"], &*values["llm-rag-model"]), ("", ""));
    assert_eq!(
        (&*values["chunk-size"], &*values["llm-temperature"]),
        ("2000", "0.3")
    );
    let values = resolved(&everything, &[("llm-model", "gpt-4o")])
        .unwrap()
        .values;
    assert_eq!(values["llm-rag-model"], "gpt-4o");
    let both = [("llm-model", "gpt-4o"), ("llm-rag-model", "llama3.1:8b")];
    let values = resolved(&everything, &both).unwrap().values;
    assert_eq!(
        (&*values["llm-model"], &*values["llm-rag-model"]),
        ("gpt-4o", "llama3.1:8b")
    );
}

#[test]
fn values_are_checked_and_the_field_is_named() {
    let everything = shipped("everything");
    for (name, value) in [
        ("chunk-size", "many"),
        ("chunk-size", "2000.5"),
        ("chunk-size", "40000"),
        ("chunk-size", "-1"),
        ("llm-temperature", "NaN"),
        ("llm-temperature", "11"),
        ("llm-model", "{id}"),
        ("llm-model", "a\nb"),
        ("llm-model", "request:tg:agent:victim:default"),
        ("surplus", "}"),
    ] {
        let error = resolved(&everything, &[(name, value)]).unwrap_err();
        assert!(
            error.starts_with(&format!("parameters/{name}: ")),
            "{error}"
        );
    }
    let long = "x".repeat(2000);
    assert!(resolved(&everything, &[("llm-model", &long)]).is_err());
    let spelled = resolved(&everything, &[("chunk-size", " 007 ")]).unwrap();
    assert_eq!(spelled.values["chunk-size"], "7");
}

#[test]
fn chunks_overlap_by_less_than_their_size() {
    let everything = shipped("everything");
    let (blueprint, _) = Blueprint::parse(&everything);
    let (workspace, flow) = (WorkspaceId::new("w").unwrap(), FlowId::new("f").unwrap());
    let planned = |pairs: &[(&str, &str)]| {
        let subject = Subject {
            workspace: &workspace,
            flow: &flow,
            blueprint: "everything",
            epoch: 1,
        };
        let resolved = resolve(&blueprint, &types(), &given(pairs)).unwrap();
        plan(subject, &blueprint, &resolved, &Catalog::default()).map(drop)
    };
    for (size, overlap, agree) in [
        ("100", "99", true),
        ("100", "100", false),
        ("100", "200", false),
        ("1", "0", true),
    ] {
        let outcome = planned(&[("chunk-size", size), ("chunk-overlap", overlap)]);
        match outcome {
            Ok(()) => assert!(agree, "{size} {overlap}"),
            Err(error) => {
                let text = format!(
                    "parameters/chunk-overlap: is {overlap} and must be less than chunk-size, which is {size}"
                );
                assert_eq!((error.message, agree), (text, false));
            }
        }
    }
    // Also where the overlap is the usual one.
    let small = planned(&[("chunk-size", "40")]).unwrap_err();
    assert!(
        small.message.starts_with("parameters/chunk-overlap: is 50"),
        "{small}"
    );
}

#[test]
fn surplus_parameters_are_kept_and_told() {
    let Resolved { values, unused } =
        resolved(&shipped("everything"), &[("llm-modle", "x")]).unwrap();
    assert_eq!(unused, ["llm-modle"]);
    assert_eq!(values["llm-modle"], "x");
}

#[test]
fn a_value_in_a_topic_stays_one_part_of_it() {
    let definition = json!({
        "flow": {"prompt:{id}": {"topics": {
            "request": "request:tg:prompt:{workspace}:{id}",
            "text-completion-request": "request:tg:llm:{workspace}:{model}",
        }}},
        "parameters": {"model": {"type": "none"}},
    })
    .to_string();
    for bad in ["a:b", "", "a--b", "{id}", "ü", "a/b"] {
        assert!(resolved(&definition, &[("model", bad)]).is_err(), "{bad}");
    }
    let (blueprint, _) = Blueprint::parse(&definition);
    let (workspace, flow) = (WorkspaceId::new("w").unwrap(), FlowId::new("f").unwrap());
    let subject = Subject {
        workspace: &workspace,
        flow: &flow,
        blueprint: "b",
        epoch: 1,
    };
    let start = |pairs: &[(&str, &str)]| {
        let resolved = resolve(&blueprint, &types(), &given(pairs)).unwrap();
        plan(subject, &blueprint, &resolved, &Catalog::default())
    };
    let shared = start(&[("model", "m1")]).unwrap().names.shared_topics;
    assert_eq!(shared.first().unwrap().to_string(), "request:tg:llm:w:m1");
    let error = start(&[]).unwrap_err().message;
    assert!(error.starts_with("parameters/model: "), "{error}");
}

#[test]
fn required_without_a_value_says_so_in_the_known_words() {
    let definition = json!({"flow": {}, "parameters": {"x": {"type": "must"}}}).to_string();
    let (blueprint, _) = Blueprint::parse(&definition);
    let must =
        super::super::parameters::ParameterType::read(r#"{"type":"string","required":true}"#);
    let types = [("must".to_owned(), must)].into();
    let error = resolve(&blueprint, &types, &given(&[])).unwrap_err();
    assert_eq!(
        error.message,
        "Required parameter 'x' not provided and has no default"
    );
    assert_eq!(error.kind, "flow-error");
}
