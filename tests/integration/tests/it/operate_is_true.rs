//! docs/operate.md, as somebody follows it: its blocks are run, its settings are read, its exit codes are those of the program.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use tg_schemas::ErrorCode;
use tg_testkit::process::{bin_dir, root};
use tokio::process::Command;

use crate::pasted::{self, Output};

fn page() -> Result<String> {
    Ok(std::fs::read_to_string(root().join("docs/operate.md"))?)
}

#[tokio::test]
async fn its_blocks_work_when_pasted() -> Result<()> {
    let lines = pasted::blocks(&page()?, "sh").concat();
    ensure!(lines.matches("threadgraph up &").count() >= 3, "{lines}");
    let folder = tempfile::tempdir()?;
    let backup = folder.path().join("backup");
    let documents = Path::new("demo/documents/uncommon-clocks.pdf");
    let env: [(&str, &Path); 2] = [("BACKUP", &backup), ("DOCUMENTS", documents)];
    let Output { stdout, stderr } = pasted::run(&lines, folder.path(), &env).await?;
    for wanted in [
        "1 added.",
        "The system is healthy.",
        "uncommon-clocks",
        "Workspace acme is created. It has no flow yet",
        "Gaurishankar [1].",
        "tg_model_up 1",
        "tg_dead_letters{reason=\"dead\"} 0",
        "Flow default: nothing is waiting and all processors are running.",
    ] {
        ensure!(
            stdout.contains(wanted),
            "{wanted:?} is not in\n{stdout}\n{stderr}"
        );
    }
    let healthy = stdout.matches("The system is healthy.").count();
    ensure!(healthy == 3, "{healthy} starts\n{stdout}\n{stderr}");
    for file in [
        "data/backup.json",
        "default.tgx",
        "before-upgrade/backup.json",
    ] {
        ensure!(backup.join(file).metadata()?.len() > 1_000, "{file}");
    }
    ensure!(folder.path().join("data.before/config.sqlite").exists());
    Ok(())
}

#[tokio::test]
async fn its_settings_are_settings_and_its_unit_starts_what_there_is() -> Result<()> {
    let page = page()?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("threadgraph.toml");
    let secret = folder.path().join("otlp");
    std::fs::write(&secret, "authorization=Bearer%20s")?;
    // All that the page shows, as one file.
    let settings = pasted::blocks(&page, "toml").join("\n");
    let settings = &settings.replace("/run/secrets/otlp", &secret.to_string_lossy());
    let [unit] = &pasted::blocks(&page, "ini")[..] else {
        anyhow::bail!("one unit");
    };
    let read = async |settings: &str| -> Result<bool> {
        std::fs::write(&file, settings)?;
        let mut command = Command::new(bin_dir()?.join("threadgraph"));
        command.args(["settings", "--json", "--config"]).arg(&file);
        Ok(command.output().await?.status.success())
    };
    ensure!(read(settings).await?, "{settings}");
    ensure!(!read(&settings.replace("durability", "hardness")).await?);
    let directory = settings
        .lines()
        .find_map(|line| line.strip_prefix("data_dir = "));
    ensure!(
        directory == Some("\"/var/lib/threadgraph\""),
        "{directory:?}"
    );
    for line in [
        "ExecStart=/usr/local/bin/threadgraph up --config /etc/threadgraph/threadgraph.toml",
        "StateDirectory=threadgraph",
        "RestartPreventExitStatus=2",
    ] {
        ensure!(unit.lines().any(|own| own == line), "{line}");
    }
    Ok(())
}

#[test]
fn its_exit_codes_are_those_of_the_program() -> Result<()> {
    let page = page()?;
    let (_, table) = page
        .split_once("| code | meaning | errors |")
        .context("table")?;
    let mut told: BTreeMap<String, i32> = BTreeMap::new();
    for line in table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
    {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let code = cells.get(1).context("a code")?.parse()?;
        let errors = cells
            .get(3)
            .context("errors")?
            .split('`')
            .skip(1)
            .step_by(2);
        told.extend(errors.map(|error| (error.to_owned(), code)));
    }
    let real = ErrorCode::all().map(|code| (code.as_str().to_owned(), code.exit_code()));
    assert_eq!(told, real.collect());
    Ok(())
}

/// Series by the minute, and whether each alert fires at the end of them.
const ALERTS: &str = r#"
rule_files: [rules.yaml]
evaluation_interval: 1m
tests:
  - name: all is well
    interval: 1m
    input_series:
      - {series: 'tg_dead_letters{reason="dead"}', values: '3x30'}
      - {series: 'tg_dead_letters{reason="retry"}', values: '0 0 4 0 0 0+0x30'}
      - {series: 'tg_model_up', values: '1x30'}
      - {series: 'tg_flow_waiting_messages{workspace="w",flow="f"}', values: '7x30'}
      - {series: 'tg_consumer_processing_total{processor="p",status="ok"}', values: '0+5x30'}
      - {series: 'tg_gateway_certificate_expiry_timestamp_seconds', values: '2000000x30'}
      - {series: 'tg_gateway_certificate_refused', values: '0x30'}
    alert_rule_test:
      - {alertname: ThreadgraphCertificateEnds, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphDeadLettersGrow, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphModelAway, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphRecordsWait, eval_time: 30m, exp_alerts: []}
  - name: dead letters grow, the model is away, records are tried again
    interval: 1m
    input_series:
      - {series: 'tg_dead_letters{reason="dead"}', values: '3x25 4x5'}
      - {series: 'tg_dead_letters{reason="retry"}', values: '2x30'}
      - {series: 'tg_model_up', values: '1x25 0x5'}
    alert_rule_test:
      - alertname: ThreadgraphDeadLettersGrow
        eval_time: 30m
        exp_alerts: [{exp_labels: {reason: dead}}]
      - {alertname: ThreadgraphModelAway, eval_time: 27m, exp_alerts: []}
      - alertname: ThreadgraphModelAway
        eval_time: 29m
        exp_alerts: [{exp_labels: {}}]
      - alertname: ThreadgraphRecordsWait
        eval_time: 30m
        exp_alerts: [{exp_labels: {reason: retry}}]
  - name: messages wait and nothing is handled
    interval: 1m
    input_series:
      - {series: 'tg_flow_waiting_messages{workspace="w",flow="f"}', values: '7x30'}
      - {series: 'tg_consumer_processing_total{processor="p",status="ok"}', values: '5x30'}
    alert_rule_test:
      - alertname: ThreadgraphRecordsWait
        eval_time: 30m
        exp_alerts: [{exp_labels: {workspace: w, flow: f}}]
  - name: the certificate ends within two weeks
    interval: 1m
    input_series:
      - {series: 'tg_gateway_certificate_expiry_timestamp_seconds', values: '1200000x30'}
      - {series: 'tg_gateway_certificate_refused', values: '0x30'}
    alert_rule_test:
      - alertname: ThreadgraphCertificateEnds
        eval_time: 30m
        exp_alerts: [{exp_labels: {}}]
  - name: a new certificate cannot be used
    interval: 1m
    input_series:
      - {series: 'tg_gateway_certificate_expiry_timestamp_seconds', values: '2000000x30'}
      - {series: 'tg_gateway_certificate_refused', values: '1x30'}
    alert_rule_test:
      - alertname: ThreadgraphCertificateEnds
        eval_time: 30m
        exp_alerts: [{exp_labels: {}}]
"#;

/// The alerts are rules that Prometheus takes, and fire when they should and at no other time.
#[tokio::test]
async fn its_alerts_fire_when_they_should() -> Result<()> {
    let page = page()?;
    let blocks = pasted::blocks(&page, "yaml");
    let rules = blocks.iter().find(|block| block.starts_with("groups:"));
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("rules.yaml"), rules.context("rules")?)?;
    std::fs::write(folder.path().join("alerts.yaml"), ALERTS)?;
    for what in [
        ["check", "rules", "rules.yaml"],
        ["test", "rules", "alerts.yaml"],
    ] {
        let mut command = Command::new(root().join(".cache/promtool/usr/bin/promtool"));
        let ran = command.args(what).current_dir(folder.path()).output();
        let ran = ran
            .await
            .context("promtool, as `make setup-test` brings it")?;
        ensure!(
            ran.status.success(),
            "{what:?}: {}{}",
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr)
        );
    }
    Ok(())
}
