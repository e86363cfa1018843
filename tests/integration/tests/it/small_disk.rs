//! A disk that can be full: a file system of its own, of a size that can be changed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

/// A file system of its own for one data directory, so that it can be full.
pub struct SmallDisk(PathBuf);

/// How often a disk that grows meanwhile is measured again.
const FILLS: usize = 20;

impl SmallDisk {
    /// Mounts an empty one. Fails where nothing can be mounted: a full disk that is not tried is no test.
    pub async fn mount(at: &Path, size: &str) -> Result<Self> {
        std::fs::create_dir_all(at)?;
        as_root(
            &[
                "mount",
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size},mode=0777"),
                "tmpfs",
            ],
            at,
        )
        .await?;
        Ok(Self(at.to_path_buf()))
    }

    /// Leaves next to no room beside what it holds. Whoever writes meanwhile may need more than was measured: then it is
    /// measured again.
    pub async fn fill(&self) -> Result<()> {
        let mut filled = self.resize_to_what_is_used().await;
        for _ in 0..FILLS {
            if filled.is_ok() {
                break;
            }
            filled = self.resize_to_what_is_used().await;
        }
        filled
    }

    async fn resize_to_what_is_used(&self) -> Result<()> {
        let mut df = Command::new("df");
        df.args(["-k", "--output=used"]).arg(&self.0);
        let told = df.output().await?;
        let told = String::from_utf8(told.stdout)?;
        let used = told.lines().nth(1).unwrap_or_default().trim();
        let used: u64 = used.parse().with_context(|| told.clone())?;
        self.resize(&format!("{}k", used + 64)).await
    }

    /// Gives it another size, with all that it holds.
    pub async fn resize(&self, size: &str) -> Result<()> {
        as_root(&["mount", "-o", &format!("remount,size={size}")], &self.0).await
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let (program, args) = rooted(&["umount", "-l"]);
        let _ = std::process::Command::new(program)
            .args(args)
            .arg(&self.0)
            .status();
    }
}

/// Mounting needs root, as the set-up does.
fn rooted<'a>(words: &[&'a str]) -> (&'a str, Vec<&'a str>) {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    if is_root {
        (words[0], words[1..].to_vec())
    } else {
        ("sudo", [&["-n"], words].concat())
    }
}

async fn as_root(words: &[&str], path: &Path) -> Result<()> {
    let (program, args) = rooted(words);
    let status = Command::new(program).args(args).arg(path).status().await?;
    ensure!(status.success(), "{words:?}: {status}");
    Ok(())
}
