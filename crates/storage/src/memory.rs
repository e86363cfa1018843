//! How much memory this process may take: what stores that hold things in memory take their shares of.

use std::path::{Component, Path, PathBuf};

/// Address space that is mapped and takes no memory: stacks of threads, room that allocators reserve, the program itself.
pub const MAPPED: u64 = 5 << 28;

/// How much it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Memory {
    /// Bytes.
    pub bytes: u64,
    /// What bounds it, in words.
    pub by: &'static str,
}

/// What this process may take: the least of the machine's memory, the limits of the control groups (versions 1
/// and 2) that the process is in, those above its own included, and the soft limit of its address space, without
/// what is only mapped. `None` where the system says nothing of any.
pub fn of_this_process() -> Option<Memory> {
    least(Path::new("/"))
}

/// As [`of_this_process`], in a system whose files are below `root`.
fn least(root: &Path) -> Option<Memory> {
    let proc = |name: &str| std::fs::read_to_string(root.join("proc").join(name));
    let machine = proc("meminfo").ok().and_then(|text| machine(&text));
    let space = proc("self/limits").ok().and_then(|text| space(&text));
    let groups = proc("self/cgroup").unwrap_or_default();
    let mounts = proc("self/mountinfo").unwrap_or_default();
    let limits = mounts.lines().filter_map(Mount::read).flat_map(|mount| {
        let folders = groups.lines().find_map(|group| mount.folders(group));
        let files = folders.into_iter().flatten();
        files.filter_map(move |folder| limit(&below(root, &folder).join(mount.file)))
    });
    let of = |by| move |bytes| Memory { bytes, by };
    limits
        .map(of("control group"))
        .chain(machine.map(of("machine")))
        .chain(space.map(of("address space")))
        .min()
}

fn machine(meminfo: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let total = lines.find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1 << 10)
}

fn space(limits: &str) -> Option<u64> {
    let mut lines = limits.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max address space"))?;
    let space: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(space.saturating_sub(MAPPED).max(space / 4))
}

/// The number in a file. Version 2 writes `max` where there is no limit, version 1 a number larger than any memory.
fn limit(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Where control groups that limit memory are mounted.
struct Mount<'a> {
    /// Which group the mount shows at its top: not the topmost one inside many containers.
    top: &'a Path,
    at: &'a Path,
    /// The file of a limit.
    file: &'static str,
}

impl<'a> Mount<'a> {
    /// Reads a line of `mountinfo`, if it is of such a mount.
    fn read(line: &'a str) -> Option<Self> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (top, at) = (Path::new(place.next()?), Path::new(place.next()?));
        let mut kind = kind.split(' ');
        let file = match (kind.next()?, kind.nth(1)) {
            ("cgroup2", _) => "memory.max",
            ("cgroup", Some(options)) if options.split(',').any(|one| one == "memory") => {
                "memory.limit_in_bytes"
            }
            _ => return None,
        };
        Some(Self { top, at, file })
    }

    /// The folders of the process's own group and of those above it, from a line of `/proc/self/cgroup` about the
    /// groups that are mounted here.
    fn folders(&self, group: &str) -> Option<Vec<PathBuf>> {
        let mut parts = group.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let ours = match self.file {
            "memory.max" => controllers.is_empty(),
            _ => controllers.split(',').any(|one| one == "memory"),
        };
        // A path that is not below what is mounted has no folder here; the mount's own limit holds all the same.
        let inside = Path::new(path).strip_prefix(self.top).ok();
        let plain = |inside: &&Path| !inside.components().any(|one| one == Component::ParentDir);
        let inside = inside.filter(plain).unwrap_or(Path::new(""));
        let folders = inside.ancestors().map(|part| self.at.join(part));
        ours.then(|| folders.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION_2: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";
    const VERSION_1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
    const UNLIMITED: &str = "9223372036854771712\n";

    /// What a system of these files, below its root, leaves to a process.
    fn of(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = root.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        least(root.path()).map(|memory| memory.bytes)
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:      16384 kB\nMemFree: 1 kB\n");

    #[test]
    fn without_limits_it_is_the_machines() {
        let free = "Max address space         unlimited            unlimited            bytes\n";
        let none = [
            MACHINE,
            ("proc/self/limits", free),
            ("proc/self/cgroup", "0::/a\n"),
            ("proc/self/mountinfo", VERSION_2),
            ("sys/fs/cgroup/a/memory.max", "max\n"),
        ];
        assert_eq!(of(&none), Some(16 << 20));
        assert_eq!(of(&[MACHINE]), Some(16 << 20));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn the_soft_limit_of_the_address_space_counts_without_what_is_only_mapped() {
        let of_space = |bytes: u64| {
            let limits = format!(
                "Limit   Soft Limit   Hard Limit   Units\n\
                Max data size             unlimited            unlimited            bytes\n\
                Max address space         {bytes}              unlimited            bytes\n"
            );
            let machine = ("proc/meminfo", "MemTotal:      16777216 kB\n");
            of(&[machine, ("proc/self/limits", &limits)])
        };
        assert_eq!(of_space(4 << 30), Some((4 << 30) - MAPPED));
        assert_eq!(of_space(1 << 30), Some(1 << 28));
        assert_eq!(of_space(1 << 40), Some(16 << 30));
    }

    #[test]
    fn of_version_2_the_own_group_and_each_above_it_counts() {
        let own = ("proc/self/cgroup", "0::/a/b/c\n");
        let with = |file| {
            let limit = (file, "2097152\n");
            let at = ("proc/self/mountinfo", VERSION_2);
            of(&[
                MACHINE,
                own,
                at,
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                limit,
            ])
        };
        assert_eq!(with("sys/fs/cgroup/a/b/c/memory.max"), Some(2 << 20));
        assert_eq!(with("sys/fs/cgroup/a/memory.max"), Some(2 << 20));
        assert_eq!(with("sys/fs/cgroup/memory.max"), Some(2 << 20));
        assert_eq!(with("sys/fs/cgroup/a/other/memory.max"), Some(16 << 20));
    }

    #[test]
    fn of_version_1_the_groups_of_memory_count_and_no_others() {
        let with = |file, limit| {
            of(&[
                MACHINE,
                ("proc/self/cgroup", "4:memory:/a/b\n1:cpu:/c\n0::/\n"),
                ("proc/self/mountinfo", VERSION_1),
                (file, limit),
            ])
        };
        let own = "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes";
        assert_eq!(with(own, "3145728\n"), Some(3 << 20));
        assert_eq!(with(own, UNLIMITED), Some(16 << 20));
        let above = "sys/fs/cgroup/memory/a/memory.limit_in_bytes";
        assert_eq!(with(above, "3145728\n"), Some(3 << 20));
        let other = "sys/fs/cgroup/memory/c/memory.limit_in_bytes";
        assert_eq!(with(other, "3145728\n"), Some(16 << 20));
    }

    #[test]
    fn a_container_that_sees_only_its_own_group_finds_its_limit() {
        let with = |group| {
            let mount = "31 23 0:28 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
            of(&[
                MACHINE,
                ("proc/self/cgroup", group),
                ("proc/self/mountinfo", mount),
                ("sys/fs/cgroup/memory.max", "1048576\n"),
                ("sys/fs/cgroup/own/memory.max", "524288\n"),
            ])
        };
        assert_eq!(with("0::/docker/x\n"), Some(1 << 20));
        assert_eq!(with("0::/docker/x/own\n"), Some(1 << 19));
        assert_eq!(with("0::/\n"), Some(1 << 20));
        assert_eq!(with("0::/../elsewhere\n"), Some(1 << 20));
    }
}
