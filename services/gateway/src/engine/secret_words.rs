//! Words that are secrets by their shape, wherever they stand: keys of providers, tokens, our own keys. It knows no names.

/// How keys begin whose rest may be letters of one case.
const PLAIN: [&str; 5] = ["sk-", "xai-", "gsk_", "AIza", "github_pat_"];
/// How keys begin that are also how names begin: their rest has digits, or letters of both cases.
const MIXED: [&str; 42] = [
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "whsec_",
    "tg_",
    "eyJ",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "glpat-",
    "gldt-",
    "glrt-",
    "glptt-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxr-",
    "xoxs-",
    "xoxe-",
    "xapp-",
    "hf_",
    "npm_",
    "pypi-",
    "SG.",
    "dop_v1_",
    "shpat_",
    "shpss_",
    "r8_",
    "nvapi-",
    "pplx-",
    "tvly-",
    "lsv2_",
    "jina_",
    "fw_",
    "ya29.",
    "dckr_pat_",
    "hvs.",
    "pcsk_",
    "sntrys_",
];
/// How the ids of access keys of AWS begin; sixteen capitals and digits follow.
const AWS: [&str; 2] = ["AKIA", "ASIA"];
/// A key has at least as many characters.
const SHORTEST: usize = 16;
/// What is drawn by lot shows it in so many.
const LOOKED_AT: usize = 64;
/// No beginning is longer.
const LONGEST_PREFIX: usize = 12;

/// Whether a byte may stand in a key.
pub(crate) fn of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Whether letters and digits look drawn by lot: there are digits among letters, or letters of both cases not only at the front.
/// Only at the beginning: a word may be long, and is looked at from many places.
pub(crate) fn is_drawn(text: &str) -> bool {
    let text = &text.as_bytes()[..text.len().min(LOOKED_AT)];
    let letters = text.iter().any(|byte| byte.is_ascii_alphabetic());
    let digits = text.iter().any(|byte| byte.is_ascii_digit());
    let lower = text.iter().any(|byte| byte.is_ascii_lowercase());
    let upper = text.iter().skip(1).any(|byte| byte.is_ascii_uppercase());
    (letters && digits) || (lower && upper)
}

/// Whether a key begins here, up to the end of the text: all of it may stand in a key.
fn is_key(text: &str) -> bool {
    if text.len() < SHORTEST {
        return false;
    }
    let rest = |prefix: &&str| text.strip_prefix(*prefix);
    PLAIN.iter().any(|prefix| text.starts_with(prefix))
        || MIXED.iter().filter_map(rest).any(is_drawn)
        || AWS.iter().filter_map(rest).any(|id| {
            let of_id = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
            id.len() == 16 && id.bytes().all(of_id)
        })
}

/// Where the first key begins in a word of characters that may stand in one.
pub(crate) fn begins(word: &str) -> Option<usize> {
    let bytes = word.as_bytes();
    let places = (0..bytes.len().saturating_sub(SHORTEST - 1))
        .filter(|at| *at == 0 || !bytes[at - 1].is_ascii_alphanumeric());
    places
        .filter(|at| may_begin(&bytes[*at..]))
        .find(|at| is_key(&word[*at..]))
}

/// Whether a beginning is among those that are known.
fn may_begin(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(LONGEST_PREFIX)];
    let all = PLAIN.iter().chain(&MIXED).chain(&AWS);
    all.into_iter()
        .any(|prefix| head.starts_with(prefix.as_bytes()))
}

/// Whether there is a key in a word.
pub(crate) fn is_secret(word: &str) -> bool {
    let parts = word.split(|letter: char| !u8::try_from(letter).is_ok_and(of_key));
    parts.into_iter().any(|part| begins(part).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key of a provider, put together here: whole ones stand in no file.
    fn key(prefix: &str) -> String {
        format!("{prefix}{}", "0aB1cD2eF3gH4iJ5")
    }

    #[test]
    fn keys_of_providers_are_known() {
        for prefix in PLAIN
            .iter()
            .chain(&MIXED)
            .chain(&["sk-ant-api03-", "sk-proj-", "sk-or-v1-"])
        {
            let key = key(prefix);
            assert!(is_secret(&key), "{key}");
            assert!(is_secret(&format!("\"{key}\",")), "{key}");
            assert!(is_secret(&format!("at:x-{key}")), "{key}");
        }
        assert!(is_secret(&format!("AKIA{}", "IOSFODNN7EXAMPLE")));
        assert!(is_secret(&format!("sk-{}", "abcdefghijklmnopqrstuvwx")));
    }

    #[test]
    fn names_are_none() {
        for name in [
            "tg_requests_total_seconds",
            "task-force-of-the-year-12",
            "disk-usage-of-the-node-1",
            "hf_model_of_the_year",
            "npm_package_version",
            "AKIAlower-case-letters",
            "eyJ",
            "sk-short",
            "urn:trustgraph:agent:0a1b2c3d-0000-4000-8000-0a1b2c3d4e5f",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
