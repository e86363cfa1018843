//! Why a request or a run does not move, as it is reported: what it waits for and since when.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tg_mesh::Stands;
use tg_schemas::msg::RunStanding;

use crate::engine::translate::Body;
use crate::engine::translate::fields::Reply;

/// What a question waits for: a process that takes it, or an answer of the one that has.
pub(crate) fn of_question(row: &mut Body, stands: Option<Stands>) {
    let Some(stands) = stands else { return };
    let (waits_for, silent) = match stands {
        Stands::Untaken => ("process", None),
        Stands::Taken { silent } => ("answer", Some(silent)),
    };
    row.insert("waits-for".to_owned(), json!(waits_for));
    if let Some(silent) = silent {
        let silent = u64::try_from(silent.as_millis()).unwrap_or(u64::MAX);
        row.insert("silent-ms".to_owned(), json!(silent));
    }
}

/// Says which requests are runs of the agent, and adds those that are not under way here.
pub(crate) fn add_runs(all: &mut BTreeMap<String, Body>, runs: Vec<(String, Body)>) {
    for (id, run) in runs {
        let row = all.entry(id.clone()).or_default();
        for (key, value) in run {
            row.entry(key).or_insert(value);
        }
        row.entry("service").or_insert("agent".into());
        row.insert("run".to_owned(), json!(id));
    }
}

/// A run with what it and its subagents wait for.
pub(crate) fn of_run((id, mut run): (String, Body), standing: Vec<RunStanding>) -> Body {
    run.insert("run".to_owned(), json!(id));
    let mut rows = Vec::new();
    for one in standing {
        if one.deadline_ms > 0 {
            run.insert("deadline-ms".to_owned(), json!(one.deadline_ms));
        }
        if one.subagent.is_empty() && !one.ended.is_empty() {
            run.insert("reason".to_owned(), json!(one.ended));
        }
        let row = Reply::new()
            .put_truthy("subagent", one.subagent)
            .put("step", one.step)
            .put("waits-for", one.waits_for)
            .put_truthy("tool", one.tool)
            .put("since-ms", one.since_ms)
            .put_truthy("until-ms", one.until_ms)
            .put_truthy("message_id", one.asked);
        rows.push(Value::Object(row.done()));
    }
    run.insert("standing".to_owned(), Value::Array(rows));
    run
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_question_waits_for_a_process_or_for_what_has_it() {
        let told = |stands| {
            let mut row = Body::new();
            of_question(&mut row, stands);
            Value::Object(row)
        };
        assert_eq!(told(None), json!({}));
        assert_eq!(told(Some(Stands::Untaken)), json!({"waits-for": "process"}));
        let silent = Duration::from_millis(1200);
        let taken = json!({"waits-for": "answer", "silent-ms": 1200});
        assert_eq!(told(Some(Stands::Taken { silent })), taken);
    }

    #[test]
    fn a_run_tells_what_it_waits_for_and_its_subagents() {
        let run = (
            "r".to_owned(),
            Body::from_iter([("state".to_owned(), json!("running"))]),
        );
        let user = RunStanding {
            step: 2,
            waits_for: "user".to_owned(),
            tool: "mail".to_owned(),
            since_ms: 5,
            until_ms: 9,
            asked: "m".to_owned(),
            deadline_ms: 70,
            ..RunStanding::default()
        };
        let below = RunStanding {
            subagent: "s".to_owned(),
            step: 1,
            waits_for: "model".to_owned(),
            since_ms: 6,
            ..RunStanding::default()
        };
        let told = of_run(run, vec![user, below]);
        assert_eq!(
            Value::Object(told),
            json!({"state": "running", "run": "r", "deadline-ms": 70, "standing": [
                {"step": 2, "waits-for": "user", "tool": "mail", "since-ms": 5, "until-ms": 9, "message_id": "m"},
                {"subagent": "s", "step": 1, "waits-for": "model", "since-ms": 6}
            ]})
        );
    }

    #[test]
    fn a_request_is_its_run_too() {
        let mut all = BTreeMap::new();
        let row = |key: &str, value: &str| Body::from_iter([(key.to_owned(), json!(value))]);
        all.insert("a".to_owned(), row("waits-for", "answer"));
        add_runs(
            &mut all,
            vec![
                ("a".to_owned(), row("state", "running")),
                ("b".to_owned(), row("flow", "f")),
            ],
        );
        let expected =
            json!({"waits-for": "answer", "state": "running", "service": "agent", "run": "a"});
        assert_eq!(Value::Object(all["a"].clone()), expected);
        let expected = json!({"flow": "f", "service": "agent", "run": "b"});
        assert_eq!(Value::Object(all["b"].clone()), expected);
    }
}
