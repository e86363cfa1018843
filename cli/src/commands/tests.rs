//! All commands together: names, arguments, help.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use tg_schemas::operations;

use super::ALL;
use crate::registry::{Row, parse, tg};

fn argv(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

#[test]
fn every_command_is_well_formed() {
    tg().debug_assert();
    for row in ALL {
        row.standalone().debug_assert();
    }
}

#[test]
fn names_are_unique() {
    let all: Vec<&str> = ALL.iter().flat_map(Row::names).collect();
    let names: BTreeSet<&str> = all.iter().copied().collect();
    assert_eq!(names.len(), all.len());
}

/// What a command says is missing when it is given nothing.
fn missing(row: &Row) -> Vec<String> {
    let name = format!("tg-{}", row.name);
    match row.standalone().try_get_matches_from([name]) {
        Err(error) => match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::Strings(missing)) => missing.clone(),
            _ => Vec::new(),
        },
        Ok(_) => Vec::new(),
    }
}

#[test]
fn whoever_needs_one_thing_takes_it_bare() {
    let mut bare = 0;
    for row in ALL {
        let missing = missing(row);
        // `<--config <JSON>|--file <FILE>>`: one of several ways, of which none is the thing itself.
        if let [one] = missing.as_slice() {
            assert!(
                !one.starts_with('-'),
                "tg {} needs {one} by its flag",
                row.name
            );
            bare += usize::from(!one.starts_with("<-"));
        }
    }
    assert!(bare > 25, "{bare}");
}

#[test]
fn a_link_name_chooses_the_command() {
    let prepared = parse(&argv("/some/dir/tg-list-config-items --type prompt")).expect("parsed");
    assert_eq!(prepared.name, "list-config-items");
    let prepared = parse(&argv("tg list-config-items --type prompt")).expect("parsed");
    assert_eq!(prepared.name, "list-config-items");
}

#[test]
fn an_unknown_command_is_an_error() {
    assert!(parse(&argv("tg no-such-thing")).is_err());
    assert!(parse(&argv("tg-no-such-thing")).is_err());
    assert!(parse(&argv("tg")).is_err());
}

/// One accepted line for each command, in the spelling of the official clients.
const LINES: &[&str] = &[
    "bootstrap-iam -u http://h:1/",
    "login -u http://h:1/ -t tg_x -w acme --profile work",
    "logout --profile work",
    "profiles --use work",
    "whoami -u http://h:1/ -t tg_x --json",
    "login -u http://h:1/ --issuer -t a.b.c --profile work",
    "login -u http://h:1/ --username ada --password p -w acme",
    "create-user --username ada --password p --name Ada --email a@b --roles reader writer --must-change-password \
     -w acme",
    "create-user ada --no-password",
    "list-users -w acme",
    "update-user --user-id u --name n --email e --roles reader --enabled yes --must-change-password no -w acme",
    "update-user u --enabled",
    "disable-user --user-id u -w acme",
    "enable-user --user-id u -w acme",
    "delete-user --user-id u --yes",
    "change-password --current a --new b",
    "reset-password --user-id u -w acme",
    "mint-token -w acme --user-context {} --user-id u",
    "mint-token --username ada",
    "mint-token --self",
    "rotate-signing-key",
    "revoke-signing-key --key-id 8f14e45fceea167a",
    "revoke-signing-key --all",
    "create-group readers --description d",
    "list-groups",
    "update-group --group-id g --name n --enabled false",
    "delete-group g -y",
    "add-group-member --group-id g --user-id u",
    "remove-group-member --group-id g --user-id u",
    "list-group-members g",
    "add-grant --user-id u --capability rows:read -w acme",
    "remove-grant --group-id g --capability writer",
    "list-grants --group-id g",
    "show-permissions u",
    "show-audit -w acme --since 2h --until 2030-01-01 --actor u --kind change -f --json",
    "create-workspace --workspace-id acme --name Acme",
    "create-workspace acme",
    "delete-workspace acme -y",
    "restore-workspace acme",
    "start-flow f -n everything",
    "stop-flow f",
    "list-workspaces -t tg_x",
    "list-my-workspaces",
    "enable-workspace --workspace-id acme",
    "disable-workspace --workspace-id acme",
    "delete-workspace --workspace-id acme --yes",
    "restore-workspace -w acme",
    "create-api-key --user-id u --name n --expires 2030-01-01 -w acme",
    "list-api-keys --user-id u -w acme",
    "revoke-api-key --key-id k -w acme",
    "put-config-item --type t --key k --value v",
    "put-config-item --type t --key k --stdin",
    "get-config-item --type t --key k --format json",
    "list-config-items --type t --format json -w acme",
    "delete-config-item --type t --key k",
    "show-config --api-url http://h:1",
    "export-workspace-config -o config.json -w acme",
    "import-workspace-config -i - --dry-run",
    "show-parameter-types -t llm-model --token x",
    "show-flow-blueprints",
    "get-flow-blueprint -n everything",
    "put-flow-blueprint -n mine -c {}",
    "delete-flow-blueprint -n mine",
    "check-blueprint -n mine --file b.json",
    "start-flow -n everything -i f -d text --param a=b --param c=d",
    "start-flow -n everything -i f -d text -p {}",
    "start-flow -n everything -i f -d text --parameters-file p.json",
    "stop-flow -i f --drain park --dry-run",
    "show-flows",
    "show-flow-state -f f -m http://h:1/api/metrics",
    "show-processor-state -m http://h:1/api/metrics -t x",
    "verify-system-status --ui-url http://h:1 --skip-ui --min-processors 3 --global-timeout 5 \
     --check-timeout 2 --retry-delay 1 -v --lang en",
    "show-token-rate -m http://h:1/api/metrics -p 2 -n 5 -t x",
    "doctor",
    "why -f default",
    "why default --all",
    "why --queue prompt--default",
    "why --document-id urn:d",
    "why --request-id r",
    "why --run r --all",
    "list-requests",
    "cancel-request --id r1",
    "list-runs --all",
    "list-tasks --all",
    "attach --run r1 --offset 7 -v --all",
    "replay --run r1 -v --all",
    "diff-traces r1 r2 --all",
    "diff-traces urn:a urn:b -C c -f f",
    "invoke-agent -q why? --record",
    "cancel --run r1 --all",
    "confirm r1 yes --all --message-id urn:m",
    "close-thread 6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70 -f f --console",
    "expand-summary r1 --step 3 --all",
    "remake-summary --run r1 --model large --step 3 --all",
    "invoke-agent -q why? --on-disconnect grace=30",
    "bootstrap-iam --code 0123",
    "dead-letters -i f -l 5",
    "dead-letters --replay 7",
    "dead-letters --discard-all",
    "parked -i f --discard-all",
    "parked --show 7",
    "parked -i f --replay-all",
    "invoke-agent --url http://h:1 -q why? -f f -C c -v -p react -g a b -s st --show-usage",
    "invoke-agent -q why? -x --debug",
    "invoke-agent -q why? --no-streaming -l plan",
    "invoke-llm system prompt -f f --no-streaming --show-usage",
    "describe-image -f f -i p.png --mime-type image/png -p what? -s brief",
    "list-models -f f -j",
    "route -f f -m gpt-5 --explain",
    "route --health",
    "show-model-health -m gpt-5 -f f",
    "invoke-prompt question question=why? -f f --no-streaming --show-usage",
    "set-prompt --id p --prompt text --response json --schema {}",
    "set-prompt --system text",
    "show-prompts",
    "set-token-costs --model m -i 0.15 -o 0.6 -t x",
    "show-token-costs",
    "show-usage --by run --since 2026-11-01 --until 2026-11-27 -w acme --json",
    "show-usage --by day",
    "clear-usage ann/talk -w acme --json",
    "clear-usage --agent maven",
    "show-usage --by agent",
    "set-tool --id t --name n --description d --type knowledge-query --collection c --group g \
     --state s --applicable-states a b",
    "show-tools",
    "delete-tool --id t",
    "set-mcp-tool -i t -r remote --tool-url http://h:1 --auth-token x",
    "set-mcp-tool -i t --all-tools --tool-url http://h:1 --user-tokens",
    "show-mcp-tools",
    "list-mcp-tools -s m -f f",
    "delete-mcp-tool --id t",
    "invoke-mcp-tool -n t -P {} -f f",
    "mcp-server -u http://h:1/ -t tg_x -w acme -f f -C c",
    "query-graph -s urn:s -p urn:p -o text --object-language en -g urn:g -C c -f f -l 5 -b 2 \
     --format pipe -H",
    "show-graph -C c -f f -g urn:g --show-graph -l 5 -b 2",
    "invoke-sparql-query -q ASK{} -C c -f f -l 5 -b 2 --format json",
    "invoke-sparql-query -i query.rq",
    "graph-to-turtle -C c -f f -l 5 -b 2",
    "load-turtle -i doc -C c -f f a.ttl b.ttl",
    "load-knowledge -i doc -C c -f f -g urn:g -F trig a.trig b.trig",
    "list-explain-traces -C c -f f --limit 5 --format json",
    "show-explain-trace urn:q -C c -f f --format json --show-provenance --max-answer 100",
    "show-extraction-provenance urn:d -C c -f f --show-content --max-content 99 --format json",
    "verify-trace urn:q -C c -f f --all --json",
    "verify-trace --chain --heads h.json --key k.pem",
    "verify-trace urn:q --file t.nq --file u.nq --heads h.json --key k.pem --json",
    "sign-traces --day 2026-11-25 -o h.json -w acme",
    "sign-traces --public-key -o k.pem",
    "sign-traces --rotate-key -o k.pem",
    "sign-traces --revoke-key 8f14e45fceea167a --revoked-from 2026-11-25T00:00:00Z -o k.pem",
    "add a.pdf docs https://h.example/b.html -f f -C c --wait --watch --tags a,b -k pdf",
    "add --id urn:d --title t -- -odd.md",
    "add docs --watch --delete",
    "add-library-document -k text/plain --id d --name n --description d --tags a,b --keyword x y \
     --copyright-notice c --publication-organization o --publication-date 2020 -- file.txt",
    "load-sample-documents --url http://h:1 -t x -w acme",
    "show-library-documents",
    "get-document-content urn:d -o out.txt",
    "remove-library-document --id urn:d",
    "start-library-processing -d urn:d --id p -i f --collection c --tags a,b",
    "start-library-processing -d urn:d --id p --dry-run",
    "start-library-processing urn:d --wait",
    "add-library-document a.pdf",
    "show-library-documents --long",
    "process-status --active",
    "show-library-processing",
    "stop-library-processing --id p",
    "process-status p --wait --retry",
    "reindex urn:d -f f -C c --dry-run --force --json",
    "reindex -C c --wait",
    "sync notes papers -f f -C c --watch --wait --tags a,b",
    "update-document -d urn:d -f f -C c --wait -k md --title t notes.md",
    "set-collection c -n name -d text -t a -t b --token x",
    "list-collections -t a",
    "delete-collection c -y",
    "reembed-collection c -f f --leave-out --no-wait",
    "reembed-collection c --show --json",
    "reembed-collection c --abandon",
    "reembed-collection c --cancel",
    "show-kg-cores -u http://h:1/ -t x",
    "get-kg-core --id urn:d -o out.core --url http://h:1/",
    "put-kg-core --identifier urn:d -i in.core -w acme",
    "load-kg-core --id urn:d -f f -C c",
    "unload-kg-core --id urn:d -f f",
    "delete-kg-core --id urn:d",
    "show-de-cores",
    "get-de-core --id urn:d -o out.core",
    "put-de-core --id urn:d -i in.core",
    "load-de-core --id urn:d -f f -C c",
    "unload-de-core --id urn:d -f f -C c",
    "delete-de-core --id urn:d",
    "save-doc-embeds -u http://h:1/ -f f -o out --format json --collection c --idle 5 -n 9",
    "load-doc-embeds -u http://h:1/ -f f -i in --format msgpack --collection c",
    "dump-msgpack --input-file in.core -r",
    "dump-msgpack -i in.core -s --json",
    "invoke-graph-rag -q why? -C c -f f -e 5 --triple-limit 5 -s 5 -p 1 --edge-limit 5 \
     --max-reranker-input 5 --edge-score-limit 1 --graph-seeds [] -g urn:g -x --debug --show-usage",
    "invoke-graph-rag -q why? --no-streaming",
    "invoke-document-rag -q why? -C c -f f -d 5 --fetch-limit 9 -x",
    "ask why? -C c -f f --with document-rag --show-usage --json",
    "console -f f -i lines.txt --json",
    "chat -C c -f f --with agent --show-usage --json",
    "invoke-embeddings one two -f f",
    "invoke-graph-embeddings word -c c -l 5 --rdf-type urn:t -a k=v -f f",
    "invoke-document-embeddings word -c c -l 5 -a k=v",
    "invoke-row-embeddings word -s schema -c c -i index -l 5 -a k=v",
    "invoke-reranker -q one -q two doc1 doc2 -l 5 -f f",
    "load-structured-data -u http://h:1/ -i a.csv --discover-schema --sample-chars 1000 -f f",
    "load-structured-data --input a.csv --generate-descriptor --schema-name s --output d.json \
     --sample-chars 100000 --sample-size 500",
    "load-structured-data -i a.csv -d d.json --parse-only -o rows.json",
    "load-structured-data -i a.csv -d d.json --load --collection c --batch-size 5 --max-errors 3 \
     --error-file e.json -v -w acme -t x",
    "load-structured-data -i a.csv --auto --dry-run --flow f",
    "invoke-rows-query -q {} -C c -v {} -o name --format csv",
    "invoke-nlp-query -q why? -m 5 --format graphql",
    "invoke-structured-query -q why? --collection c --format json",
    "export-workspace -o w.tgx -w acme -f f -c extra --config-only --triples-limit 5",
    "import-workspace -i w.tgx -w acme -f f --overwrite --process --process-collection c --dry-run",
    "import-workspace -i w.tgx -w acme -f f --new --process",
    "invoke-agent why?",
    "invoke-graph-rag why? -f f",
    "invoke-document-rag why? -C c",
    "invoke-structured-query why?",
    "invoke-nlp-query why?",
    "remove-library-document urn:d",
    "stop-library-processing p",
    "start-library-processing -d urn:d -f f -C c --processing-id p",
    "load-knowledge -d urn:d -C c a.trig",
    "invoke-row-embeddings word -s schema -C c",
    "set-tool --id t --name n --description d --type knowledge-query -C c",
    "export-workspace -o w.tgx -C extra",
    "load-structured-data -i a.csv --auto --make-schema lamps --flow-id f",
    "dead-letters -f f",
    "start-flow -n everything -f f",
    "create-workspace -w acme",
    "remove-library-document -d urn:d",
    "add --document-id urn:d a.pdf",
    "get-kg-core urn:d -o out.core",
    "put-kg-core urn:d -i in.core",
    "load-kg-core urn:d -C c",
    "unload-kg-core urn:d",
    "delete-kg-core urn:d",
    "get-de-core urn:d -o out.core",
    "put-de-core urn:d -i in.core",
    "load-de-core urn:d",
    "unload-de-core urn:d -C c",
    "delete-de-core urn:d",
    "delete-tool t",
    "delete-mcp-tool t",
    "list-mcp-tools m",
    "delete-mcp-tool -i t",
    "invoke-mcp-tool t -P {} -s m",
    "get-flow-blueprint mine",
    "put-flow-blueprint mine -c {}",
    "delete-flow-blueprint mine",
    "check-blueprint mine -c {}",
    "check-blueprint -c {}",
    "cancel-request r1",
    "attach r1",
    "replay r1",
    "cancel r1",
    "list-config-items prompt",
    "show-parameter-types llm-model",
    "invoke-sparql-query ASK{}",
    "invoke-rows-query {}",
    "load-structured-data a.csv --auto",
    "import-workspace w.tgx --dry-run",
    "export-workspace w.tgx",
    "import-workspace-config config.json",
    "export-workspace-config config.json",
    "dump-msgpack in.core -s",
    "save-doc-embeds out",
    "save-rows -C c -f f rows.jsonl",
    "load-rows -f f -C c rows.jsonl",
    "save-vectors -C c -f f --of chunks vectors.jsonl",
    "load-vectors -f f -C c vectors.jsonl",
    "load-doc-embeds in",
    "revoke-api-key k",
    "list-api-keys u",
    "audit-isolation --blueprint everything --keep --json",
    "dead-letters list -f f",
    "violations list -f f -C c -l 5",
    "violations --replay-all -f f",
    "violations --discard 7",
    "list-agents",
    "list-agents --of-workspace",
    "show-agent researcher",
    "put-agent Bo --description d --system-prompt s --user-prompt u --llm-service-id l -C a -C b -w acme",
    "put-agent --agent-id i --system-prompt s",
    "put-agent --template maven",
    "delete-agent --agent-id i -y",
    "delete-agent i --yes",
    "list-agent-templates --json",
    "list-sessions researcher --user-id ann",
    "show-session -n researcher --session-id s --user-id ann",
    "compact-session researcher --session-id s --user-id ann",
    "show-session-lineage researcher --session-id s",
    "expand-session-summary researcher --session-id s --summary-id i --user-id ann",
    "undo-compaction researcher --session-id s --yes",
    "export-session researcher --session-id s",
    "import-session researcher --file session.json",
    "list-memories --user-id ann",
    "forget-memory --memory-id m",
    "show-tenant-config --json",
    "set-tenant-config compact_keep_last_n=3 agent_flow=main",
    "call list-conversations agent_id=i limit=3 -w acme --json",
    "chat --agent researcher --session-id s -q why",
    "parked list",
    "process-status --watch",
    "verify urn:q",
    "backup /var/backups/tg --data-dir d --config c.toml --json",
    "backup /var/backups/tg -w acme",
    "restore /var/backups/tg --data-dir d",
    "links bin --hard --force",
    "completions bash --links",
    "man-pages man1 --json",
    "models pull potion-base-8M --data-dir d --from http://h:1/m --sums s --force --json",
    "models list --data-dir d",
];

#[test]
fn the_official_spelling_of_every_command_is_accepted() {
    let mut tried = BTreeSet::new();
    for line in LINES {
        let prepared = parse(&argv(&format!("tg {line}"))).unwrap_or_else(|error| {
            panic!("tg {line}: {error}");
        });
        tried.insert(prepared.name);
    }
    let missing: Vec<&str> = ALL
        .iter()
        .map(|row| row.name)
        .filter(|name| !tried.contains(name))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn what_does_not_fit_together_is_refused() {
    for line in [
        "put-config-item --type t --key k",
        "put-config-item --type t --key k --value v --stdin",
        "put-flow-blueprint -n mine",
        "invoke-sparql-query",
        "invoke-sparql-query ASK{} -q ASK{}",
        "get-kg-core -o out.core",
        "delete-tool t --id t",
        "dead-letters show",
        "dead-letters list --replay 7",
        "set-prompt --id p",
        "parked --replay-all",
        "put-agent",
        "put-agent Bo --template maven",
        "load-turtle -i doc",
        "load-structured-data -i a.csv",
        "load-structured-data -i a.csv --load",
        "load-structured-data -i a.csv --parse-only --load -d d.json",
    ] {
        assert!(parse(&argv(&format!("tg {line}"))).is_err(), "{line}");
    }
}

/// The operations that have commands of their own, which ask them. `call` asks any operation that is declared.
const OPERATIONS: &[(&str, &str)] = &[
    ("list-named-agents", "list-agents"),
    ("get-named-agent", "show-agent"),
    ("chat", "chat"),
    ("create-session", "chat"),
    ("list-sessions", "list-sessions"),
    ("get-session", "show-session"),
    ("list-messages", "show-session"),
    ("send-message", "chat"),
    ("list-agents", "list-agents"),
    ("create-agent", "put-agent"),
    ("update-agent", "put-agent"),
    ("delete-agent", "delete-agent"),
    ("list-templates", "list-agent-templates"),
    ("create-from-template", "put-agent"),
    ("compact-session", "compact-session"),
    ("session-lineage", "show-session-lineage"),
    ("undo-compaction", "undo-compaction"),
    ("expand-summary", "expand-session-summary"),
    ("export-session", "export-session"),
    ("import-session", "import-session"),
    ("list-memories", "list-memories"),
    ("forget-memory", "forget-memory"),
    ("get-tenant-config", "show-tenant-config"),
    ("put-tenant-config", "set-tenant-config"),
];

#[test]
fn every_operation_has_its_command() {
    let known: BTreeSet<&str> = ALL.iter().map(|row| row.name).collect();
    for (operation, command) in OPERATIONS {
        let declared = operations::ALL.iter().any(|meta| meta.name == *operation);
        assert!(
            declared && known.contains(command),
            "{operation}: {command}"
        );
    }
    for meta in operations::ALL {
        let line = format!("tg call {} --yes", meta.name);
        let prepared = parse(&argv(&line)).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(prepared.name, "call");
    }
}
