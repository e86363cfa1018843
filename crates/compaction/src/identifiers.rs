//! What a summary has to keep to the letter: UUIDs, hashes, addresses, paths.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Identifiers that are appended to a summary at most.
const MOST: usize = 200;
/// Bytes without a space from which on they are data and no names: whether a name begins in them is asked at many places,
/// and each time to their end.
const LONGEST: usize = 4096;
/// Bytes that no address is as long as.
const ADDRESS: usize = 64;
/// What introduces those that a summary lacks.
const LABEL: &str = "Identifiers: ";

/// Where an identifier may be; what it is, is looked at afterwards. The order counts where two begin at the same place.
/// A boundary is one of ASCII: those of Unicode are looked for without the automaton.
static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let uri = r#"(?P<uri>[A-Za-z][A-Za-z0-9+.-]*://[^\s<>"'`]+|(?-u:\b)urn:[^\s<>"'`]+)"#;
    let mail = r"(?P<mail>[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)";
    let uuid = r"(?P<uuid>(?-u:\b)[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?-u:\b))";
    let address = r"(?P<address>\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?|(?-u:\b)[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]{1,5})?(?-u:\b))";
    // Of these the begin alone: how far they go is looked at only where one may begin.
    let begins = "(?P<colon>[0-9A-Fa-f]{0,4}:)|(?P<path>/)";
    let hex = r"(?P<hex>(?-u:\b)[0-9A-Fa-f]{7,}(?-u:\b))";
    Regex::new(&[uri, mail, uuid, address, begins, hex].join("|")).ok()
});

/// What parts a long text without blanks; sentences of Chinese and Japanese have no others.
const PARTS: &str = ",;|\u{ff0c}\u{3002}\u{ff1b}\u{3001}\u{ff01}\u{ff1f}\u{ff1a}\u{ff08}\u{ff09}";

/// Identifiers of a text, each once, in the order of their first appearance.
pub fn identifiers(text: &str) -> Vec<&str> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let Some(pattern) = PATTERN.as_ref() else {
        return found;
    };
    let mut end = 0;
    for run in text.split_inclusive(is_outside) {
        let long = run.len() > LONGEST;
        for part in run.split_inclusive(|c: char| long && PARTS.contains(c)) {
            let mut at = end;
            end += part.len();
            if part.len() > LONGEST {
                continue;
            }
            let text = &text[..end];
            while let Some(captures) = pattern.captures_at(text, at) {
                let Some(whole) = captures.get(0) else { break };
                match named(text, &captures) {
                    Ok(identifier) => {
                        at = whole.start() + identifier.len().max(1);
                        if seen.insert(identifier) {
                            found.push(identifier);
                        }
                    }
                    Err(over) => at = whole.start() + over,
                }
            }
        }
    }
    found
}

/// What is in no identifier.
fn is_outside(c: char) -> bool {
    c.is_whitespace() || "<>\"'`".contains(c)
}

/// The identifier that was matched, or after how many bytes another may begin where it is none.
fn named<'a>(text: &'a str, captures: &Captures<'a>) -> Result<&'a str, usize> {
    let get = |name: &str| captures.name(name).map(|found| found.as_str());
    if let Some(uri) = get("uri") {
        let named = trimmed(uri);
        return match named.ends_with("://") || !named.contains(':') {
            true => Err(uri.len()),
            false => Ok(named),
        };
    }
    if let Some(address) = get("address") {
        return is_address(address).then_some(address).ok_or(1);
    }
    if let Some(found) = captures.name("colon") {
        return with_colons(text, found.start());
    }
    if let Some(found) = captures.name("path") {
        return path(text, found.start());
    }
    if let Some(hex) = get("hex") {
        let digit = hex.bytes().any(|byte| byte.is_ascii_digit());
        let letter = hex.bytes().any(|byte| byte.is_ascii_alphabetic());
        return match digit && letter {
            true => Ok(hex),
            false => Err(hex.len()),
        };
    }
    get("mail").or_else(|| get("uuid")).ok_or(1)
}

/// The address with colons that begins at a place, or after how many bytes another identifier may begin.
fn with_colons(text: &str, at: usize) -> Result<&str, usize> {
    let rest = &text[at..];
    let bytes = rest.bytes().take(ADDRESS);
    let length = bytes.take_while(|byte| byte.is_ascii_hexdigit() || b":.".contains(byte));
    let length = length.count();
    let address = rest[..length].trim_end_matches([':', '.']);
    match length < ADDRESS && is_address(address) {
        true => Ok(address),
        false => Err(1),
    }
}

/// The path that begins at a slash, or after how many bytes another identifier may begin.
fn path(text: &str, at: usize) -> Result<&str, usize> {
    let (before, rest) = text.split_at(at);
    let before = before.chars().next_back();
    let begins = before.is_none_or(|c| c.is_whitespace() || "\"'`([{<=:,;|".contains(c));
    if !begins || rest.starts_with("//") {
        return Err(1);
    }
    let end = rest.find(|c: char| is_outside(c) || "()[]{},;|*".contains(c));
    let path = &rest[..end.unwrap_or(rest.len())];
    match path.chars().any(char::is_alphanumeric) {
        true => Ok(trimmed(path)),
        false => Err(path.len()),
    }
}

/// Without what ends the sentence that it stands in.
fn trimmed(text: &str) -> &str {
    const MARKS: [char; 6] = ['.', ',', ';', ':', '!', '?'];
    let mut text = text.trim_end_matches(MARKS);
    for (open, close) in [('(', ')'), ('[', ']'), ('{', '}')] {
        let mut over = text
            .matches(close)
            .count()
            .saturating_sub(text.matches(open).count());
        while over > 0
            && let Some(rest) = text.strip_suffix(close)
        {
            text = rest.trim_end_matches(MARKS);
            over -= 1;
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
    let mut seen = HashSet::new();
    let each = identifiers.iter().copied().filter(|one| seen.insert(*one));
    let each: Vec<&str> = each.collect();
    // From the newest on: what is not appended need not be looked for.
    let lacks = |one: &&str| !summary.contains(*one);
    let mut newest: Vec<&str> = each.into_iter().rev().filter(lacks).take(MOST).collect();
    newest.reverse();
    match newest.as_slice() {
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

    #[test]
    fn data_without_a_space_is_no_place_of_names() {
        let data = |unit: &str| unit.repeat(LONGEST / unit.len() + 1);
        let text = format!("{}8f14e45fce {}/etc/x /etc/hosts", data("zz."), data("q="));
        assert_eq!(identifiers(&text), ["/etc/hosts"]);
        // A long list is one of names.
        let list: Vec<String> = (0..1000).map(|n| format!("/path/{n}/")).collect();
        assert_eq!(identifiers(&list.join(",")), list);
        let sentence = "\u{6587}".repeat(1000);
        let uuid = "8f14e45f-ceea-467f-9575-3c4b5e6f7a8b";
        let paragraph = format!("{sentence}\u{3002}{uuid}\u{3002}{sentence}\u{3002}");
        assert_eq!(identifiers(&paragraph), [uuid]);
    }

    /// Each asks at every few bytes whether something begins there that goes on to the end.
    #[test]
    fn what_nearly_is_a_name_costs_no_more_than_its_length() {
        let many = 1 << 18;
        for unit in [
            "a:",
            "a/",
            "=/",
            ":/",
            "a/b:",
            "1234567a.\u{e9}",
            "1234567.",
            "1.",
            ":/ ",
            "://",
            "[a",
        ] {
            for end in ["", "@", "\u{e9}"] {
                let whole = unit.repeat(many / unit.len());
                let part = unit.repeat(LONGEST / unit.len() - 2);
                let parts = format!("{part}{end} ").repeat(8);
                let text = format!("{whole}{end} {parts}8f14e45fce");
                let found = identifiers(&text);
                assert_eq!(found.last(), Some(&"8f14e45fce"), "{unit}");
            }
        }
        let closed = format!("x://{}", ")".repeat(LONGEST - 4));
        assert_eq!(identifiers(&closed), [] as [&str; 0]);
        let many: Vec<String> = (0..200_000).map(|n| format!("/path/{n}/")).collect();
        let each: Vec<&str> = many.iter().map(String::as_str).collect();
        let kept = keep(&"nothing of it ".repeat(20_000), &each);
        assert!(kept.ends_with("/path/199998/, /path/199999/"));
        assert!(!kept.contains("/path/199799/") && kept.contains("/path/199800/"));
    }

    #[test]
    fn a_name_may_follow_what_is_none() {
        let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        let text = format!(
            "sha256:{hash} x=:10.0.0.7 8f14e45fce:12 a:/etc/hosts urn:. x://, 2001:db8::7."
        );
        let found = [hash, "10.0.0.7", "8f14e45fce", "/etc/hosts", "2001:db8::7"];
        assert_eq!(identifiers(&text), found);
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
