//! The container image is made of this source, and answers the question of the demo: static programs, run as nobody in particular with a
//! file system that they cannot write; by itself, and as the pod of the manifests that podman plays. A process that is killed is replaced, and
//! the answer is the same; one that is stopped ends in order.

mod alone {
    use anyhow::{Context, Result, ensure};
    use tg_testkit::process::{bin_dir, root};
    use tokio::process::Command;

    const QUESTION: &str = "Which mountain is the meridian of Nepal Standard Time close to?";

    /// What `play_image.sh` prints between the two.
    const REPLACED: &str = "killed, and replaced by another process";

    #[tokio::test]
    async fn by_itself_and_as_a_pod() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let archive = folder.path().join("image.tar");
        let mut make = Command::new(root().join("scripts/image.sh"));
        let made = make.env("ARCHIVE", &archive).output().await?;
        ensure!(made.status.success(), "{made:?}");
        for how in ["run", "play"] {
            let work = folder.path().join(how);
            std::fs::create_dir(&work)?;
            let mut play = Command::new(root().join("tests/integration/clients/play_image.sh"));
            let play = play.arg(how).arg(&archive).arg(&work);
            let play = play.arg(bin_dir()?.join("tg"));
            let play = play.arg(root().join("demo/documents/uncommon-clocks.pdf"));
            let played = play.arg(QUESTION).kill_on_drop(true).output().await?;
            let said = String::from_utf8_lossy(&played.stdout);
            ensure!(played.status.success(), "{how}: {played:?}");
            let bounds = "read-only true, user 65532:65532";
            ensure!(said.contains(bounds), "{how}: {said}");
            // By the first process, and by the one that takes its place.
            let (before, after) = said.split_once(REPLACED).context("nothing was killed")?;
            for answer in [before, after] {
                ensure!(answer.contains("Gaurishankar"), "{how}: {said}");
            }
            ensure!(after.contains("stopped with status 0"), "{how}: {said}");
        }
        Ok(())
    }
}
