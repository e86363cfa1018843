//! What must hold of the generated files, and of what `kubectl kustomize` makes of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use tg_server::deployed::DEPLOYED;
use tg_server::metrics::METRICS;
use tg_server::settings::{Flags, Settings};

use crate::all::{files, folder};
use crate::{monitoring, pod};

/// Folders whose files are all generated.
const GENERATED: [&str; 2] = ["k8s", "monitoring"];
/// Versions of Kubernetes that the manifests are held against.
const VERSIONS: [&str; 3] = ["1.30", "1.33", "1.36"];

fn below(path: &Path, all: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => below(&entry.path(), all),
            false => {
                let path = entry.path();
                let name = path.strip_prefix(folder()).expect("below deploy/");
                all.insert(name.display().to_string());
            }
        }
    }
}

#[test]
fn what_is_deployed_is_what_the_table_says() {
    let files = files();
    if std::env::var_os("UPDATE").is_some() {
        for generated in GENERATED {
            let _ = std::fs::remove_dir_all(folder().join(generated));
        }
        for (path, text) in &files {
            let path = folder().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
    }
    let again = "run UPDATE=1 cargo test -p tg-server --test deploy";
    for (path, text) in &files {
        let written = std::fs::read_to_string(folder().join(path)).unwrap_or_default();
        assert_eq!(&written, text, "{path}: {again}");
    }
    let mut there = BTreeSet::new();
    for generated in GENERATED {
        below(&folder().join(generated), &mut there);
    }
    let unmade: Vec<_> = there
        .iter()
        .filter(|path| !files.contains_key(*path))
        .collect();
    assert!(unmade.is_empty(), "{unmade:?}: {again}");
}

/// The time that a stop may take is longer than what the program takes for it.
#[test]
fn a_pod_may_drain_before_it_is_killed() {
    let settings = Settings::load(&Flags::default(), Default::default()).expect("defaults");
    assert!(pod::GRACE >= pod::LEAVE + settings.drain().as_secs() + 15);
    let unit = folder().join("systemd/threadgraph.service");
    let unit = std::fs::read_to_string(unit).expect("the unit");
    assert!(
        unit.contains(&format!("TimeoutStopSec={}", pod::GRACE)),
        "{unit}"
    );
}

/// The page about operation shows the unit that is shipped.
#[test]
fn the_unit_is_the_one_that_the_page_shows() {
    let page = folder().join("../docs/operate.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let unit = folder().join("systemd/threadgraph.service");
    let unit = std::fs::read_to_string(unit).expect("the unit");
    assert!(page.contains(&format!("```ini\n{unit}```")));
}

/// The script that makes the image holds the program and the archive to the size that the page says.
#[test]
fn the_image_is_held_to_the_size_that_the_page_says() {
    let read = |path: &str| {
        let path = folder().join("..").join(path);
        std::fs::read_to_string(path).expect("a file")
    };
    let (script, page) = (read("scripts/image.sh"), read("docs/deploy.md"));
    assert!(script.contains("\nmost=50000000\n"));
    assert!(page.contains("50,000,000 bytes"));
    for file in ["$built/threadgraph", "$stage/image.tar"] {
        let held = format!("\nsmall_enough \"{file}\" ");
        assert!(script.contains(&held), "{file}");
    }
}

/// The image runs as the user of the manifests, has their ports, and settings that are theirs.
#[test]
fn the_image_is_what_the_manifests_start() {
    let file = folder().join("container/Containerfile");
    let file = std::fs::read_to_string(file).expect("the file");
    let (user, door, report) = (pod::USER, pod::DOOR, pod::REPORT);
    for line in [
        "FROM scratch".to_owned(),
        format!("COPY --chown={user}:{user} data /data"),
        format!("USER {user}:{user}"),
        "VOLUME /data".to_owned(),
        format!("EXPOSE {door} {report}"),
    ] {
        assert!(file.lines().any(|one| one == line), "{line}");
    }
    let files = files();
    let common = &files["k8s/base/common.yaml"];
    let is_ours = |word: &&str| word.starts_with("THREADGRAPH_");
    let settings: Vec<_> = file.split_whitespace().filter(is_ours).collect();
    assert!(settings.len() > 4, "{settings:?}");
    for setting in settings {
        let (name, value) = setting.split_once('=').expect("a setting");
        let line = format!("{name}: ");
        let of_manifests = common
            .lines()
            .find_map(|one| one.trim().strip_prefix(&line));
        let of_manifests = of_manifests.map(|value| value.trim_matches('"'));
        assert_eq!(of_manifests, Some(value), "{name}");
    }
}

/// What podman plays of the overlay `small` is its pod as it is, with its settings and its volume.
#[test]
fn the_pod_of_small_can_be_played() {
    let root = folder().join("..");
    let made = Command::new("kubectl")
        .arg("kustomize")
        .arg(folder().join("k8s/overlays/small"))
        .output()
        .expect("kubectl, as `make setup-test` brings it");
    assert!(made.status.success(), "{made:?}");
    let there = tempfile::tempdir().expect("a folder");
    let manifests = there.path().join("manifests.yaml");
    std::fs::write(&manifests, made.stdout).expect("a file");
    let ran = Command::new(root.join(".cache/kubernetes/bin/python"))
        .arg(root.join("tests/integration/clients/played_manifests.py"))
        .stdin(std::fs::File::open(&manifests).expect("the file"))
        .output()
        .expect("Python, as `make setup-test` brings it");
    let played = String::from_utf8_lossy(&ran.stdout);
    let version = env!("CARGO_PKG_VERSION");
    assert!(ran.status.success(), "{ran:?}");
    for part in [
        "kind: ConfigMap",
        "kind: PersistentVolumeClaim",
        "kind: Deployment",
        "claimName: data",
        "readOnlyRootFilesystem: true",
        &format!("image: {}:{version}", pod::NAME),
        &format!("runAsUser: {}", pod::USER),
    ] {
        assert!(played.contains(part), "{part}: {played}");
    }
    // It knows none of these.
    for part in [
        "StatefulSet",
        "Probe",
        "volumeClaimTemplates",
        "podManagementPolicy",
        "lifecycle",
    ] {
        assert!(!played.contains(part), "{part}: {played}");
    }
}

/// `systemd` understands each line of the units, where this machine has it. The program of the units is not installed here.
#[test]
fn the_units_are_understood() {
    let there = tempfile::tempdir().expect("a folder");
    for (unit, instance) in [
        ("threadgraph.service", "threadgraph.service"),
        ("threadgraph@.service", "threadgraph@gateway.service"),
    ] {
        let text = std::fs::read_to_string(folder().join("systemd").join(unit));
        let text = text.expect("the unit");
        let text = text.replace("=/usr/local/bin/threadgraph ", "=/bin/true ");
        std::fs::write(there.path().join(unit), text).expect("a file");
        let ran = Command::new("systemd-analyze")
            .arg("verify")
            .arg(there.path().join(instance))
            .output();
        let Ok(ran) = ran else {
            println!("{unit}: not verified, there is no systemd-analyze");
            continue;
        };
        let told = String::from_utf8_lossy(&ran.stderr);
        // What it does not know, it tells and ignores; it also tells of units of this machine.
        let is_ours = told.lines().any(|line| line.contains("threadgraph"));
        assert!(ran.status.success() && !is_ours, "{unit}: {told}");
    }
}

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

/// The rules are the ones of the page, and more; Prometheus takes them, and they fire when they should.
#[test]
fn alerts_are_rules_that_prometheus_takes() {
    let page = std::fs::read_to_string(folder().join("../docs/operate.md")).expect("the page");
    let alerts = std::fs::read_to_string(folder().join("monitoring/alerts.yaml")).expect("rules");
    for name in page
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
    {
        assert!(alerts.contains(&format!("alert: {name}\n")), "{name}");
    }
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("rules.yaml"), &alerts).expect("a file");
    std::fs::write(dir.path().join("tests.yaml"), SERIES).expect("a file");
    for what in [
        ["check", "rules", "rules.yaml"],
        ["test", "rules", "tests.yaml"],
    ] {
        let ran = Command::new(folder().join("../.cache/promtool/usr/bin/promtool"))
            .args(what)
            .current_dir(dir.path())
            .output()
            .expect("promtool, as `make setup-test` brings it");
        let told = String::from_utf8_lossy(&ran.stdout);
        assert!(
            ran.status.success(),
            "{told}{}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }
}

/// Series by the minute, and whether the rules that the page does not show fire.
const SERIES: &str = r#"
rule_files: [rules.yaml]
evaluation_interval: 1m
tests:
  - name: all is well
    interval: 1m
    input_series:
      - {series: 'up{job="threadgraph",instance="a"}', values: '1x30'}
      - {series: 'tg_disk_free_bytes', values: '9e9x30'}
      - {series: 'tg_dead_letter_quotas_full', values: '0x30'}
      - {series: 'tg_purging_refused{store="graph"}', values: '0x30'}
    alert_rule_test:
      - {alertname: ThreadgraphProcessAway, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphDiskFills, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphDeadLetterRoomFull, eval_time: 30m, exp_alerts: []}
      - {alertname: ThreadgraphPurgingRefused, eval_time: 30m, exp_alerts: []}
  - name: a process is away and the disk of another fills
    interval: 1m
    input_series:
      - {series: 'up{job="threadgraph-services",instance="a"}', values: '1x20 0x10'}
      - {series: 'up{job="other",instance="b"}', values: '0x30'}
      - {series: 'tg_disk_free_bytes', values: '9e9x20 1e6x10'}
    alert_rule_test:
      - alertname: ThreadgraphProcessAway
        eval_time: 30m
        exp_alerts:
          - exp_labels: {job: threadgraph-services, instance: a}
            exp_annotations: {summary: "A process does not report: look at its log."}
      - {alertname: ThreadgraphDiskFills, eval_time: 22m, exp_alerts: []}
      - alertname: ThreadgraphDiskFills
        eval_time: 30m
        exp_alerts:
          - exp_annotations:
              summary: "Make room below data_dir. With less than 4 MiB the process is not ready and writes fail."
"#;

/// Strict, for each version; kinds of operators have no schema here and are named as unchecked. Also holds that each service is
/// there, that a store has one owner, and that no secret is in a manifest.
#[test]
fn overlays_are_valid_for_each_version_of_kubernetes() {
    let root = folder().join("..");
    let python = root.join(".cache/kubernetes/bin/python");
    let single = DEPLOYED
        .iter()
        .filter(|one| one.is_single())
        .map(|one| one.name);
    let workers = DEPLOYED
        .iter()
        .filter(|one| !one.is_single())
        .map(|one| one.name);
    let ran = Command::new(&python)
        .arg(root.join("scripts/manifests.py"))
        .arg(format!("--versions={}", VERSIONS.join(",")))
        .arg(format!("--single={}", single.collect::<Vec<_>>().join(",")))
        .arg(format!(
            "--workers={}",
            workers.collect::<Vec<_>>().join(",")
        ))
        .output()
        .expect("the validator, as `make setup-test` brings it");
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    for overlay in ["small", "standard", "production"] {
        for version in VERSIONS {
            assert!(told.contains(&format!("{overlay} {version}: ")), "{told}");
        }
    }
}

/// The validator finds what it is there for.
#[test]
fn the_validator_refuses_what_it_should() {
    let root = folder().join("..");
    let ran = Command::new(root.join(".cache/kubernetes/bin/python"))
        .arg(root.join("scripts/manifests.py"))
        .arg("--self-test")
        .output()
        .expect("the validator, as `make setup-test` brings it");
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(
        ran.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
