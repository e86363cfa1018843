//! What must hold of the dashboard and the alert rules: they are about metrics that exist, the page about operation shows the rules as
//! they are, and each rule fires when it should and only then.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tg_server::metrics::METRICS;

use crate::all::folder;
use crate::monitoring;

/// Dashboard and rules name metrics that the program has, and those of a process or of Prometheus itself.
#[test]
fn dashboard_and_alerts_are_about_metrics_that_exist() {
    let ours = |name: &str| {
        let base = name.strip_suffix("_bucket").unwrap_or(name);
        METRICS.iter().any(|metric| metric.name == base)
    };
    let mut seen = 0;
    for expression in monitoring::expressions() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        for word in expression.split(|c| !is_name(c)) {
            if word.starts_with("tg_") {
                assert!(ours(word), "{word} in {expression}");
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

/// Text on one line, with single blanks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An alert as a page shows it.
struct Shown {
    name: String,
    expression: String,
    time: String,
}

/// The alerts of a page's one block of rules.
fn shown(page: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut continues = false;
    for line in page.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("- alert: ") {
            all.push(Shown {
                name: name.to_owned(),
                expression: String::new(),
                time: "0m".to_owned(),
            });
            continues = false;
            continue;
        }
        let Some(last) = all.last_mut() else { continue };
        if line.starts_with("```") {
            break;
        }
        if let Some(expression) = line.strip_prefix("expr: ") {
            last.expression = expression.trim_start_matches('>').to_owned();
            continues = true;
        } else if let Some(time) = line.strip_prefix("for: ") {
            last.time = time.to_owned();
            continues = false;
        } else if continues {
            last.expression.push(' ');
            last.expression.push_str(line);
        }
    }
    all
}

/// What the page shows is what is shipped, word for word.
#[test]
fn the_page_shows_the_rules_as_they_are() {
    let page = std::fs::read_to_string(folder().join("../docs/operate.md")).expect("the page");
    let shown = shown(&page);
    assert!(shown.len() > 3, "{}", shown.len());
    for one in shown {
        let mut shipped = monitoring::alerts().filter(|(name, ..)| *name == one.name);
        let (name, expression, time) = shipped.next().expect("a shipped rule");
        assert_eq!(flat(&one.expression), flat(expression), "{name}");
        assert_eq!(one.time, time, "{name}");
    }
}

/// Prometheus takes the rules. Each of them fires when it should, and none while all is well.
#[test]
fn alerts_are_rules_that_prometheus_takes() {
    let alerts = std::fs::read_to_string(folder().join("monitoring/alerts.yaml")).expect("rules");
    for (name, ..) in monitoring::alerts() {
        for tried in [
            format!("- alertname: {name}\n"),
            format!("{{alertname: {name}, eval_time: 30m, exp_alerts: []}}"),
        ] {
            assert!(SERIES.contains(&tried), "{tried}");
        }
    }
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("rules.yaml"), &alerts).expect("a file");
    std::fs::write(dir.path().join("tests.yaml"), SERIES).expect("a file");
    for what in [
        ["check", "rules", "rules.yaml"],
        ["test", "rules", "tests.yaml"],
    ] {
        let (takes, said) = promtool(dir.path(), &what);
        assert!(takes, "{said}");
    }
}

/// Prometheus takes each query of the dashboard, as it is in the file.
#[test]
fn panels_are_queries_that_prometheus_takes() {
    let file = folder().join("monitoring/dashboard.json");
    let text = std::fs::read(file).expect("the dashboard");
    let dashboard: Value = serde_json::from_slice(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array());
    let queries: Vec<_> = targets.flatten().map(|target| &target["expr"]).collect();
    assert!(queries.len() > 10, "{queries:?}");
    let dir = tempfile::tempdir().expect("a folder");
    let takes = |queries: &[&Value]| {
        let rule = |query: &&Value| json!({"record": "panel:query", "expr": query, "labels": {"query": query}});
        let rules: Vec<_> = queries.iter().map(rule).collect();
        // JSON is YAML.
        let groups = json!({"groups": [{"name": "panels", "rules": rules}]});
        std::fs::write(dir.path().join("panels.yaml"), groups.to_string()).expect("a file");
        promtool(dir.path(), &["check", "rules", "panels.yaml"])
    };
    let (all, said) = takes(&queries);
    assert!(all, "{said}");
    let (wrong, said) = takes(&[&json!("sum by (reason tg_dead_letters")]);
    assert!(!wrong, "{said}");
}

/// Whether the tool of Prometheus is content, and what it printed.
fn promtool(at: &Path, arguments: &[&str]) -> (bool, String) {
    let ran = Command::new(folder().join("../.cache/promtool/usr/bin/promtool"))
        .args(arguments)
        .current_dir(at)
        .output()
        .expect("promtool, as `make setup-test` brings it");
    let said = [ran.stdout, ran.stderr].concat();
    (
        ran.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

/// Series by the minute, and which rules fire.
const SERIES: &str = r#"
rule_files: [rules.yaml]
evaluation_interval: 1m
tests:
  - name: all is well
    interval: 1m
    input_series:
      - {series: 'up{job="threadgraph",instance="a"}', values: '1x30'}
      - {series: 'tg_disk_free_bytes', values: '9e9x30'}
      - {series: 'tg_dead_letters{reason="dead"}', values: '3x30'}
      - {series: 'tg_dead_letters{reason="retry"}', values: '2x20 0x10'}
      - {series: 'tg_dead_letter_quotas_full', values: '0x30'}
      - {series: 'tg_purging_refused{store="graph"}', values: '0x30'}
      - {series: 'tg_model_up', values: '0x5 1x25'}
      - {series: 'tg_gateway_certificate_expiry_timestamp_seconds', values: '9e9x30'}
      - {series: 'tg_gateway_certificate_refused', values: '0x30'}
      - {series: 'tg_flow_waiting_messages{workspace="w",flow="f"}', values: '9x30'}
      - {series: 'tg_consumer_processing_total{processor="p",status="ok"}', values: '0+5x30'}
      - {series: 'tg_idle_consumers', values: '0x26 1x4'}
      - {series: 'tg_bus_records_refused_total', values: '7x30'}
      - {series: 'tg_reembeddings_stuck', values: '0x20 1x10'}
    alert_rule_test:
      - {alertname: ThreadgraphProcessAway, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphDeadLettersGrow, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphModelAway, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphCertificateEnds, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphRecordsWait, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphDiskFills, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphDeadLetterRoomFull, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphPurgingRefused, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphConsumerStuck, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphRecordsRefused, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphReembeddingStuck, eval_time: 30m, exp_alerts: []}
  - name: a process is away, the disk of another fills and nothing goes on
    interval: 1m
    input_series:
      - {series: 'up{job="threadgraph-services",instance="a"}', values: '1x20 0x10'}
      - {series: 'up{job="other",instance="b"}', values: '0x30'}
      - {series: 'tg_disk_free_bytes', values: '9e9x20 1e6x10'}
      - {series: 'tg_dead_letters{reason="dead"}', values: '3x20 5x10'}
      - {series: 'tg_dead_letter_quotas_full', values: '0x10 1x20'}
      - {series: 'tg_purging_refused{store="graph"}', values: '0x10 1x20'}
      - {series: 'tg_model_up', values: '1x10 0x20'}
      - {series: 'tg_gateway_certificate_expiry_timestamp_seconds', values: '1000000x30'}
      - {series: 'tg_flow_waiting_messages{workspace="w",flow="f"}', values: '9x30'}
      - {series: 'tg_consumer_processing_total{processor="p",status="ok"}', values: '7x30'}
      - {series: 'tg_consumer_processing_total{processor="p",status="error"}', values: '0+5x30'}
      - {series: 'tg_idle_consumers', values: '0x10 2x20'}
      - {series: 'tg_bus_records_refused_total', values: '7x20 9x10'}
      - {series: 'tg_reembeddings_stuck', values: '0x10 1x20'}
    alert_rule_test:
      - alertname: ThreadgraphProcessAway
        eval_time: 30m
        exp_alerts:
          - exp_labels: {job: threadgraph-services, instance: a}
            exp_annotations: {summary: "A process does not report: look at its log. Without an instance: Prometheus has none to ask."}
      - {alertname: ThreadgraphDiskFills, eval_time: 22m, exp_alerts: []}
      - alertname: ThreadgraphDiskFills
        eval_time: 30m
        exp_alerts:
          - exp_annotations:
              summary: "Make room below data_dir. With less than 4 MiB the process is not ready and writes fail."
      - alertname: ThreadgraphDeadLettersGrow
        eval_time: 30m
        exp_alerts:
          - exp_labels: {reason: dead}
            exp_annotations:
              summary: "`tg dead-letters` lists them; replay them when what was wrong is mended, or discard them."
      - alertname: ThreadgraphDeadLetterRoomFull
        eval_time: 30m
        exp_alerts:
          - exp_annotations: {summary: "A flow takes no more records: replay or discard its dead letters."}
      - alertname: ThreadgraphPurgingRefused
        eval_time: 30m
        exp_alerts:
          - exp_labels: {store: graph}
            exp_annotations:
              summary: "A store purges no deleted workspace: its configuration is another one, or older, than it knew."
      - alertname: ThreadgraphConsumerStuck
        eval_time: 30m
        exp_alerts:
          - exp_annotations:
              summary: "A processor takes none of what waits for it: `/health/ready` of the process names it, `tg why` says what waits."
      - alertname: ThreadgraphRecordsRefused
        eval_time: 30m
        exp_alerts:
          - exp_annotations:
              summary: "The embedded bus refuses records, as too much of their workspace waits: `tg why` says for what."
      - alertname: ThreadgraphReembeddingStuck
        eval_time: 30m
        exp_alerts:
          - exp_annotations:
              summary: "A change to another embeddings model does not get on: `tg reembed-collection --show` says why."
      - alertname: ThreadgraphModelAway
        eval_time: 30m
        exp_alerts:
          - exp_annotations:
              summary: "`tg doctor` says address, status and the setting behind it. What needs the model is tried again by itself."
      - alertname: ThreadgraphCertificateEnds
        eval_time: 30m
        exp_alerts:
          - exp_annotations: {summary: "Renew the certificate; where a new one cannot be used, the log says why."}
      - alertname: ThreadgraphRecordsWait
        eval_time: 30m
        exp_alerts:
          - exp_labels: {workspace: w, flow: f}
            exp_annotations: {summary: "`tg why` says what waits, and for what."}
  - name: Prometheus knows of no process, but of another gateway's certificate and of records since the system began
    interval: 1m
    input_series:
      - {series: 'tg_gateway_certificate_refused', values: '1x30'}
      - {series: 'tg_flow_waiting_messages{workspace="w",flow="f"}', values: '9x30'}
      - {series: 'tg_dead_letters{reason="retry"}', values: '2x30'}
    alert_rule_test:
      - alertname: ThreadgraphProcessAway
        eval_time: 30m
        exp_alerts:
          - exp_annotations: {summary: "A process does not report: look at its log. Without an instance: Prometheus has none to ask."}
      - alertname: ThreadgraphCertificateEnds
        eval_time: 30m
        exp_alerts:
          - exp_annotations: {summary: "Renew the certificate; where a new one cannot be used, the log says why."}
      - alertname: ThreadgraphRecordsWait
        eval_time: 30m
        exp_alerts:
          - exp_labels: {workspace: w, flow: f}
            exp_annotations: {summary: "`tg why` says what waits, and for what."}
          - exp_labels: {reason: retry}
            exp_annotations: {summary: "`tg why` says what waits, and for what."}
"#;
