//! The header `SPASS-Augment`: what may be added to a chat on its way.

use tg_schemas::Error;

use crate::engine::translate::fields::fault;

/// Its name.
pub(crate) const HEADER: &str = "spass-augment";
/// What it knows.
const KEYS: [&str; 3] = ["server-tools", "system-prompt", "memory"];

/// Reads it: `server-tools=on|off, system-prompt=on|off, memory=on|off`, in any order. Other keys mean nothing.
///
/// # Errors
/// One of them is neither on nor off.
pub(crate) fn check(text: &str) -> Result<(), Error> {
    let pairs = text
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty());
    for pair in pairs {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if KEYS.contains(&key.trim()) && !["on", "off"].contains(&value.trim()) {
            return Err(fault(HEADER, &format!("{} must be on or off", key.trim())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_on_and_off_are_said_of_what_is_known() {
        for good in [
            "",
            "server-tools=off",
            "memory=on , system-prompt=off",
            "colour=red",
        ] {
            assert!(check(good).is_ok(), "{good}");
        }
        for (bad, key) in [
            ("server-tools=maybe", "server-tools"),
            ("x=1, memory", "memory"),
        ] {
            let told = check(bad).unwrap_err().message;
            assert_eq!(told, format!("spass-augment: {key} must be on or off"));
        }
    }
}
