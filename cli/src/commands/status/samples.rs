//! Reading samples of the metrics endpoint.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fields::text;

/// Whether each processor runs. One with several consumers runs only if all of them do.
pub(crate) fn by_processor(samples: &[Value]) -> BTreeMap<String, bool> {
    let mut states = BTreeMap::new();
    for sample in samples {
        let value = sample.pointer("/value/1").and_then(Value::as_str);
        let running = value
            .and_then(|value| value.parse::<f64>().ok())
            .is_some_and(|value| value > 0.0);
        states
            .entry(name(sample))
            .and_modify(|state| *state &= running)
            .or_insert(running);
    }
    states
}

/// The name a sample goes by.
pub(crate) fn name(sample: &Value) -> String {
    let metric = sample.get("metric").unwrap_or(&Value::Null);
    match text(metric, "processor") {
        name if name.is_empty() => text(metric, "job"),
        name => name,
    }
}

/// A line per processor.
pub(crate) fn render(states: &BTreeMap<String, bool>, bullet: &str) -> String {
    let icon = |running: &bool| if *running { "\u{1f49a}" } else { "\u{274c}" };
    states
        .iter()
        .map(|(name, running)| format!("{bullet}{name:30} {}\n", icon(running)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_stopped_consumer_stops_its_processor() {
        let sample = |processor: &str, value: &str| json!({"metric": {"processor": processor, "job": "j"}, "value": [0, value]});
        let states = by_processor(&[sample("a", "1"), sample("a", "0"), sample("b", "1")]);
        assert_eq!(
            states,
            BTreeMap::from([("a".to_owned(), false), ("b".to_owned(), true)])
        );
        let shown = render(&states, "- ");
        assert!(shown.contains("- a                              \u{274c}"));
    }

    #[test]
    fn without_a_processor_label_the_job_is_the_name() {
        assert_eq!(name(&json!({"metric": {"job": "api"}})), "api");
    }
}
