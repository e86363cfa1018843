//! docs/listeners.md, as somebody follows it: its commands are run and print what the page shows. What builds and installs is not
//! run again. Where the page waits for a second, the test waits until the listener is there.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tg_testkit::process::{bin_dir, root};

use crate::pasted::{self, Output};

/// The listeners, in the order in which the page starts them.
const NAMES: [&str; 3] = ["shouter", "greeter", "mirror"];
/// How lines begin that build, or install what the tests have.
const BUILT: [&str; 5] = [
    "scripts/install-rabbitmq.sh",
    "cargo build ",
    "export PATH=",
    "python3 -m venv ",
    "/tmp/listeners/venv/bin/pip ",
];
/// A line that waits for a listener and its row.
const WAITS: &str = "sleep 1";
/// Waits until a listener said that it listens, and the console lists it.
const READY: &str = r#"ready() {
  until grep -qx "$1 listens" "$LISTENS" && echo /listeners | tg console | grep "^$1  " > /dev/null; do
    sleep 0.2
  done
}
"#;

/// The commands of the page, with what listeners say in a file of their own.
fn commands(page: &str, folder: &Path) -> Result<String> {
    // `curl` ends its answer without a new line.
    let lines = pasted::blocks(page, "sh").join("\necho\n");
    let is_built = |line: &&str| BUILT.iter().any(|start| line.starts_with(start));
    let built = lines.lines().filter(is_built).count();
    ensure!(built == 6, "{built} lines build or install");
    let mut names = NAMES.iter();
    let mut script = format!(
        "export PATH=\"{}/examples:$PATH\"\ntouch \"$LISTENS\"\n{READY}",
        bin_dir()?.display()
    );
    for line in lines.lines().filter(|line| !is_built(line)) {
        let line = match line {
            WAITS => format!("ready {}", names.next().context("one more listener")?),
            line => line.replace("default default &", "default default >> \"$LISTENS\" &"),
        };
        script += &line;
        script.push('\n');
    }
    ensure!(names.next().is_none(), "{script}");
    let python = root().join(".cache/venv");
    Ok(script
        .replace("/tmp/listeners/venv", &python.display().to_string())
        .replace("/tmp/listeners", &folder.display().to_string())
        .replace("http://127.0.0.1:8888/", "${THREADGRAPH_URL}"))
}

/// The lines of the blocks that show what is printed.
fn shown(page: &str) -> Vec<&str> {
    let (mut all, mut language) = (Vec::new(), None);
    for line in page.lines() {
        match (line.strip_prefix("```"), language) {
            (Some(name), None) => language = Some(name),
            (Some(_), Some(_)) => language = None,
            (None, Some("")) => all.push(line),
            (None, _) => {}
        }
    }
    all
}

/// The message of an answer, without the thread, which differs.
fn message(answer: &str) -> Result<Value> {
    let mut answer: Value = serde_json::from_str(answer)?;
    let messages = answer.get_mut("messages").and_then(Value::as_array_mut);
    let messages = messages.context("no messages")?;
    let message = messages.first_mut().context("no message")?;
    let mut message = message.take();
    message["thread"] = Value::Null;
    Ok(message)
}

#[tokio::test]
async fn its_commands_print_what_it_shows() -> Result<()> {
    let page = std::fs::read_to_string(root().join("docs/listeners.md"))?;
    let folder = tempfile::tempdir()?;
    let work = folder.path().join("listeners");
    let listens = folder.path().join("listens");
    let script = commands(&page, &work)?;
    let env: [(&str, &Path); 1] = [("LISTENS", &listens)];
    let Output { stdout, stderr } = pasted::run(&script, folder.path(), &env).await?;
    let all = format!("{stdout}\n{stderr}\n{}", std::fs::read_to_string(&listens)?);
    let wanted = shown(&page);
    ensure!(wanted.len() > 10, "{wanted:?}");
    for line in wanted.into_iter().chain(["✓ The system is healthy."]) {
        ensure!(all.contains(line), "{line:?} is not in\n{all}");
    }
    let [answer] = &pasted::blocks(&page, "json")[..] else {
        anyhow::bail!("one answer");
    };
    let own = stdout.lines().find_map(|line| message(line).ok());
    let own = own.with_context(|| format!("no answer in {stdout}"))?;
    ensure!(own == message(answer)?, "{own}");
    Ok(())
}
