//! What a container asks for of memory and may have, from what was measured of each service (`deploy/memory.txt`).

use std::fmt::Write;
use std::process::Command;

use tg_server::deployed::DEPLOYED;

use crate::all::folder;

/// The most that each service had resident, in MB; `all` is one process with every service.
const MEASURED: &str = include_str!("../../../deploy/memory.txt");
/// How the file begins that `scripts/measured-memory.py` writes.
const BY_BENCH: &str = "# Written by scripts/measured-memory.py";
/// Head of the table on the page about operation.
const HEAD: &str =
    "| service | most resident (MB) | request (MiB) | limit (MiB) |\n|---|---|---|---|\n";

/// Memory of a container, in MiB.
pub struct Memory {
    /// It asks for so much.
    pub request: u64,
    /// It is killed beyond that.
    pub limit: u64,
    /// Settings that raise a store's share, as it has a container of its own.
    pub shares: &'static [(&'static str, u64)],
}

/// The most that a service had resident, in MB.
fn measured(service: &str) -> u64 {
    let name = if service == "up" { "all" } else { service };
    let figure = MEASURED.lines().find_map(|line| {
        let (service, megabytes) = line.split_once(' ')?;
        (service == name).then_some(megabytes)
    });
    let figure = figure.unwrap_or_else(|| panic!("deploy/memory.txt has no {name}"));
    figure.parse().expect("a number of MB")
}

/// What a container asks for, in MiB: half as much again as the most that was resident. Figures that no bench wrote are of a build
/// that does not ship and kept little: they lower no request below the one from before them.
fn request(most: u64, before: u64, by_bench: bool) -> u64 {
    let measured = (most * 3).div_ceil(2).next_multiple_of(16);
    if by_bench {
        measured
    } else {
        measured.max(before)
    }
}

/// What a service needs. A store that has a container of its own may have more than its share of a common one. No limit is so low
/// that the shares of its settings, or the configuration of a few workspaces, do not fit.
pub fn memory(service: &str) -> Memory {
    let (before, least, shares): (u64, u64, &'static [(&'static str, u64)]) = match service {
        "graph" => (
            512,
            4096,
            &[
                ("GRAPH__MEMORY_MB", 2560),
                ("GRAPH__QUERIES_MEMORY_MB", 512),
            ],
        ),
        "vectors" => (256, 2048, &[("VECTORS__MEMORY_MB", 1024)]),
        "ingest" => (256, 2048, &[("INGEST__MEMORY_MB", 1024)]),
        "gateway" | "agent" | "config" | "librarian" => (0, 1024, &[]),
        "up" => (512, 4096, &[]),
        _ => (0, 512, &[]),
    };
    let most = (measured(service) * 1_000_000).div_ceil(1 << 20);
    let with_shares = most + shares.iter().map(|(_, mib)| mib).sum::<u64>();
    Memory {
        request: request(most, before, MEASURED.starts_with(BY_BENCH)),
        limit: least.max(2 * most).max(with_shares).next_multiple_of(256),
        shares,
    }
}

/// The rows of the table on the page.
fn rows() -> String {
    let mut rows = String::new();
    for service in DEPLOYED.iter().map(|one| one.name).chain(["up"]) {
        let Memory { request, limit, .. } = memory(service);
        let most = measured(service);
        writeln!(rows, "| `{service}` | {most} | {request} | {limit} |").expect("a row");
    }
    rows
}

/// The page shows what was measured of each service, and what the manifests make of it. `UPDATE=1` writes the table.
#[test]
fn the_page_shows_what_was_measured() {
    let path = folder().join("../docs/operate.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(HEAD).expect("the table");
    let (shown, after) = rest.split_once("\n\n").expect("text below the table");
    if std::env::var_os("UPDATE").is_some() {
        let page = format!("{before}{HEAD}{}\n{after}", rows());
        std::fs::write(&path, page).expect("a page");
        return;
    }
    let again = "run UPDATE=1 cargo test -p tg-server --test deploy";
    assert_eq!(format!("{shown}\n"), rows(), "docs/operate.md: {again}");
}

/// Each service was measured, and nothing else is in the file.
#[test]
fn each_service_was_measured() {
    let lines = MEASURED.lines().filter(|line| !line.starts_with('#'));
    let mut there: Vec<_> = lines.filter_map(|line| line.split(' ').next()).collect();
    let mut wanted: Vec<_> = DEPLOYED.iter().map(|one| one.name).collect();
    wanted.push("all");
    there.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(there, wanted);
}

/// Figures that no bench wrote raise a request, and lower none.
#[test]
fn only_a_bench_lowers_a_request() {
    assert_eq!(request(80, 512, false), 512);
    assert_eq!(request(400, 512, false), 608);
    assert_eq!(request(80, 512, true), 128);
}

/// The script reads what the bench prints, takes the larger figure of two systems, and refuses a text without figures.
#[test]
fn the_figures_are_read_as_the_bench_prints_them() {
    let there = tempfile::tempdir().expect("a folder");
    let kept = there.path().join("kept.txt");
    let read = |text: &str| {
        std::fs::write(&kept, text).expect("a file");
        let ran = Command::new("python3")
            .arg("-B")
            .arg(folder().join("../scripts/measured-memory.py"))
            .arg(&kept)
            .output()
            .expect("Python");
        let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
        ran.status.success().then_some(printed)
    };
    let head = "\n\u{1b}[1mCommit abc, the build that ships\u{1b}[0m\n30 November; 2 cores\n";
    let line = "  most resident memory under load of each, MB: ";
    let whole = format!("{head}{line}all 180.2\n{line}all 99.0\n{line}gateway 30.1, iam 9.0\n");
    let printed = read(&whole).expect("figures");
    assert!(printed.starts_with(BY_BENCH), "{printed}");
    let (comments, figures): (Vec<_>, Vec<_>) =
        printed.lines().partition(|line| line.starts_with('#'));
    assert!(comments.contains(&"# Commit abc, the build that ships"));
    assert!(comments.contains(&"# 30 November; 2 cores"));
    assert_eq!(figures, ["all 181", "gateway 31", "iam 9"]);
    assert_eq!(read(head), None);
    assert_eq!(read(&format!("{head}{line}all 180.2\n")), None);
    // The line is the bench's own.
    let bench = folder().join("../tests/integration/examples/bench");
    let read = |name: &str| std::fs::read_to_string(bench.join(name)).expect("the bench");
    assert!(read("main.rs").contains("(\"VmHWM\", \"most resident memory under load\")"));
    assert!(read("system.rs").contains("\"  {what} of each, MB: {}\""));
}
