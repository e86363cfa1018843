//! API keys in the clear: made here, shown once, otherwise known by their hash only.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// What every key starts with.
const PREFIX: &str = "tg_";
/// Bytes of randomness in a key.
const RANDOM: usize = 24;
/// Longer texts are no keys.
const MAX_LEN: usize = 512;

/// A key in the clear. Prints as stars.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// A key from random bytes.
    pub fn from_random(bytes: [u8; RANDOM]) -> Self {
        Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// A key as somebody presents it. `None` if it cannot be one.
    pub fn presented(text: &str) -> Option<Self> {
        let plausible = text.starts_with(PREFIX) && text.len() <= MAX_LEN;
        plausible.then(|| Self(text.to_owned()))
    }

    /// What is stored: SHA-256 in hex. Looking a key up by it takes the same time whatever the key is
    /// like.
    pub fn hash(&self) -> String {
        hex::encode(Sha256::digest(self.0.as_bytes()))
    }

    /// The first seven characters, by which people tell their keys apart.
    pub fn prefix(&self) -> String {
        self.0.chars().take(PREFIX.len() + 4).collect()
    }

    /// The key itself, for the one answer that shows it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_contracts_form_and_never_prints() {
        let key = ApiKey::from_random([0xfb; 24]);
        assert_eq!(key.reveal().len(), 3 + 32);
        assert!(
            key.reveal()
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        );
        assert_eq!(key.prefix(), key.reveal()[..7]);
        assert_eq!(format!("{key:?}"), "***");
        assert_eq!(
            ApiKey::presented("tg_test").unwrap().hash(),
            "c1dc8d287249431ce1a2dd041861bd5ea00208850e9174f85d9327c49cfdea92"
        );
        assert!(ApiKey::presented("nope").is_none());
    }
}
