//! The container image is made of this source, and answers the question of the demo: static programs, run as nobody in particular with a
//! file system that they cannot write; by itself, and as the pods of the overlays `small` and `standard`, which podman plays: a pod of each
//! service over RabbitMQ. A process of any of them that is killed is replaced, and the answer is the same; one that is stopped ends in order.

mod alone {
    use anyhow::{Context, Result, ensure};
    use tg_testkit::process::{bin_dir, root};
    use tg_testkit::services::SERVICES;
    use tokio::process::Command;

    const QUESTION: &str = "Which mountain is the meridian of Nepal Standard Time close to?";

    /// What `play_image.sh` prints between the two.
    const REPLACED: &str = " killed, and each replaced by another process";

    #[tokio::test]
    async fn by_itself_and_as_pods() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let archive = folder.path().join("image.tar");
        let mut make = Command::new(root().join("scripts/image.sh"));
        let made = make.env("ARCHIVE", &archive).output().await?;
        ensure!(made.status.success(), "{made:?}");
        for (how, containers) in [("run", 1), ("small", 1), ("standard", SERVICES.len())] {
            let work = folder.path().join(how);
            std::fs::create_dir(&work)?;
            let mut play = Command::new(root().join("tests/integration/clients/play_image.sh"));
            let play = play.arg(how).arg(&archive).arg(&work);
            let play = play.arg(bin_dir()?.join("tg"));
            let play = play.arg(root().join("demo/documents/uncommon-clocks.pdf"));
            let played = play.arg(QUESTION).kill_on_drop(true).output().await?;
            let said = String::from_utf8_lossy(&played.stdout);
            ensure!(played.status.success(), "{how}: {played:?}");
            // Of all containers alike.
            for (what, only) in [
                ("read-only ", "read-only true, user 65532:65532"),
                ("stopped with status ", "stopped with status 0"),
            ] {
                let lines: Vec<_> = said.lines().filter(|line| line.starts_with(what)).collect();
                ensure!(lines == [only], "{how}: {said}");
            }
            let killed = format!("\n{containers}{REPLACED}\n");
            ensure!(said.contains(&killed), "{how}: {said}");
            // By the first processes, and by those that take their places.
            let (before, after) = said.split_once(REPLACED).context("nothing was killed")?;
            for answer in [before, after] {
                ensure!(answer.contains("Gaurishankar"), "{how}: {said}");
            }
        }
        Ok(())
    }
}
