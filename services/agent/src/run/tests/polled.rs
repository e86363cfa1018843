//! A poll that is repeated too soon is not made.

use tg_mesh::clock;
use tg_schemas::msg::{AgentResponse, AgentRun};
use tg_testkit::config::Config;
use tg_testkit::place::Place;

use super::world::{Say, World, question, rows};
use super::{repeats, replayed};
use crate::engine::polls;

const POLL: &str = "Thought: wait\nAction: look\nArgs: {\"x\": 1}";
const OTHER: &str = "Action: look\nArgs: {\"x\": 2}";
const END: &str = "Final Answer: done";
const FRESH: &str = "retry_after_seconds: 0\nfar says 4";
const OLD: &str = "retry_after_seconds: 5\nfar says 4";

fn config(poll: bool) -> Config {
    let config = rows();
    let row = format!(
        r#"{{"name": "look", "type": "mcp-tool", "mcp-tool": "far", "poll": {poll},
             "arguments": [{{"name": "x", "type": "number"}}]}}"#
    );
    config.put("tool", "look", &row);
    config
}

fn observed(chunks: &[AgentResponse]) -> Vec<&str> {
    let seen = chunks
        .iter()
        .filter(|chunk| chunk.message_type == "observation");
    seen.map(|chunk| chunk.content.as_str()).collect()
}

/// Whether a call was held, with its last result and what is left of five seconds.
fn held(text: &str) -> bool {
    let left = text.strip_prefix("retry_after_seconds: ");
    let left = left.and_then(|rest| rest.split_once('\n'));
    left.is_some_and(|(seconds, told)| {
        let seconds: u64 = seconds.parse().expect("seconds");
        let said =
            "The tool was not used, as it was asked too soon. It returned before:\nfar says 4";
        (1..=5).contains(&seconds) && told == said
    })
}

/// 107, within a run, and replayed with the times that were.
async fn a_poll_that_is_repeated_too_soon_is_not_made(place: Place) {
    let script = [POLL, POLL, POLL, OTHER, POLL, END].map(Say::Text);
    let world = World::among(&place, script, config(true), Vec::new()).await;
    let ask = replayed::asks("polls", false);
    let chunks = replayed::run(&world, question("q", true), ask).await;
    let seen = observed(&chunks);
    assert_eq!(
        (seen.len(), seen[0], seen[1], seen[3]),
        (5, FRESH, OLD, FRESH)
    );
    assert!(held(seen[2]) && held(seen[4]), "{seen:#?}");
    assert_eq!(world.tools.asked.lock().len(), 3);
    replayed::same_again(&world, "polls", &chunks).await;
}

/// 107: what is no poll is used each time, and told as it is.
async fn a_tool_that_is_no_poll_is_never_held(place: Place) {
    let script = [POLL, POLL, POLL, END].map(Say::Text);
    let world = World::among(&place, script, config(false), Vec::new()).await;
    let chunks = world.run(&question("q", true)).await;
    assert_eq!(observed(&chunks), ["far says 4"; 3]);
    assert_eq!(world.tools.asked.lock().len(), 3);
}

/// 107: another process takes the run up by its record, and holds what the one before it had asked; then it asks itself.
async fn who_takes_a_run_up_knows_of_its_polls(place: Place) {
    let script = [POLL, OTHER, END].map(Say::Text);
    let world = World::among(&place, script, config(true), Vec::new()).await;
    let asked = polls::asked(
        "look",
        r#"{"x":1}"#,
        u64::try_from(clock::millis()).unwrap_or(0),
    );
    let first = polls::returned(&[], asked.clone(), "far says 4", 0);
    let second = polls::returned(&[first], asked, "far says 4", 0);
    let run = AgentRun {
        polls: vec![second],
        ..repeats::run(1, true)
    };
    let chunks = repeats::continued(&world, repeats::died(run, Vec::new(), 0)).await;
    let seen = observed(&chunks);
    assert!(held(seen[0]) && seen[1] == FRESH, "{seen:#?}");
    assert_eq!(world.tools.asked.lock().len(), 1);
}

tg_testkit::on_both_buses!(
    a_poll_that_is_repeated_too_soon_is_not_made,
    a_tool_that_is_no_poll_is_never_held,
    who_takes_a_run_up_knows_of_its_polls,
);
