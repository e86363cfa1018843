//! The blocks of the README and of `docs/use.md`, as somebody pastes them, with the built programs, a port and directories
//! of its own. What builds is not run again: whoever runs the tests has built.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tg_testkit::model::{Reply, Rule, ScriptedModel, final_answer};
use tg_testkit::process::{bin_dir, root};

use crate::pasted::{self, Output};

fn readme() -> Result<String> {
    Ok(std::fs::read_to_string(root().join("README.md"))?)
}

/// The page that follows the first session.
fn use_it() -> Result<String> {
    Ok(std::fs::read_to_string(root().join("docs/use.md"))?)
}

/// Lines without the first ones, which build and say where what was built is.
fn built(block: &str, lines: &[&str]) -> Result<String> {
    let mut rest = block;
    for wanted in lines {
        let (line, below) = rest.split_once('\n').context("lines")?;
        ensure!(line.starts_with(wanted), "{line}");
        rest = below;
    }
    Ok(rest.to_owned())
}

fn holds(told: &str, wanted: &[&str], all: &Output) -> Result<()> {
    for wanted in wanted {
        ensure!(
            told.contains(wanted),
            "{wanted:?} is not in\n{}\n{}",
            all.stdout,
            all.stderr
        );
    }
    Ok(())
}

/// The first session, and what follows it: a document and a model of one's own.
#[tokio::test]
async fn the_first_session_works_when_pasted() -> Result<()> {
    let blocks = pasted::blocks(&readme()?, "sh");
    let [first, own, ..] = &blocks[..] else {
        anyhow::bail!("two blocks");
    };
    let first = built(
        first,
        &["make console", "cargo build --locked", "export PATH="],
    )?;
    let count = first.lines().chain(own.lines()).count();
    ensure!(count <= 11, "{count} lines are no short session");
    let model = ScriptedModel::start(vec![Rule::always(Reply::text(final_answer(
        "I was asked what it concludes.",
        "The paper concludes that clocks differ.",
    )))])
    .await?;
    let (address, name) = ("http://127.0.0.1:8000/v1", "OPENAI_MODEL=qwen3-8b");
    ensure!(own.contains(address) && own.contains(name), "{own}");
    let own = own
        .replace(address, &model.url())
        .replace(name, "OPENAI_MODEL=scripted");
    let folder = tempfile::tempdir()?;
    let documents = folder.path().join("Documents");
    std::fs::create_dir(&documents)?;
    let paper = root().join("demo/documents/uncommon-clocks.pdf");
    std::fs::copy(paper, documents.join("paper.pdf"))?;
    let told = pasted::run(&format!("{first}{own}"), folder.path(), &[]).await?;
    let wanted = [
        "The system is healthy.",
        "added as ",
        "Gaurishankar [1].",
        "[1] uncommon-clocks.pdf, page 1:",
        "supported by [1]",
        "Flow default: nothing is waiting and all processors are running.",
        "clocks differ.",
    ];
    holds(&told.stdout, &wanted, &told)?;
    let ready = told.stderr.matches("Threadgraph is ready at").count();
    ensure!(ready == 2, "{}", told.stderr);
    holds(&told.stderr, &[model.url().as_str(), " links hold."], &told)?;
    ensure!(model.count() > 0, "the model was asked");
    Ok(())
}

/// What follows: the way to the build that ships, and the models of several vendors, each as its line says.
#[tokio::test]
async fn each_further_block_does_what_it_says() -> Result<()> {
    let blocks = pasted::blocks(&use_it()?, "sh");
    let [_, models] = &blocks[..] else {
        anyhow::bail!("two blocks");
    };
    let folder = tempfile::tempdir()?;
    // What stands for a key or a name is put in; the settings are read and not served.
    let shown = "threadgraph settings --json";
    let settings = models.replace("=…", "=mine");
    let settings = settings.replace("target/dist/threadgraph up", shown);
    let wanted = [
        [("provider", "openai"), ("model", "gpt-4.1-mini")],
        [("provider", "openai"), ("url", "http://127.0.0.1:8000/v1")],
        [("provider", "ollama"), ("model", "llama3.2")],
        [("provider", "anthropic"), ("model", "claude-sonnet-4-5")],
    ];
    ensure!(settings.lines().count() == wanted.len(), "{settings}");
    for (line, wanted) in settings.lines().zip(wanted) {
        let told = pasted::run(line, folder.path(), &[]).await?;
        is_told(&told.stdout, &wanted).with_context(|| line.to_owned())?;
    }

    let [file] = &pasted::blocks(&use_it()?, "toml")[..] else {
        anyhow::bail!("one block of settings");
    };
    std::fs::write(folder.path().join("threadgraph.toml"), file)?;
    let line = format!(
        "threadgraph settings --json --config {}/threadgraph.toml",
        folder.path().display()
    );
    let told = pasted::run(&line, folder.path(), &[]).await?;
    let wanted = [
        ("provider", "openai"),
        ("url", "http://127.0.0.1:8000/v1"),
        ("model", "qwen3-8b"),
    ];
    is_told(&told.stdout, &wanted)
}

/// Whether settings of the language model are told with these values.
fn is_told(told: &str, wanted: &[(&str, &str)]) -> Result<()> {
    let told: Vec<Value> = serde_json::from_str(told).with_context(|| told.to_owned())?;
    for (name, value) in wanted {
        let name = format!("llm.{name}");
        let row = told.iter().find(|row| row["name"] == name.as_str());
        let row = row.with_context(|| name.clone())?;
        ensure!(row["value"] == *value, "{row}");
    }
    Ok(())
}

/// `make release` makes what ships with the page in it, and its programs are linked where `docs/use.md` says.
#[tokio::test]
async fn the_build_that_ships_has_the_page() -> Result<()> {
    let readme = readme()?;
    let blocks = pasted::blocks(&use_it()?, "sh");
    let block = blocks.first().context("a block")?;
    let lines = built(block, &["make release ", "target/dist/tg links ~/bin "])?;
    ensure!(lines.starts_with("target/dist/threadgraph up "), "{lines}");

    let makefile = std::fs::read_to_string(root().join("Makefile"))?;
    let recipe = "\nrelease: console\n\t@$(SHIP) cargo build --profile dist -p tg-server -p tg-cli --locked\n";
    ensure!(makefile.contains(recipe), "{makefile}");
    for target in ["demo", "demo-rabbitmq", "test", "release"] {
        ensure!(readme.contains(&format!("make {target}")), "{target}");
        ensure!(makefile.contains(&format!("\n{target}: ")), "{target}");
    }

    let folder = tempfile::tempdir()?;
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin)?;
    let links = format!("{}/tg links ~/bin", bin_dir()?.display());
    pasted::run(&links, folder.path(), &[]).await?;
    for name in ["tg", "tg-add", "tg-ask", "tg-show-flows", "tg-load-turtle"] {
        ensure!(Path::new(&bin).join(name).exists(), "{name}");
    }
    Ok(())
}
