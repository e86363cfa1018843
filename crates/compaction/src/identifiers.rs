//! What a summary has to keep to the letter: UUIDs, hashes, addresses, paths.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Identifiers that are appended to a summary at most.
const MOST: usize = 200;
/// What introduces those that a summary lacks.
const LABEL: &str = "Identifiers: ";

/// Where an identifier may be; what it is, is looked at afterwards. The order counts where two begin at the same place.
static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let uri = r#"(?P<uri>[A-Za-z][A-Za-z0-9+.-]*://[^\s<>"'`]+|\burn:[^\s<>"'`]+)"#;
    let mail = r"(?P<mail>[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)";
    let uuid = r"(?P<uuid>\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b)";
    let address = r"(?P<address>\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?|\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]{1,5})?\b|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*[0-9A-Fa-f])";
    let path = r#"(?P<path>/[^\s<>"'`()\[\]{},;|*]+)"#;
    let hex = r"(?P<hex>\b[0-9A-Fa-f]{7,}\b)";
    Regex::new(&[uri, mail, uuid, address, path, hex].join("|")).ok()
});

/// Identifiers of a text, each once, in the order of their first appearance.
pub fn identifiers(text: &str) -> Vec<&str> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let Some(pattern) = PATTERN.as_ref() else {
        return found;
    };
    let mut at = 0;
    while let Some(captures) = pattern.captures_at(text, at) {
        let Some(whole) = captures.get(0) else { break };
        match named(text, &captures) {
            Some(identifier) => {
                at = whole.start() + identifier.len().max(1);
                if seen.insert(identifier) {
                    found.push(identifier);
                }
            }
            // Another may begin within what is none.
            None => {
                let first = text[whole.start()..].chars().next();
                at = whole.start() + first.map_or(1, char::len_utf8);
            }
        }
    }
    found
}

/// The identifier that was matched, if it is one.
fn named<'a>(text: &'a str, captures: &Captures<'a>) -> Option<&'a str> {
    let get = |name: &str| captures.name(name).map(|found| found.as_str());
    if let Some(uri) = get("uri") {
        return Some(trimmed(uri));
    }
    if let Some(address) = get("address") {
        return is_address(address).then_some(address);
    }
    if let Some(found) = captures.name("path") {
        let before = text[..found.start()].chars().next_back();
        let begins = before.is_none_or(|c| c.is_whitespace() || "\"'`([{<=:,;|".contains(c));
        let path = trimmed(found.as_str());
        let named = path.chars().any(char::is_alphanumeric) && !path.starts_with("//");
        return (begins && named).then_some(path);
    }
    if let Some(hex) = get("hex") {
        let digit = hex.bytes().any(|byte| byte.is_ascii_digit());
        let letter = hex.bytes().any(|byte| byte.is_ascii_alphabetic());
        return (digit && letter).then_some(hex);
    }
    get("mail").or_else(|| get("uuid"))
}

/// Without what ends the sentence that it stands in.
fn trimmed(text: &str) -> &str {
    let mut text = text.trim_end_matches(['.', ',', ';', ':', '!', '?']);
    for (open, close) in [('(', ')'), ('[', ']'), ('{', '}')] {
        while text.ends_with(close) && text.matches(close).count() > text.matches(open).count() {
            text = text[..text.len() - close.len_utf8()]
                .trim_end_matches(['.', ',', ';', ':', '!', '?']);
        }
    }
    text
}

fn is_address(text: &str) -> bool {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    text.parse::<SocketAddr>().is_ok()
        || text.parse::<IpAddr>().is_ok()
        || bare.is_some_and(|bare| bare.parse::<Ipv6Addr>().is_ok())
        || text.parse::<Ipv4Addr>().is_ok()
}

/// A summary with the identifiers that it lacks: the newest 200.
pub fn keep(summary: &str, identifiers: &[&str]) -> String {
    let mut missing = Vec::new();
    let mut seen = HashSet::new();
    for identifier in identifiers {
        if seen.insert(identifier) && !summary.contains(identifier) {
            missing.push(*identifier);
        }
    }
    let newest = &missing[missing.len().saturating_sub(MOST)..];
    match newest {
        [] => summary.to_owned(),
        newest => format!("{}\n{LABEL}{}", summary.trim_end(), newest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_found_and_nothing_else() {
        let text = "Run 4bd88028-a83e-4534-b61a-df84f3a42eda at https://host.test/a/b?q=1, commit 8f14e45fce \
            from (/var/log/app.log) by ann@mail.test on 10.0.0.7:5672 or [fe80::1]:443, ::1; see urn:doc:lantern.";
        let found = [
            "4bd88028-a83e-4534-b61a-df84f3a42eda",
            "https://host.test/a/b?q=1",
            "8f14e45fce",
            "/var/log/app.log",
            "ann@mail.test",
            "10.0.0.7:5672",
            "[fe80::1]:443",
            "::1",
            "urn:doc:lantern",
        ];
        assert_eq!(identifiers(text), found);
        let plain = "At 12:30:45 on 2026-11-28 the defaced facade and/or 1234567 decade 300.1.1.1 / x (see [1]): note";
        assert_eq!(identifiers(plain), [] as [&str; 0]);
        assert_eq!(
            identifiers("a https://x.test/(b). https://x.test/(b)"),
            ["https://x.test/(b)"]
        );
    }

    /// 103
    #[test]
    fn line_103_what_a_summary_lacks_is_appended() {
        let ids = ["/etc/hosts", "https://x.test/", "8f14e45fce"];
        let kept = keep("They looked at https://x.test/ first.\n", &ids);
        assert_eq!(
            kept,
            "They looked at https://x.test/ first.\nIdentifiers: /etc/hosts, 8f14e45fce"
        );
        assert_eq!(
            keep("All: /etc/hosts 8f14e45fce https://x.test/", &ids),
            "All: /etc/hosts 8f14e45fce https://x.test/"
        );
    }

    #[test]
    fn of_very_many_the_newest_stay() {
        let many: Vec<String> = (0..250).map(|n| format!("/path/{n}/")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let kept = keep("s", &many);
        assert!(
            !kept.contains("/path/49/")
                && kept.contains("/path/50/")
                && kept.contains("/path/249/")
        );
    }

    proptest::proptest! {
        #[test]
        fn each_is_in_the_text_and_comes_once(text in "[a-f0-9:/.@ \\[\\]-]{0,80}|\\PC{0,60}") {
            let found = identifiers(&text);
            let set: HashSet<&&str> = found.iter().collect();
            proptest::prop_assert_eq!(set.len(), found.len());
            proptest::prop_assert!(found.iter().all(|one| text.contains(one) && !one.is_empty()));
            proptest::prop_assert_eq!(identifiers(&keep("", &found)).len() >= found.len().min(1), true);
        }
    }
}
