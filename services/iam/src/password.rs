//! Passwords: kept as PBKDF2 of SHA-256 in the form of the reference, compared in constant time. None is kept, logged or
//! shown again, but for the temporary one, once.

use std::fmt;
use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rand::RngCore;
use ring::pbkdf2::{PBKDF2_HMAC_SHA256, derive, verify};

/// First word of what is kept.
const SCHEME: &str = "pbkdf2-sha256";
/// Rounds of a new one.
const ROUNDS: NonZeroU32 = NonZeroU32::new(600_000).unwrap();
/// What was kept by others may have more; so many are computed at most.
const MOST_ROUNDS: u32 = 10_000_000;
/// Longest password in bytes. Longer ones are refused before anything is computed.
pub(crate) const LONGEST: usize = 1024;

/// What is kept of a password. Prints as stars.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PasswordHash(String);

impl PasswordHash {
    /// Takes a while.
    pub(crate) fn of(password: &str) -> Self {
        let mut salt = [0; 16];
        rand::rng().fill_bytes(&mut salt);
        let mut hash = [0; 32];
        let password = password.as_bytes();
        derive(PBKDF2_HMAC_SHA256, ROUNDS, &salt, password, &mut hash);
        let (salt, hash) = (STANDARD.encode(salt), STANDARD.encode(hash));
        Self(format!("{SCHEME}${ROUNDS}${salt}${hash}"))
    }

    /// As the store has it.
    pub(crate) fn stored(text: String) -> Option<Self> {
        (!text.is_empty()).then_some(Self(text))
    }

    /// For the store.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether it is that of a password. Takes a while; the same for every password.
    pub(crate) fn is_of(&self, password: &str) -> bool {
        let Some((rounds, salt, hash)) = self.parts() else {
            return false;
        };
        verify(
            PBKDF2_HMAC_SHA256,
            rounds,
            &salt,
            password.as_bytes(),
            &hash,
        )
        .is_ok()
    }

    /// As long as [`Self::is_of`] takes, for who has no password or is not there.
    pub(crate) fn nobodys(password: &str) -> bool {
        let mut hash = [0; 32];
        let (salt, password) = ([0; 16], password.as_bytes());
        derive(PBKDF2_HMAC_SHA256, ROUNDS, &salt, password, &mut hash);
        false
    }

    fn parts(&self) -> Option<(NonZeroU32, Vec<u8>, Vec<u8>)> {
        let mut parts = self.0.split('$');
        let scheme = parts.next()?;
        let rounds: NonZeroU32 = parts.next()?.parse().ok()?;
        let salt = STANDARD.decode(parts.next()?).ok()?;
        let hash = STANDARD.decode(parts.next()?).ok()?;
        let fits = scheme == SCHEME && rounds.get() <= MOST_ROUNDS && hash.len() == 32;
        (fits && parts.next().is_none()).then_some((rounds, salt, hash))
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A password that was made here: 16 characters. Prints as stars.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Temporary(String);

impl Temporary {
    /// A new one. It does not begin as an option of a command does: it is typed behind `--password`.
    pub(crate) fn random() -> Self {
        loop {
            let mut bytes = [0; 12];
            rand::rng().fill_bytes(&mut bytes);
            let text = URL_SAFE_NO_PAD.encode(bytes);
            if !text.starts_with('-') {
                return Self(text);
            }
        }
    }

    /// For the one answer that shows it, and to be hashed.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Temporary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Somebody was shown to know the password of which this was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proof {
    /// Who.
    pub(crate) user_id: String,
    /// What was kept then; a password that was changed since proves nothing.
    pub(crate) against: PasswordHash,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_can_be_typed_behind_an_option() {
        let made = (0..2_000).map(|_| Temporary::random());
        for one in made {
            assert!(one.reveal().len() == 16 && !one.reveal().starts_with('-'));
        }
    }

    #[test]
    fn what_the_reference_kept_is_read_and_ours_has_its_form() {
        // hashlib.pbkdf2_hmac("sha256", b"correct horse", bytes(range(16)), 600000)
        let kept = "pbkdf2-sha256$600000$AAECAwQFBgcICQoLDA0ODw==$lqWQTC4IyNpCMF28xdfPGOrSY21J9ZUmtgbyZpYoFHM=";
        let kept = PasswordHash::stored(kept.to_owned()).unwrap();
        assert!(kept.is_of("correct horse"));
        assert!(!kept.is_of("correct horsf") && !kept.is_of(""));
        let ours = PasswordHash::of("größe");
        let parts: Vec<&str> = ours.reveal().split('$').collect();
        assert_eq!(parts[..2], ["pbkdf2-sha256", "600000"]);
        assert_eq!((parts[2].len(), parts[3].len()), (24, 44));
        assert!(ours.is_of("größe"));
        assert_ne!(PasswordHash::of("größe"), ours, "another salt");
        assert_eq!(format!("{ours:?} {:?}", Temporary::random()), "*** ***");
        assert_eq!(Temporary::random().reveal().len(), 16);
    }

    #[test]
    fn what_is_no_hash_is_nobodys_and_costs_nothing() {
        for kept in [
            "x",
            "pbkdf2-sha256$0$AAAA$AAAA",
            "pbkdf2-sha256$4000000000$AAECAwQFBgcICQoLDA0ODw==$AAAA",
            "md5$1$AAAA$AAAA",
            "pbkdf2-sha256$1$AAAA$",
        ] {
            let kept = PasswordHash::stored(kept.to_owned()).unwrap();
            assert!(!kept.is_of("x") && !kept.is_of(""));
        }
        assert!(PasswordHash::stored(String::new()).is_none());
        assert!(!PasswordHash::nobodys("x"));
    }
}
