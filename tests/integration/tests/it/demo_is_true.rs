//! `make demo` and `make demo-rabbitmq`, with the programs that are built: they work, and print what `docs/demo.md` shows.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tg_testkit::process::{bin_dir, root};
use tokio::process::Command;

use crate::pasted;

/// It takes seconds; after this long, on a machine however busy, it is ended with all that it started.
const BOUND: &str = "400";
/// The line of the page that stands for lines left out.
const LEFT_OUT: &str = "…";

async fn demo(kind: &str) -> Result<Vec<String>> {
    let target = bin_dir()?;
    let target = target.parent().context("the target folder")?.to_owned();
    let mut command = Command::new("timeout");
    for (name, _) in std::env::vars() {
        let providers = ["OPENAI", "ANTHROPIC", "OLLAMA", "THREADGRAPH", "TRUSTGRAPH"];
        if providers.iter().any(|provider| name.starts_with(provider)) {
            command.env_remove(name);
        }
    }
    let output = command
        // What is said to people stands between what is data, as at a terminal.
        .args(["-k", "20", BOUND, "bash", "-c", "exec \"$0\" \"$@\" 2>&1"])
        .arg(root().join("scripts/demo.sh"))
        .arg(kind)
        .env("CARGO_TARGET_DIR", target)
        .env("DEMO_AS_BUILT", "yes")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{:?}\n{said}", output.status);
    Ok(without_signs_of_life(said.lines().map(masked)))
}

/// Without what a command says while it waits: the slower the machine, the more often it does.
fn without_signs_of_life(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut waits = false;
    let told = |line: &String| {
        waits &= !line.starts_with(['+', '$']);
        let is_told = !waits;
        waits |= line.starts_with('$') && line.ends_with("--wait");
        is_told
    };
    lines.filter(told).collect()
}

/// A line without what differs from run to run: ids, times, the port; and without colour.
fn masked(line: &str) -> String {
    let plain = line.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
    let parts = plain.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || "-:.".contains(c)));
    let mask = |part: &str| {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let rest = &part[word.len()..];
        match known(word) {
            Some((kept, name)) => format!("{kept}<{name}>{rest}"),
            None => part.to_owned(),
        }
    };
    let line: String = parts.map(mask).collect();
    line.trim_end().to_owned()
}

/// What a word is that differs, and what of it stays.
fn known(word: &str) -> Option<(&str, &'static str)> {
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
    if let Some((kept, port)) = word.rsplit_once(':')
        && kept == "127.0.0.1"
        && digits(port) == port.len()
    {
        return Some(("127.0.0.1:", "port"));
    }
    let id = word.rsplit(':').next().unwrap_or(word);
    let dashes: Vec<usize> = id.split('-').map(str::len).collect();
    if dashes == [8, 4, 4, 4, 12] {
        return Some((&word[..word.len() - id.len()], "id"));
    }
    let clock = word.split(':').count() == 3 && digits(word) >= 6;
    let day = word.len() == 10 && digits(word) == 8 && word.split('-').count() == 3;
    (clock || day).then_some(("", "time"))
}

/// The parts of the page between what it leaves out.
fn parts(page: &str) -> Vec<Vec<String>> {
    let mut parts = vec![Vec::new()];
    for line in page.lines() {
        match (line == LEFT_OUT, parts.last_mut()) {
            (false, Some(part)) => part.push(masked(line)),
            _ => parts.push(Vec::new()),
        }
    }
    parts
}

/// Holds each part of the page against what was printed, in their order; what follows the last.
fn after<'a>(parts: &[Vec<String>], printed: &'a [String]) -> Result<&'a [String]> {
    let mut rest = printed;
    for part in parts {
        let at = rest.windows(part.len()).position(|lines| lines == part);
        let Some(at) = at else {
            anyhow::bail!("not printed as shown: {part:#?}\nprinted: {rest:#?}");
        };
        rest = &rest[at + part.len()..];
    }
    Ok(rest)
}

/// The numbers of a row of the receipt.
fn numbers(line: &str) -> Vec<u64> {
    let cells = line.split('|').filter_map(|cell| cell.trim().parse().ok());
    cells.collect()
}

/// What the page shows of the demo, and of its end.
fn page() -> Result<(String, String)> {
    let page = std::fs::read_to_string(root().join("docs/demo.md"))?;
    match &pasted::blocks(&page, "console")[..] {
        [shown, receipt] => Ok((shown.clone(), receipt.clone())),
        _ => anyhow::bail!("two blocks: all but the receipt, and one of those"),
    }
}

/// Which of them were finished when it stopped differs from run to run; that some were waiting does not.
fn is_receipt(told: &[String]) -> Result<()> {
    let heads = [
        "subscription",
        "sent",
        "answered",
        "finished",
        "parked",
        "discarded",
    ];
    let all = told.join("\n");
    let has = |head: &str| told.iter().any(|line| line.contains(head));
    ensure!(heads.iter().all(|head| has(head)), "no receipt: {all}");
    let total = told.iter().find(|line| line.contains("| total"));
    let total = numbers(total.with_context(|| all.clone())?);
    let [sent, answered, ended @ ..] = &total[..] else {
        anyhow::bail!("no total: {all}");
    };
    ensure!(ended.len() == 3 && ended.iter().sum::<u64>() > 0, "{all}");
    ensure!(*answered > 0, "{all}");
    ensure!(*sent == answered + ended.iter().sum::<u64>(), "{all}");
    for line in ["Receipt of flow default", "Flow default is stopped."] {
        ensure!(told.iter().any(|one| one == line), "{line}: {all}");
    }
    let removed = told
        .iter()
        .find(|line| line.starts_with("Queues removed: "));
    ensure!(removed.is_some_and(|line| !line.contains(": 0")), "{all}");
    Ok(())
}

#[tokio::test]
async fn on_embedded_defaults() -> Result<()> {
    let (shown, receipt) = page()?;
    let printed = demo("embedded").await?;
    is_receipt(after(&parts(&shown), &printed)?)?;
    is_receipt(&receipt.lines().map(masked).collect::<Vec<_>>())
}

/// A process for each service: all from the dataset on is the same, and the broker's queues are shown before the end.
#[tokio::test]
async fn over_rabbitmq() -> Result<()> {
    const QUEUES: &str = "The queues as the broker sees them";
    const STOP: &str = "Stopping the flow while a longer text is processed";
    let (shown, _) = page()?;
    let begin = shown.find("Loading a dataset");
    let shown = &shown[begin.context("the page loads a dataset")?..];
    let mut printed = demo("rabbitmq").await?;
    let at = |line: &str| printed.iter().position(|one| one == line);
    let (from, to) = (at(QUEUES).context(QUEUES)?, at(STOP).context(STOP)?);
    let queues: Vec<String> = printed.drain(from..to).collect();
    for queue in [
        "request.agent:default:default.agent-manager",
        "request.document-rag:default:default.document-rag",
        "request.librarian:default.librarian",
        "request.config",
    ] {
        let has = queues.iter().any(|line| line.contains(queue));
        ensure!(has, "{queue}: {queues:#?}");
    }
    is_receipt(after(&parts(shown), &printed)?)
}

#[test]
fn what_differs_is_masked_and_nothing_else() {
    for (line, wanted) in [
        (
            "Ready at http://127.0.0.1:8888/",
            "Ready at http://127.0.0.1:<port>/",
        ),
        (
            "urn:x:4bd88028-a83e-4534-b61a-df84f3a42eda/i1 ",
            "urn:x:<id>/i1",
        ),
        ("Time: 2026-11-22T00:56:47.742652Z", "Time: <time>"),
        (
            "| time  | 2026-11-22 10:48:06 |",
            "| time  | <time> <time> |",
        ),
        ("offset | +05:45", "offset | +05:45"),
        ("     Score: 0.725", "     Score: 0.725"),
        ("\u{1b}[1mAsking\u{1b}[0m", "Asking"),
    ] {
        assert_eq!(masked(line), wanted);
    }
    let waiting = [
        "$ tg-process --wait",
        "Clocks: 3 of 5",
        "+--+",
        "| 4 |",
        "x",
    ];
    let lines = without_signs_of_life(waiting.map(str::to_owned).into_iter());
    assert_eq!(lines, ["$ tg-process --wait", "+--+", "| 4 |", "x"]);
    let printed: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
    let shown = |page: &str| after(&parts(page), &printed).is_ok();
    assert!(shown("a\n…\nc\nd") && shown("b\nc"));
    assert!(!shown("a\nc") && !shown("c\n…\nb"));
}
