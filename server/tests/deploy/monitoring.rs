//! The dashboard for Grafana and the alert rules for Prometheus, over metrics of the table and no others.

use serde_json::{Value, json};

use crate::yaml::{self, Files};

/// A panel: title, unit, and its queries with their legends.
type Panel = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// Rows of the dashboard.
const ROWS: &[(&str, &[Panel])] = &[
    (
        "Is it well",
        &[
            (
                "Processes that report",
                "short",
                &[("sum(up{job=~\"threadgraph.*\"})", "up")],
            ),
            (
                "Language model answers",
                "short",
                &[("min(tg_model_up)", "up")],
            ),
            (
                "Dead letters",
                "short",
                &[("sum by (reason) (tg_dead_letters)", "{{reason}}")],
            ),
            (
                "Messages that wait",
                "short",
                &[(
                    "sum by (workspace, flow) (tg_flow_waiting_messages)",
                    "{{workspace}} {{flow}}",
                )],
            ),
            (
                "Room on disk",
                "bytes",
                &[("min by (instance) (tg_disk_free_bytes)", "{{instance}}")],
            ),
        ],
    ),
    (
        "Requests",
        &[
            (
                "Requests a second",
                "reqps",
                &[(
                    "sum by (service) (rate(tg_gateway_requests_total[5m]))",
                    "{{service}}",
                )],
            ),
            (
                "Failed requests a second",
                "reqps",
                &[(
                    "sum by (service, outcome) (rate(tg_gateway_requests_total{outcome!=\"ok\"}[5m]))",
                    "{{service}} {{outcome}}",
                )],
            ),
            (
                "Time of a request, 95 %",
                "s",
                &[(
                    "histogram_quantile(0.95, sum by (le, service) (rate(tg_gateway_request_seconds_bucket[5m])))",
                    "{{service}}",
                )],
            ),
            (
                "Open WebSockets",
                "short",
                &[("sum(tg_gateway_sockets)", "open")],
            ),
        ],
    ),
    (
        "Work",
        &[
            (
                "Messages handled a second",
                "ops",
                &[(
                    "sum by (processor) (rate(tg_consumer_processing_total[5m]))",
                    "{{processor}}",
                )],
            ),
            (
                "Time of a message, 95 %",
                "s",
                &[(
                    "histogram_quantile(0.95, sum by (le, processor) (rate(tg_consumer_request_duration_seconds_bucket[5m])))",
                    "{{processor}}",
                )],
            ),
            (
                "Agent runs that ended",
                "ops",
                &[(
                    "sum by (outcome) (rate(tg_agent_session_total[5m]))",
                    "{{outcome}}",
                )],
            ),
            (
                "Triples written a second",
                "ops",
                &[("sum(rate(tg_graph_triples_written_total[5m]))", "triples")],
            ),
        ],
    ),
    (
        "The model",
        &[
            (
                "Tokens a second",
                "short",
                &[
                    ("sum(rate(tg_input_tokens_total[5m]))", "read"),
                    ("sum(rate(tg_output_tokens_total[5m]))", "written"),
                ],
            ),
            (
                "Time of a call, 95 %",
                "s",
                &[(
                    "histogram_quantile(0.95, sum by (le, processor) (rate(tg_text_completion_duration_seconds_bucket[5m])))",
                    "{{processor}}",
                )],
            ),
        ],
    ),
    (
        "The processes",
        &[
            (
                "Memory",
                "bytes",
                &[(
                    "process_resident_memory_bytes{job=~\"threadgraph.*\"}",
                    "{{instance}}",
                )],
            ),
            (
                "Processor time",
                "short",
                &[(
                    "rate(process_cpu_seconds_total{job=~\"threadgraph.*\"}[5m])",
                    "{{instance}}",
                )],
            ),
            (
                "Open descriptors",
                "short",
                &[("process_open_fds{job=~\"threadgraph.*\"}", "{{instance}}")],
            ),
        ],
    ),
];

/// Alerts: name, expression, for how long, what to do.
const ALERTS: &[(&str, &str, &str, &str)] = &[
    (
        "ThreadgraphProcessAway",
        "up{job=~\"threadgraph.*\"} == 0 or absent(up{job=~\"threadgraph.*\"})",
        "2m",
        "A process does not report: look at its log. Without an instance: Prometheus has none to ask.",
    ),
    (
        "ThreadgraphDeadLettersGrow",
        "delta(tg_dead_letters{reason=\"dead\"}[15m]) > 0",
        "0m",
        "`tg dead-letters` lists them; replay them when what was wrong is mended, or discard them.",
    ),
    (
        "ThreadgraphModelAway",
        "tg_model_up == 0",
        "2m",
        "`tg doctor` says address, status and the setting behind it. What needs the model is tried again by itself.",
    ),
    (
        "ThreadgraphCertificateEnds",
        "tg_gateway_certificate_expiry_timestamp_seconds - time() < 14 * 86400 or tg_gateway_certificate_refused == 1",
        "0m",
        "Renew the certificate; where a new one cannot be used, the log says why.",
    ),
    (
        "ThreadgraphRecordsWait",
        "min_over_time(tg_dead_letters{reason=\"retry\"}[15m]) > 0 or (min_over_time(tg_flow_waiting_messages[15m]) > 0 unless on() sum(increase(tg_consumer_processing_total{status=\"ok\"}[15m])) > 0)",
        "0m",
        "`tg why` says what waits, and for what.",
    ),
    (
        "ThreadgraphDiskFills",
        "tg_disk_free_bytes < 256 * 1024 * 1024",
        "5m",
        "Make room below data_dir. With less than 4 MiB the process is not ready and writes fail.",
    ),
    (
        "ThreadgraphDeadLetterRoomFull",
        "tg_dead_letter_quotas_full > 0",
        "5m",
        "A flow takes no more records: replay or discard its dead letters.",
    ),
    (
        "ThreadgraphPurgingRefused",
        "tg_purging_refused == 1",
        "5m",
        "A store purges no deleted workspace: its configuration is another one, or older, than it knew.",
    ),
    (
        "ThreadgraphConsumerStuck",
        "tg_idle_consumers > 0",
        "5m",
        "A processor takes none of what waits for it: `/health/ready` of the process names it, `tg why` says what waits.",
    ),
    (
        "ThreadgraphRecordsRefused",
        "increase(tg_bus_records_refused_total[15m]) > 0 or (tg_bus_records_refused_total unless tg_bus_records_refused_total offset 15m)",
        "0m",
        "The embedded bus refuses records, as too much of their workspace waits: `tg why` says for what.",
    ),
    (
        "ThreadgraphReembeddingStuck",
        "tg_reembeddings_stuck > 0",
        "15m",
        "A change to another embeddings model does not get on: `tg reembed-collection --show` says why.",
    ),
];

/// All files below `monitoring/`.
pub fn files() -> Files {
    let rules = ALERTS.iter().map(|(name, expression, time, help)| {
        json!({"alert": name, "expr": expression, "for": time, "annotations": {"summary": help}})
    });
    let rules: Vec<Value> = rules.collect();
    let groups = json!({"groups": [{"name": "threadgraph", "rules": rules}]});
    let dashboard = serde_json::to_string_pretty(&dashboard()).expect("JSON");
    Files::from([
        ("monitoring/alerts.yaml".to_owned(), yaml::file(&[groups])),
        ("monitoring/dashboard.json".to_owned(), dashboard + "\n"),
    ])
}

/// Name, expression and time of every alert.
pub fn alerts() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    ALERTS
        .iter()
        .map(|(name, expression, time, _)| (*name, *expression, *time))
}

/// Every expression.
pub fn expressions() -> impl Iterator<Item = &'static str> {
    let panels = ROWS.iter().flat_map(|(_, panels)| panels.iter());
    let queries = panels.flat_map(|(_, _, queries)| queries.iter().map(|(query, _)| *query));
    queries.chain(ALERTS.iter().map(|(_, expression, ..)| *expression))
}

fn dashboard() -> Value {
    let (mut panels, mut at, mut id) = (Vec::new(), 0_u64, 0_u64);
    let mut next = || {
        id += 1;
        id
    };
    for (title, row) in ROWS {
        panels.push(json!({
            "id": next(), "type": "row", "title": title, "collapsed": false,
            "gridPos": {"x": 0, "y": at, "w": 24, "h": 1}, "panels": [],
        }));
        at += 1;
        for (number, (title, unit, queries)) in row.iter().enumerate() {
            let (column, line) = (number as u64 % 3, number as u64 / 3);
            let targets = queries.iter().enumerate().map(|(letter, (query, legend))| {
                let name = char::from(b'A' + u8::try_from(letter).unwrap_or_default());
                json!({"refId": name.to_string(), "expr": query, "legendFormat": legend})
            });
            panels.push(json!({
                "id": next(), "type": "timeseries", "title": title,
                "datasource": {"type": "prometheus", "uid": "${source}"},
                "gridPos": {"x": column * 8, "y": at + line * 8, "w": 8, "h": 8},
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                "targets": targets.collect::<Vec<_>>(),
            }));
        }
        at += (row.len() as u64).div_ceil(3) * 8;
    }
    json!({
        "uid": "threadgraph", "title": "Threadgraph", "schemaVersion": 39, "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "panels": panels,
    })
}
