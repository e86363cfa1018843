//! What the system says of this process, under the names that every Prometheus client uses, and which release it is.

use std::fmt::Write;

use rustix::process::{Resource, getrlimit};

/// What the kernel counts CPU time in, in parts of a second: fixed by its interface on every processor that we build for.
const TICKS: f64 = 100.0;

/// Adds the samples to an exposition. What the system does not say is left out. `started` in milliseconds since 1970.
pub(super) fn write(text: &mut String, started: i64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let files = std::fs::read_dir("/proc/self/fd").map(Iterator::count);
    let rows = [
        (
            "process_resident_memory_bytes",
            "gauge",
            "Memory of this process that is in RAM, in bytes.",
            field(&status, "VmRSS:").map(|kilobytes| kilobytes * 1_024.0),
        ),
        (
            "process_virtual_memory_bytes",
            "gauge",
            "Address space of this process, in bytes.",
            field(&status, "VmSize:").map(|kilobytes| kilobytes * 1_024.0),
        ),
        (
            "process_cpu_seconds_total",
            "counter",
            "CPU time that this process has used, in seconds.",
            cpu_seconds(&stat),
        ),
        (
            "process_threads",
            "gauge",
            "Threads of this process.",
            field(&status, "Threads:"),
        ),
        (
            "process_open_fds",
            "gauge",
            "File descriptors that this process has open.",
            files.ok().map(|count| count as f64),
        ),
        (
            "process_max_fds",
            "gauge",
            "File descriptors that this process may have open.",
            getrlimit(Resource::Nofile).current.map(|most| most as f64),
        ),
        (
            "process_start_time_seconds",
            "gauge",
            "When this process started, in seconds since 1970.",
            Some(started as f64 / 1e3),
        ),
    ];
    for (name, kind, meaning, value) in rows {
        if let Some(value) = value {
            add(text, name, kind, meaning, "", value);
        }
    }
    let version = concat!("{version=\"", env!("CARGO_PKG_VERSION"), "\"}");
    let meaning = "The release that runs; always 1.";
    add(text, "tg_build_info", "gauge", meaning, version, 1.0);
}

fn add(text: &mut String, name: &str, kind: &str, meaning: &str, labels: &str, value: f64) {
    let _ = writeln!(
        text,
        "# HELP {name} {meaning}\n# TYPE {name} {kind}\n{name}{labels} {value}\n"
    );
}

/// A number of `/proc/self/status`.
fn field(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// User and system time in `/proc/self/stat`, in seconds. The name of the program, in parentheses, may hold anything.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_read() {
        let stat = "77 (a b) c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 9 0 100 2 3";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(field("Name:\tx\nVmRSS:\t  12 kB\n", "VmRSS:"), Some(12.0));
        assert_eq!(field("", "VmRSS:"), None);
        let mut text = String::new();
        write(&mut text, 1_500);
        assert!(
            text.contains("\nprocess_start_time_seconds 1.5\n"),
            "{text}"
        );
        assert!(text.contains("\ntg_build_info{version=\""), "{text}");
    }
}
