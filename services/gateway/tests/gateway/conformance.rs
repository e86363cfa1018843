//! The conformance suite of the Model Context Protocol, as released, against `/mcp`: every scenario that a revision requires of a
//! server, in both revisions for which there is a list. What the scenarios ask for is in `offered.json`; reading, routing and
//! writing of messages is the gateway's.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tg_gateway::AuthMode;
use tg_testkit::place::Place;
use tg_testkit::process::root;
use tokio::process::Command;

use crate::offered::Offered;
use crate::world::World;

/// One run of the suite comes to its end within this.
const BOUND: Duration = Duration::from_secs(300);

/// What 2025-11-25 requires.
const OF_2025: [&str; 30] = [
    "server-initialize",
    "logging-set-level",
    "ping",
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "server-sse-multiple-streams",
    "elicitation-sep1330-enums",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "dns-rebinding-protection",
];

/// What 2026-07-28 requires.
const OF_2026: [&str; 37] = [
    "server-stateless",
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "server-sse-multiple-streams",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "sep-2164-resource-not-found",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "dns-rebinding-protection",
    "caching",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-request-state",
    "input-required-result-multiple-input-requests",
    "input-required-result-multi-round",
    "input-required-result-missing-input-response",
    "input-required-result-non-tool-request",
    "input-required-result-result-type",
    "input-required-result-unsupported-methods",
    "input-required-result-tampered-state",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
];

/// Scenarios that a run has beside those, as no revision requires them, and what becomes of them.
const BESIDE_2025: [(&str, Verdict); 3] = [
    ("json-schema-2020-12", Verdict::Passed),
    // There is nothing to end: DELETE is answered with 405.
    ("server-session-lifecycle", Verdict::Passed),
    // No stream is closed before its answer, so none is taken up again.
    ("server-sse-polling", Verdict::Nothing),
];

/// The same of 2026-07-28, but for its tasks.
const BESIDE_2026: [(&str, Verdict); 3] = [
    ("json-schema-2020-12", Verdict::Passed),
    ("http-header-validation", Verdict::Passed),
    // No tool has arguments that headers repeat.
    ("http-custom-header-server-validation", Verdict::Failed),
];

/// How the checks of a scenario ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// At least one holds, and all that matter.
    Passed,
    /// One that should hold does not.
    Warned,
    /// One that must hold does not.
    Failed,
    /// Nothing was checked.
    Nothing,
}

impl Verdict {
    fn of(checks: &Value) -> Self {
        let checks = checks.as_array().expect("checks");
        let has = |status: &str| checks.iter().any(|check| check["status"] == status);
        match (has("FAILURE"), has("WARNING"), has("SUCCESS")) {
            (true, ..) => Self::Failed,
            (_, true, _) => Self::Warned,
            (.., true) => Self::Passed,
            _ => Self::Nothing,
        }
    }
}

/// What a run wrote down: a folder for each scenario, named after it and the moment.
fn written(folder: &Path) -> BTreeMap<String, (Verdict, Value)> {
    let moment = "-2026-07-28T00-00-00-000Z".len();
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let of = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        let name = name.strip_prefix("server-").unwrap_or(&name);
        let checks = std::fs::read(entry.path().join("checks.json")).unwrap();
        let checks: Value = serde_json::from_slice(&checks).unwrap();
        let scenario = name[..name.len() - moment].to_owned();
        (scenario, (Verdict::of(&checks), checks))
    };
    entries.map(of).collect()
}

/// Runs what a revision lists.
async fn run(world: &World, revision: &str) -> BTreeMap<String, (Verdict, Value)> {
    let folder = TempDir::new().unwrap();
    let suite = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
    let work = Command::new(root().join(".cache/node/bin/node"))
        .arg(root().join(".cache/conformance").join(suite))
        .args(["server", "--url", &world.url("/mcp")])
        .args(["--requirements", revision, "--output-dir"])
        .arg(folder.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work).await;
    let output = output
        .expect("the suite did not end")
        .expect("cannot run Node.js: run the set-up first");
    let told = written(folder.path());
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    told
}

/// Holds what a run told against what is required; the rest is returned.
fn hold(
    mut told: BTreeMap<String, (Verdict, Value)>,
    required: &[&str],
) -> BTreeMap<String, Verdict> {
    for scenario in required {
        let (verdict, checks) = told.remove(*scenario).expect(scenario);
        assert_eq!(verdict, Verdict::Passed, "{scenario}: {checks:#}");
    }
    let rest = told.into_iter();
    rest.map(|(scenario, (verdict, _))| (scenario, verdict))
        .collect()
}

async fn all_that_a_revision_requires_holds(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.offers = Some(Offered::all());
    })
    .await;
    let rest = hold(run(&world, "2025-11-25").await, &OF_2025);
    let beside = BESIDE_2025.map(|(scenario, verdict)| (scenario.to_owned(), verdict));
    assert_eq!(rest, BTreeMap::from(beside));

    let mut rest = hold(run(&world, "2026-07-28").await, &OF_2026);
    // An extension that this server does not have: a call is answered when it is done, and is no task.
    rest.retain(|scenario, _| !scenario.starts_with("tasks-"));
    let beside = BESIDE_2026.map(|(scenario, verdict)| (scenario.to_owned(), verdict));
    assert_eq!(rest, BTreeMap::from(beside));
}

tg_testkit::on_both_buses!(all_that_a_revision_requires_holds);
