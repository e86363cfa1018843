//! Workspaces, configuration, blueprints, flows, tools, prompts, prices and state.

use super::step::{Step, run};

pub(super) const STEPS: &[Step] = &[
    // Once there is an administrator nobody becomes one.
    run(&["tg-bootstrap-iam"]).exits(1).lacks(&["tg_"]),
    run(&["tg-list-workspaces"]).says(&["| id ", "| default | default | yes"]),
    run(&["tg-list-my-workspaces"]).says(&["| default | default | yes"]),
    run(&[
        "tg-create-workspace",
        "--workspace-id",
        "made",
        "--name",
        "Made",
    ])
    .exactly("Workspace created: made"),
    run(&["tg-list-workspaces"]).says(&["| made ", "| Made "]),
    run(&[
        "tg-create-workspace",
        "--workspace-id",
        "_x",
        "--name",
        "No",
    ])
    .exits(1)
    .lacks(&["created"]),
    // Items.
    run(&[
        "tg-put-config-item",
        "--type",
        "notes",
        "--key",
        "k",
        "--value",
        "v-77",
    ])
    .exactly("Configuration item set: notes/k"),
    run(&["tg-get-config-item", "--type", "notes", "--key", "k"]).exactly("v-77"),
    run(&[
        "tg-get-config-item",
        "--type",
        "notes",
        "--key",
        "k",
        "--format",
        "json",
    ])
    .exactly("\"v-77\""),
    run(&[
        "tg-get-config-item",
        "--type",
        "notes",
        "--key",
        "k",
        "-w",
        "made",
    ])
    .exactly("None"),
    run(&["tg-list-config-items", "--type", "notes"]).exactly("k"),
    run(&[
        "tg-list-config-items",
        "--type",
        "notes",
        "--format",
        "json",
    ])
    .exactly("[\"k\"]"),
    run(&["tg-show-config"]).says(&["Version: ", "\"notes\": {", "\"k\": \"v-77\""]),
    run(&["tg-delete-config-item", "--type", "notes", "--key", "k"])
        .exactly("Configuration item deleted: notes/k"),
    run(&["tg-get-config-item", "--type", "notes", "--key", "k"]).exactly("None"),
    run(&[
        "tg-get-config-item",
        "--type",
        "notes",
        "--key",
        "k",
        "-w",
        "nowhere",
    ])
    .exactly("Exception: Status code 404"),
    // Blueprints.
    run(&["tg-show-parameter-types"]).says(&[
        "| name        | chunk-overlap ",
        "| description | Characters that neighbouring chunks share |",
        "| default     | 2000 ",
    ]),
    run(&["tg-show-parameter-types", "-t", "llm-temperature"])
        .says(&["llm-temperature", "float"])
        .lacks(&["chunk-size"]),
    run(&["tg-show-flow-blueprints"]).says(&[
        "| name        | everything ",
        "| name        | ontology ",
        "| name        | structured ",
        "chunk-size: Characters in a chunk [chunk-size (default: 2000)]",
    ]),
    run(&["tg-get-flow-blueprint", "-n", "structured"]).says(&[
        "\"interfaces\": {",
        "\"request\": \"request:tg:agent:{workspace}:{id}\"",
    ]),
    run(&["tg-get-flow-blueprint", "-n", "nothing"]).says(&["Exception: "]),
    run(&[
        "tg-put-flow-blueprint",
        "-n",
        "mine",
        "-c",
        r#"{"description":"my own","class":{},"flow":{},"interfaces":{}}"#,
    ])
    .silent(),
    run(&["tg-get-flow-blueprint", "-n", "mine"]).says(&["\"description\": \"my own\""]),
    run(&["tg-delete-flow-blueprint", "-n", "mine"]).silent(),
    run(&["tg-show-flow-blueprints"]).lacks(&["| mine "]),
    // Flows.
    run(&[
        "tg-start-flow",
        "-n",
        "everything",
        "-i",
        "second",
        "-d",
        "another",
        "--param",
        "llm-temperature=0.5",
    ])
    .silent(),
    run(&[
        "tg-start-flow",
        "-n",
        "everything",
        "-i",
        "second",
        "-d",
        "another",
    ])
    .exactly("Exception: flow-error: Flow already exists"),
    run(&["tg-start-flow", "-n", "nothing", "-i", "third", "-d", "x"])
        .says(&["Exception: ", "does not exist"]),
    run(&["tg-show-flows"]).says(&[
        "| id         | default ",
        "| id         | second ",
        "| desc       | another ",
        "Temperature of the language model: 0.5",
        "Temperature for retrieval and agents: 0.5 (controlled by llm-temperature)",
        "agent request: request:tg:agent:default:second",
    ]),
    run(&["tg-show-flows", "-w", "nowhere"]).says(&["Exception: ", "workspace"]),
    run(&[
        "tg-show-flow-state",
        "-f",
        "default",
        "-m",
        "{url}api/metrics",
    ])
    .says(&[
        "Flow default",
        "- agent-manager                  💚",
        "- triples-write                  💚",
        "Blueprint everything",
    ]),
    run(&[
        "tg-show-flow-state",
        "-f",
        "nothing",
        "-m",
        "{url}api/metrics",
    ])
    .exactly("Exception: flow-error: Flow ID invalid"),
    run(&["tg-show-processor-state", "-m", "{url}api/metrics"]).says(&[
        "  agent-manager                  💚",
        "  api-gateway                    💚",
    ]),
    run(&["tg-stop-flow", "-i", "second"]).silent(),
    run(&["tg-stop-flow", "-i", "second"]).exactly("Exception: flow-error: Flow ID invalid"),
    run(&["tg-show-flows"]).lacks(&["second"]),
    run(&[
        "tg-verify-system-status",
        "--ui-url",
        "{url}",
        "--global-timeout",
        "30",
    ])
    .says(&[
        "✓ API Gateway: API Gateway is responding",
        "✓ Flow Blueprints: Found 3 flow blueprint(s)",
        "✓ Flows: Flow manager responding (1 flow(s))",
        "✓ Prompts: Found ",
        "✓ Library: Library responding",
        "✓ Workbench UI: ",
        "Checks passed: 7/7",
    ]),
    // Tools.
    run(&[
        "tg-set-tool",
        "--id",
        "helper",
        "--name",
        "helper",
        "--type",
        "prompt",
        "--template",
        "mine",
        "--description",
        "Says it",
        "--argument",
        "x:string:what to say",
        "--group",
        "few",
    ])
    .exactly("Tool set."),
    run(&["tg-show-tools"]).says(&[
        "| id          | helper ",
        "| template    | mine ",
        "| arg 0       | x: string ",
        "| id          | knowledge-query ",
    ]),
    run(&["tg-delete-tool", "--id", "helper"]).exactly("Tool 'helper' deleted successfully."),
    run(&["tg-delete-tool", "--id", "helper"])
        .exactly("Tool configuration for 'helper' not found."),
    run(&["tg-show-tools"]).lacks(&["helper"]),
    run(&[
        "tg-set-mcp-tool",
        "-i",
        "m1",
        "-r",
        "remote",
        "--tool-url",
        "{mcp}",
        "--auth-token",
        "sekret-8",
    ])
    .silent(),
    run(&["tg-show-mcp-tools"])
        .says(&[
            "| id          | m1 ",
            "| remote-name | remote ",
            "{mcp}",
            "Yes (configured)",
        ])
        .lacks(&["sekret-8"]),
    run(&[
        "tg-invoke-mcp-tool",
        "-n",
        "m1",
        "-P",
        r#"{"say": "nonce-mcp-4"}"#,
    ])
    .says(&["heard nonce-mcp-4"]),
    run(&["tg-invoke-mcp-tool", "-n", "none", "-P", "{}"]).says(&["Exception: ", "none"]),
    run(&["tg-delete-mcp-tool", "--id", "m1"]).exactly("MCP tool 'm1' deleted successfully."),
    run(&["tg-delete-mcp-tool", "--id", "m1"]).exactly("MCP tool 'm1' not found."),
    // Prompts. A template goes to the workspace `default`, whatever the command is told.
    run(&[
        "tg-set-prompt",
        "--id",
        "mine",
        "--prompt",
        "Say {{x}}.",
        "-w",
        "made",
    ])
    .exactly("Prompt set."),
    run(&["tg-show-prompts"]).says(&["mine:", "| Say {{x}}. ", "agent-react:"]),
    run(&["tg-show-prompts", "-w", "made"]).lacks(&["Say {{x}}."]),
    run(&[
        "tg-set-prompt",
        "--system",
        "Be brief, nonce-system-3.",
        "-w",
        "made",
    ])
    .exactly("System prompt set."),
    run(&["tg-show-prompts", "-w", "made"]).says(&["System prompt:", "Be brief, nonce-system-3."]),
    run(&["tg-show-prompts"]).lacks(&["nonce-system-3"]),
    run(&["tg-invoke-prompt", "mine", "x=nonce-p-1"]).exactly("Say nonce-p-1."),
    run(&["tg-invoke-prompt", "--no-streaming", "mine", "x=nonce-p-2"]).exactly("Say nonce-p-2."),
    run(&["tg-invoke-prompt", "--show-usage", "mine", "x=nonce-p-3"])
        .exactly("Say nonce-p-3.")
        .tells(&["Input tokens: ", "Model: builtin"]),
    run(&["tg-invoke-prompt", "nothing", "x=y"])
        .exactly("Exception: prompt 'nothing' does not exist in this workspace"),
    // The model.
    run(&["tg-invoke-llm", "Be brief.", "Say nonce-l-1"]).exactly("Say nonce-l-1"),
    run(&[
        "tg-invoke-llm",
        "Be brief.",
        "Say nonce-l-2",
        "--no-streaming",
        "--show-usage",
    ])
    .exactly("Say nonce-l-2")
    .tells(&["Input tokens: 4  Output tokens: 2  Model: builtin"]),
    run(&["tg-invoke-llm", "-f", "nothing", "a", "b"])
        .says(&["Exception: Invalid flow default/nothing"]),
    run(&["tg-invoke-llm", "-w", "nowhere", "a", "b"]).exactly("Exception: workspace not found"),
    run(&["tg-invoke-llm", "-t", "tg_wrong", "a", "b"]).says(&["auth failure"]),
    run(&["tg-list-models"]).exactly("builtin (extractive, not a language model)  [threadgraph]"),
    run(&["tg-list-models", "-j"]).says(&["\"owned_by\": \"threadgraph\""]),
    run(&[
        "tg-show-token-rate",
        "-m",
        "{url}api/metrics",
        "-p",
        "1",
        "-n",
        "1",
    ])
    // Until the steps beside it ask no model.
    .says(&["Input     Output      Total", "0.0"])
    .until(),
    // They use different keys: what is set is not what is shown.
    run(&[
        "tg-set-token-costs",
        "--model",
        "model-c",
        "-i",
        "1.5",
        "-o",
        "2.5",
    ])
    .silent(),
    run(&["tg-show-token-costs"])
        .says(&["| model ", "| input, $/Mt | output, $/Mt |", "builtin"])
        .lacks(&["model-c"]),
    run(&[
        "tg-get-config-item",
        "--type",
        "token-costs",
        "--key",
        "model-c",
    ])
    .says(&["1.5", "2.5"]),
    // Services that are not served: the error that a user sees.
    run(&["tg-list-cloze-models"]).exactly("Exception: This kind not supported by flow"),
    run(&["tg-invoke-cloze", "-m", "model", "text"])
        .exactly("Exception: This kind not supported by flow"),
    run(&[
        "tg-invoke-decision-scoring",
        "-s",
        "{}",
        "-q",
        r#"{"a": "b"}"#,
    ])
    .exactly("Exception: This kind not supported by flow"),
    run(&["tg-invoke-field-extract", "-s", "{}", "-F", r#"{"a": "b"}"#])
        .exactly("Exception: This kind not supported by flow"),
    // The reader that comes with the system reads no pictures; with a model: pictures_are_described.
    run(&["tg-describe-image", "-i", "{dir}p.png", "-p", "What?"])
        .says(&["the builtin extractive reader reads no pictures"]),
];
