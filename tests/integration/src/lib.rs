//! Black-box tests, one file per promise. Here is what tests and benches share.

pub mod large;
pub mod poison;
pub mod taken;

use anyhow::{Context, Result};
use serde_json::Value;

/// A smaller blueprint: of a shipped one's definition, these processors and what they and the library serve.
///
/// # Errors
/// The definition does not have the shape of a blueprint.
pub fn part_of(definition: &str, processors: &[&str]) -> Result<Value> {
    let mut blueprint: Value = serde_json::from_str(definition)?;
    let base = |topic: &Value| {
        let text = topic.as_str()?;
        text.split(':').nth(2).map(str::to_owned)
    };
    let entries = blueprint["flow"].as_object_mut().context("entries")?;
    entries.retain(|name, _| {
        let mut kept = processors.iter();
        kept.any(|kept| *name == format!("{kept}:{{id}}"))
    });
    let mut served: Vec<String> = vec!["librarian".to_owned()];
    for entry in entries.values() {
        let own = [&entry["topics"]["request"], &entry["topics"]["input"]];
        served.extend(own.into_iter().filter_map(base));
    }
    let kept = |topic: &Value| base(topic).is_some_and(|base| served.contains(&base));
    for entry in entries.values_mut() {
        let topics = entry["topics"].as_object_mut().context("topics")?;
        topics.retain(|_, topic| kept(topic));
    }
    let interfaces = blueprint["interfaces"].as_object_mut();
    interfaces.context("interfaces")?.retain(|_, pair| {
        let topics = pair.as_object();
        topics.is_some_and(|topics| topics.values().all(kept))
    });
    Ok(blueprint)
}

/// What a process holds in memory, in MiB: a line of its `status` such as `VmRSS` or `VmHWM` (proc(5)).
///
/// # Errors
/// The process is gone, or its `status` has no such line.
pub fn memory(pid: u32, line: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let found = status.lines().find_map(|text| text.strip_prefix(line));
    let text = found
        .context("no such line")?
        .trim_start_matches(':')
        .trim();
    Ok(text.trim_end_matches(" kB").parse::<f64>()? / 1_024.0)
}
