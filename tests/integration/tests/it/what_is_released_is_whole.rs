//! What `make release` packs is whole: programs that run, completions, manual pages, units, checksums that are right, and a list
//! of what the programs are made of.

mod alone {
    use std::path::Path;

    use anyhow::{Context, Result, ensure};
    use serde_json::Value;
    use tg_testkit::process::{bin_dir, root};
    use tokio::process::Command;

    /// What an archive has, below its one folder.
    const PARTS: [&str; 11] = [
        "threadgraph",
        "tg",
        "LICENSE",
        "CHANGELOG.md",
        "systemd/threadgraph.service",
        "systemd/threadgraph@.service",
        "completions/tg.bash",
        "completions/tg.zsh",
        "completions/tg.fish",
        "man/man1/tg.1",
        "man/man1/threadgraph.1",
    ];

    /// What a command prints, in a folder.
    async fn printed(folder: &Path, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(program);
        let ran = command.args(arguments).current_dir(folder).output().await?;
        ensure!(ran.status.success(), "{program} {arguments:?}: {ran:?}");
        Ok(String::from_utf8(ran.stdout)?)
    }

    /// Packs into a folder, with these variables.
    async fn packed(out: &Path, variables: &[(&str, &Path)]) -> Result<()> {
        // Whoever packs may have closed new files to others.
        let packed = Command::new("bash")
            .args(["-c", "umask 077 && exec \"$0\""])
            .arg(root().join("scripts/release.sh"))
            .env("OUT", out)
            .env_remove("ARCH")
            .envs(variables.iter().copied())
            .output()
            .await?;
        ensure!(packed.status.success(), "{packed:?}");
        Ok(())
    }

    #[tokio::test]
    async fn programs_of_another_processor_are_packed_beside_those_of_this_one() -> Result<()> {
        let (folder, foreign) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let out = folder.path();
        // Whatever runs them fails.
        let program = "no program of this machine";
        for name in ["threadgraph", "tg"] {
            std::fs::write(foreign.path().join(name), program)?;
        }
        let here = bin_dir()?;
        let other = [
            ("ARCH", Path::new("aarch64")),
            ("BUILT", foreign.path()),
            ("HERE", here.as_path()),
        ];
        packed(out, &other).await?;
        packed(out, &[("BUILT", here.as_path())]).await?;
        let sums = printed(out, "sha256sum", &["--check", "--strict", "SHA256SUMS"]).await?;
        ensure!(sums.lines().count() == 4, "{sums}");

        let version = env!("CARGO_PKG_VERSION");
        let name = format!("threadgraph-{version}-aarch64-linux-static");
        printed(out, "tar", &["-xzf", &format!("{name}.tar.gz")]).await?;
        for part in PARTS {
            let file = std::fs::read(out.join(&name).join(part)).context(part)?;
            ensure!(!file.is_empty(), "{part} is empty");
        }
        let packed = std::fs::read_to_string(out.join(&name).join("tg"))?;
        ensure!(packed == program, "{packed:?}");
        Ok(())
    }

    #[tokio::test]
    async fn the_archive_has_all_of_it() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let out = folder.path();
        packed(out, &[("BUILT", bin_dir()?.as_path())]).await?;
        let sums = printed(out, "sha256sum", &["--check", "--strict", "SHA256SUMS"]).await?;
        ensure!(sums.lines().count() == 2, "{sums}");
        let names = sums.lines().filter_map(|line| line.strip_suffix(": OK"));
        let names: Vec<&str> = names.collect();
        let ending = |end: &str| names.iter().find(|name| name.ends_with(end));
        let archive = *ending(".tar.gz").context("no archive")?;
        let made_of = ending(".cdx.json").context("no list of parts")?;

        let name = archive.trim_end_matches(".tar.gz");
        let listed = printed(out, "tar", &["-tzf", archive]).await?;
        for part in PARTS {
            let part = format!("{name}/{part}");
            ensure!(
                listed.lines().any(|line| line == part),
                "{part} is not in {listed}"
            );
        }
        let modes = printed(out, "tar", &["-tvzf", archive]).await?;
        for line in modes.lines() {
            let open = ["-rw-r--r-- ", "-rwxr-xr-x ", "drwxr-xr-x "];
            ensure!(open.iter().any(|mode| line.starts_with(mode)), "{line}");
        }
        printed(out, "tar", &["-xzf", archive]).await?;
        for program in ["threadgraph", "tg"] {
            let program = out.join(name).join(program);
            let version = printed(out, &program.to_string_lossy(), &["--version"]).await?;
            let number = version.split_whitespace().last().unwrap_or_default();
            ensure!(name.contains(&format!("-{number}-")), "{name}: {version}");
        }

        let text = std::fs::read(out.join(made_of))?;
        let list: Value = serde_json::from_slice(&text)?;
        ensure!(list["bomFormat"] == "CycloneDX", "{}", list["bomFormat"]);
        let parts = list["components"].as_array().context("no components")?;
        let has = |wanted: &str| parts.iter().any(|one| one["name"] == wanted);
        ensure!(has("tokio") && has("lapin"), "{} parts", parts.len());
        // Of the page.
        ensure!(has("preact") && !has("esbuild"), "{} parts", parts.len());
        Ok(())
    }
}
