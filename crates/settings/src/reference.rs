//! Secrets that are named instead of written: what is in a settings file or on a command line is read by many.
//! What was found is never kept or shown here, and nothing that users of the system write is looked up.

use std::fs::File;
use std::io::Read;

/// Longest secret in a file, in bytes.
const LONGEST: u64 = 64 << 10;

/// What a setting that holds a secret means: `env:NAME` is what that variable holds, `file:PATH` what that file does,
/// without white space around it; anything else is the secret itself. Read once, when settings are.
///
/// # Errors
/// What is named is not there, holds nothing or cannot be read as text. The message never holds what was found or where.
pub fn resolved(setting: String) -> Result<String, &'static str> {
    let found = if let Some(name) = setting.strip_prefix("env:") {
        let held = std::env::var(name.trim());
        held.map_err(|_| "names a variable that is not set (env:NAME)")?
    } else if let Some(path) = setting.strip_prefix("file:") {
        held_by(path.trim())?
    } else {
        return Ok(setting);
    };
    match found.trim() {
        "" => Err("names a variable or a file that holds nothing"),
        secret => Ok(secret.to_owned()),
    }
}

fn held_by(path: &str) -> Result<String, &'static str> {
    const UNREADABLE: &str = "names a file that cannot be read (file:PATH)";
    // Asked first: opening a pipe waits until somebody writes.
    let is_file = std::fs::metadata(path).is_ok_and(|about| about.is_file());
    if !is_file {
        return Err(UNREADABLE);
    }
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(|_| UNREADABLE)?.take(LONGEST + 1);
    file.read_to_end(&mut bytes).map_err(|_| UNREADABLE)?;
    if bytes.len() as u64 > LONGEST {
        return Err("names a file of more than 64 KiB");
    }
    String::from_utf8(bytes).map_err(|_| "names a file that must be text")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(setting: impl Into<String>) -> Result<String, &'static str> {
        resolved(setting.into())
    }

    #[test]
    fn a_secret_is_what_is_written_or_what_is_named() {
        assert_eq!(of("sk-1"), Ok("sk-1".to_owned()));
        assert_eq!(of("amqp://u:p@h/"), Ok("amqp://u:p@h/".to_owned()));
        // Cargo sets it for tests.
        let name = "CARGO_PKG_NAME";
        assert_eq!(of(format!("env:{name}")), Ok("tg-settings".to_owned()));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "  s3cret\n").unwrap();
        let named = format!("file:{}", path.display());
        assert_eq!(of(named), Ok("s3cret".to_owned()));
    }

    #[test]
    fn what_cannot_be_had_is_told_without_what_and_where() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            format!("file:{}", path.display())
        };
        let empty = write("empty", b"\n");
        let long = write("long", &vec![b'x'; (64 << 10) + 1]);
        let bytes = write("bytes", b"s3cret\xff");
        let absent = format!("file:{}/absent", folder.path().display());
        let is_folder = format!("file:{}", folder.path().display());
        for (setting, told) in [
            ("env:TG_NO_SUCH_VARIABLE", "that is not set"),
            ("env:", "that is not set"),
            ("file:/dev/zero", "cannot be read"),
            (empty.as_str(), "holds nothing"),
            (long.as_str(), "more than 64 KiB"),
            (bytes.as_str(), "must be text"),
            (absent.as_str(), "cannot be read"),
            (is_folder.as_str(), "cannot be read"),
        ] {
            let fault = of(setting).unwrap_err();
            assert!(fault.contains(told), "{setting}: {fault}");
            assert!(!fault.contains("s3cret") && !fault.contains('/'), "{fault}");
        }
    }
}
