//! docs/operate.md, as somebody follows it: its blocks are run, its settings are read, its exit codes are those of the program.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use tg_schemas::ErrorCode;
use tg_testkit::process::{bin_dir, root};
use tokio::process::Command;

use crate::pasted::{self, Told};

fn page() -> Result<String> {
    Ok(std::fs::read_to_string(root().join("docs/operate.md"))?)
}

#[tokio::test]
async fn its_blocks_work_when_pasted() -> Result<()> {
    let _busy = crate::world::busy().await;
    let lines = pasted::blocks(&page()?, "sh").concat();
    ensure!(lines.matches("threadgraph up &").count() >= 4, "{lines}");
    let folder = tempfile::tempdir()?;
    let backup = folder.path().join("backup");
    let documents = Path::new("demo/documents/uncommon-clocks.pdf");
    let env: [(&str, &Path); 2] = [("BACKUP", &backup), ("DOCUMENTS", documents)];
    let Told { stdout, stderr } = pasted::run(&lines, folder.path(), &env).await?;
    for wanted in [
        "1 added.",
        "The system is healthy.",
        "uncommon-clocks",
        "tg_model_up 1",
        "tg_dead_letters{reason=\"dead\"} 0",
        "Nothing waits",
    ] {
        ensure!(
            stdout.contains(wanted),
            "{wanted:?} is not in\n{stdout}\n{stderr}"
        );
    }
    let healthy = stdout.matches("The system is healthy.").count();
    ensure!(healthy == 4, "{healthy} starts\n{stdout}\n{stderr}");
    for file in ["data.tgz", "default.tgx", "before-upgrade.tgz"] {
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
    let [settings] = &pasted::blocks(&page, "toml")[..] else {
        anyhow::bail!("one block of settings");
    };
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
