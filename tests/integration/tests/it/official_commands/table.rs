//! All 103 official commands, and how each is covered.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use tg_testkit::process::root;

/// Where a command is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Covered {
    /// By steps here: served, with what it prints.
    Here,
    /// By steps here: a service that this system does not have, with the error that its user sees.
    Refused,
    /// By steps here: a defect of the command itself, which no gateway can mend, with what it does.
    Broken,
    /// Users, passwords, keys and tokens, which have tests of their own.
    Identity,
    /// It looks into the message broker and asks no gateway: by a test of its own, with what it prints in each mode. In native mode
    /// it cannot read what passes.
    Broker,
}

use Covered::{Broken, Broker, Here, Identity, Refused};

/// By name.
pub(super) const COMMANDS: [(&str, Covered); 103] = [
    ("tg-add-library-document", Here),
    ("tg-bootstrap-iam", Here),
    ("tg-change-password", Identity),
    ("tg-create-api-key", Identity),
    ("tg-create-user", Identity),
    ("tg-create-workspace", Here),
    ("tg-delete-collection", Here),
    ("tg-delete-config-item", Here),
    ("tg-delete-flow-blueprint", Here),
    ("tg-delete-kg-core", Here),
    ("tg-delete-mcp-tool", Here),
    ("tg-delete-tool", Here),
    ("tg-delete-user", Identity),
    ("tg-describe-image", Here),
    ("tg-disable-user", Identity),
    ("tg-dump-msgpack", Here),
    ("tg-dump-queues", Broker),
    ("tg-enable-user", Identity),
    ("tg-export-workspace", Here),
    ("tg-export-workspace-config", Here),
    ("tg-get-config-item", Here),
    ("tg-get-de-core", Here),
    ("tg-get-document-content", Here),
    ("tg-get-flow-blueprint", Here),
    ("tg-get-kg-core", Here),
    ("tg-graph-to-turtle", Here),
    ("tg-import-workspace", Here),
    ("tg-import-workspace-config", Here),
    ("tg-invoke-agent", Here),
    ("tg-invoke-cloze", Refused),
    ("tg-invoke-decision-scoring", Refused),
    ("tg-invoke-document-embeddings", Here),
    ("tg-invoke-document-rag", Here),
    ("tg-invoke-embeddings", Here),
    ("tg-invoke-field-extract", Refused),
    ("tg-invoke-graph-embeddings", Here),
    ("tg-invoke-graph-rag", Here),
    ("tg-invoke-llm", Here),
    ("tg-invoke-mcp-tool", Here),
    ("tg-invoke-nlp-query", Here),
    ("tg-invoke-prompt", Here),
    ("tg-invoke-reranker", Here),
    ("tg-invoke-row-embeddings", Here),
    ("tg-invoke-rows-query", Here),
    ("tg-invoke-sparql-query", Here),
    ("tg-invoke-structured-query", Here),
    ("tg-list-api-keys", Identity),
    ("tg-list-cloze-models", Refused),
    ("tg-list-collections", Here),
    ("tg-list-config-items", Here),
    ("tg-list-explain-traces", Here),
    ("tg-list-models", Here),
    ("tg-list-my-workspaces", Here),
    ("tg-list-users", Identity),
    ("tg-list-workspaces", Here),
    ("tg-load-doc-embeds", Broken),
    ("tg-load-kg-core", Here),
    ("tg-load-knowledge", Here),
    ("tg-load-sample-documents", Here),
    ("tg-load-structured-data", Here),
    ("tg-load-turtle", Here),
    ("tg-login", Identity),
    ("tg-mint-token", Identity),
    ("tg-monitor-prompts", Broker),
    ("tg-put-config-item", Here),
    ("tg-put-de-core", Here),
    ("tg-put-flow-blueprint", Here),
    ("tg-put-kg-core", Here),
    ("tg-query-graph", Here),
    ("tg-remove-library-document", Here),
    ("tg-reset-password", Identity),
    ("tg-revoke-api-key", Identity),
    ("tg-save-doc-embeds", Broken),
    ("tg-set-collection", Here),
    ("tg-set-mcp-tool", Here),
    ("tg-set-prompt", Here),
    ("tg-set-token-costs", Here),
    ("tg-set-tool", Here),
    ("tg-show-config", Here),
    ("tg-show-explain-trace", Here),
    ("tg-show-extraction-provenance", Here),
    ("tg-show-flow-blueprints", Here),
    ("tg-show-flow-state", Here),
    ("tg-show-flows", Here),
    ("tg-show-graph", Here),
    ("tg-show-kg-cores", Here),
    ("tg-show-library-documents", Here),
    ("tg-show-library-processing", Here),
    ("tg-show-mcp-tools", Here),
    ("tg-show-parameter-types", Here),
    ("tg-show-processor-state", Here),
    ("tg-show-prompts", Here),
    ("tg-show-token-costs", Here),
    ("tg-show-token-rate", Here),
    ("tg-show-tools", Here),
    ("tg-start-flow", Here),
    ("tg-start-library-processing", Here),
    ("tg-stop-flow", Here),
    ("tg-stop-library-processing", Here),
    ("tg-unload-kg-core", Here),
    ("tg-update-user", Identity),
    ("tg-verify-system-status", Here),
    ("tg-whoami", Identity),
];

/// Where commands about users and keys are run.
const PEOPLE: &str = "tests/integration/tests/it/people_log_in.rs";
/// Where those are that look into the broker.
const BROKER: &str = "tests/integration/tests/it/commands_look_into_the_broker.rs";

/// The commands of the installed package, as it declares them.
fn installed() -> Result<BTreeSet<String>> {
    let places = root().join(".cache/venv/lib");
    let python = only(places.clone(), |name| name.starts_with("python3"))?;
    let packages = python.join("site-packages");
    let package = only(packages, |name| name.starts_with("trustgraph_cli-"))?;
    let declared = std::fs::read_to_string(package.join("entry_points.txt"))
        .context("run the set-up first")?;
    let names = declared.lines().filter_map(|line| line.split_once(" = "));
    Ok(names.map(|(name, _)| name.to_owned()).collect())
}

fn only(folder: PathBuf, named: impl Fn(&str) -> bool) -> Result<PathBuf> {
    let inside = std::fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))?;
    let mut paths = inside.flatten().map(|entry| entry.path());
    let found = paths.find(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(&named)
    });
    found.with_context(|| format!("nothing in {}", folder.display()))
}

/// Every command of the package has a row, every row is a command, and what is covered here is run here.
pub(super) fn is_whole(run: &BTreeSet<&str>) -> Result<()> {
    let rows: BTreeSet<String> = COMMANDS
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let installed = installed()?;
    let without: Vec<_> = installed.symmetric_difference(&rows).collect();
    ensure!(
        without.is_empty(),
        "without a row, or not installed: {without:?}"
    );
    // Those of users and keys, and of the broker, are run by the tests that are about them.
    for (of, file) in [(Identity, PEOPLE), (Broker, BROKER)] {
        let text = std::fs::read_to_string(root().join(file)).context(file)?;
        for (name, _) in COMMANDS.iter().filter(|(_, covered)| *covered == of) {
            let there = text.contains(&format!("\"{name}\","));
            ensure!(there, "{name} is {of:?}, and not run in {file}");
        }
    }
    for (name, covered) in COMMANDS {
        let here = !matches!(covered, Identity | Broker);
        ensure!(
            run.contains(name) == here,
            "{name} is {covered:?}, and run here: {}",
            !here
        );
    }
    Ok(())
}
