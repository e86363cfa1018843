//! What must hold of the generated files, and of what `kubectl kustomize` makes of them.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tg_server::deployed::DEPLOYED;
use tg_server::settings::{Flags, Settings};

use crate::all::{files, folder};
use crate::{pod, production};

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

/// What a machine lacks for an image is named at once, in one line, before anything is built.
#[test]
fn the_image_names_all_that_is_missing_at_once() {
    let there = tempfile::tempdir().expect("a folder");
    let path = there.path().join("bin");
    std::fs::create_dir(&path).expect("a folder");
    let add = |name: &str, program: &str| {
        symlink(format!("/usr/bin/{program}"), path.join(name)).expect("a link");
    };
    for program in ["dirname", "head", "sed", "tr", "uname"] {
        add(program, program);
    }
    let authorities = there.path().join("authorities");
    let needs = || {
        let ran = Command::new("/bin/bash")
            .arg(folder().join("../scripts/image.sh"))
            .arg("needs")
            .env_clear()
            .env("PATH", &path)
            .env("CA_CERTIFICATES", &authorities)
            .output()
            .expect("bash");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        (ran.status.code(), said)
    };
    let (code, said) = needs();
    assert_eq!((code, said.lines().count()), (Some(1), 1), "{said}");
    let lacks = [
        "buildah or podman",
        "authorities",
        "rustup",
        "readelf",
        "musl-gcc",
    ];
    for part in lacks {
        assert!(said.contains(part), "{part}: {said}");
    }
    std::fs::write(&authorities, "").expect("a file");
    for program in ["musl-gcc", "readelf", "rustup"] {
        add(program, "true");
    }
    let (code, said) = needs();
    let alone = "image: this machine lacks buildah or podman\n";
    assert_eq!((code, said.as_str()), (Some(1), alone));
    add("podman", "true");
    assert_eq!(needs(), (Some(0), String::new()));
}

/// The page makes an address of the broker and a user there for each service there is.
#[test]
fn the_page_makes_an_address_and_a_user_for_each_service() {
    let page = folder().join("../docs/deploy.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let names: Vec<_> = DEPLOYED.iter().map(|one| one.name).collect();
    let each = format!("\nfor service in {}; do\n", names.join(" "));
    assert_eq!(page.matches(&each).count(), 2, "{each}");
}

/// Newer brokers refuse the transient queues of a cluster and of interop mode, unless they are configured to permit them: whoever sets
/// one up by this page and manifest has that.
#[test]
fn clusters_permit_the_queues_of_questions() {
    let read = |path: &str| {
        let path = folder().join("..").join(path);
        std::fs::read_to_string(path).expect("a file")
    };
    for path in [
        "docs/operate.md",
        "deploy/k8s/overlays/production/broker.yaml",
    ] {
        assert!(read(path).contains(production::PERMITS), "{path}");
    }
}

/// Podman guesses no registry and knows no owner of a directory in memory; Docker does both. And no secret is in the file.
#[test]
fn compose_says_what_podman_reads_as_well() {
    let files = files();
    let text = &files["compose.yaml"];
    let mut images = 0;
    for line in text.lines().map(str::trim) {
        if let Some(image) = line.strip_prefix("image: ") {
            images += 1;
            let image = image.trim_matches('"');
            let ours = format!("{}:{}", pod::NAME, env!("CARGO_PKG_VERSION"));
            let registry = image.split('/').next().unwrap_or_default();
            assert!(image == ours || registry.contains('.'), "{image}");
        }
        if let Some(memory) = line.strip_prefix("- \"/data:") {
            assert_eq!(memory, "mode=1777\"");
        }
        assert!(!line.contains("://"), "{line}");
    }
    assert_eq!(images, DEPLOYED.len() + 2);
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

/// What podman plays of an overlay.
fn played(overlay: &str, arguments: &[&Path]) -> String {
    let root = folder().join("..");
    let made = Command::new("kubectl")
        .arg("kustomize")
        .arg(folder().join("k8s/overlays").join(overlay))
        .output()
        .expect("kubectl, as `make setup-test` brings it");
    assert!(made.status.success(), "{made:?}");
    let there = tempfile::tempdir().expect("a folder");
    let manifests = there.path().join("manifests.yaml");
    std::fs::write(&manifests, made.stdout).expect("a file");
    let ran = Command::new(root.join(".cache/kubernetes/bin/python"))
        .arg(root.join("tests/integration/clients/played_manifests.py"))
        .args(arguments)
        .stdin(std::fs::File::open(&manifests).expect("the file"))
        .output()
        .expect("Python, as `make setup-test` brings it");
    assert!(ran.status.success(), "{ran:?}");
    let played = String::from_utf8_lossy(&ran.stdout).into_owned();
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
    played
}

/// What podman plays of the overlay `small` is its pod as it is, with its settings and its volume.
#[test]
fn the_pod_of_small_can_be_played() {
    let played = played("small", &[]);
    let version = env!("CARGO_PKG_VERSION");
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
}

/// What podman plays of the overlay `standard` is one pod of each service, with a volume of its own for each that keeps something, and
/// the broker's address by reference.
#[test]
fn the_pods_of_standard_can_be_played() {
    let there = tempfile::tempdir().expect("a folder");
    let file = there.path().join("secret.json");
    let played = played("standard", &[Path::new("amqp://broker/"), file.as_path()]);
    let secret = std::fs::read_to_string(&file).expect("the secret");
    assert!(!played.contains("amqp://"), "{played}");
    let count = |line: &str| played.lines().filter(|one| one.trim() == line).count();
    assert_eq!(count("kind: Deployment"), DEPLOYED.len());
    assert_eq!(count("replicas: 1"), DEPLOYED.len());
    for port in 9101..9101 + DEPLOYED.len() {
        assert_eq!(count(&format!("value: 127.0.0.1:{port}")), 1, "{played}");
    }
    for one in DEPLOYED {
        let name = one.name;
        assert_eq!(
            count(&format!("claimName: data-{name}")),
            usize::from(one.is_single())
        );
        // The volume, and where it is mounted.
        assert_eq!(count(&format!("name: tmp-{name}")), 2, "{played}");
        // "amqp://broker/", as a secret has it.
        assert!(
            secret.contains(&format!("\"{name}\": \"YW1xcDovL2Jyb2tlci8=\"")),
            "{secret}"
        );
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

/// A system call that the filter does not know fails, and ends no program: runtimes of tools try newer ones and fall back. And a
/// unit tries again for as long as what it needs is away.
#[test]
fn the_units_end_nothing_and_give_up_nothing() {
    let read = |unit: &str| {
        let unit = folder().join("systemd").join(unit);
        std::fs::read_to_string(unit).expect("the unit")
    };
    let (one, each) = (read("threadgraph.service"), read("threadgraph@.service"));
    for unit in [&one, &each] {
        for line in [
            "SystemCallFilter=@system-service",
            "SystemCallErrorNumber=EPERM",
            "StartLimitIntervalSec=0",
            "RestartSec=5",
            "RestartPreventExitStatus=2",
        ] {
            assert!(unit.lines().any(|one| one == line), "{line}: {unit}");
        }
    }
    // Whatever bounds the one bounds the other.
    let bounds = |unit: &str| {
        let (_, bounds) = unit.split_once("\nStateDirectory=").expect("a directory");
        bounds.to_owned()
    };
    assert_eq!(bounds(&one), bounds(&each));
}

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

/// An overlay that takes in the component has the setting in what its pods read, and nothing else that is new.
#[test]
fn a_component_sets_users_of_their_own() {
    let setting = "THREADGRAPH_BROKER__OWN_USERS";
    let env = [(setting.to_owned(), "true".to_owned())];
    let settings = Settings::load(&Flags::default(), env.into_iter().collect());
    assert!(settings.expect("a setting").broker.own_users);
    let made = |folder: &Path| {
        let made = Command::new("kubectl")
            .arg("kustomize")
            .arg(folder)
            .output()
            .expect("kubectl, as `make setup-test` brings it");
        assert!(made.status.success(), "{made:?}");
        String::from_utf8(made.stdout).expect("a text")
    };
    // It refuses absolute paths.
    let there = tempfile::tempdir().expect("a folder");
    let from = there.path().canonicalize().expect("a folder");
    let up = "../".repeat(from.components().count() - 1);
    let deploy = folder().canonicalize().expect("deploy/");
    let deploy = deploy.display().to_string();
    let k8s = format!("{up}{}/k8s", deploy.trim_start_matches('/'));
    for overlay in ["standard", "production"] {
        let text = format!(
            "resources: ['{k8s}/overlays/{overlay}']\ncomponents: ['{k8s}/components/own-users']\n"
        );
        std::fs::write(there.path().join("kustomization.yaml"), text).expect("a file");
        let with = made(&from);
        let without = made(&folder().join("k8s/overlays").join(overlay));
        let line = format!("  {setting}: \"true\"\n");
        assert_eq!(with.matches(&line).count(), 1, "{with}");
        assert_eq!(with.replace(&line, ""), without, "{overlay}");
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
