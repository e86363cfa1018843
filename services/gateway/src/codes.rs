//! Codes of users who signed in for a client: each is good once, within a minute. This process alone knows them, by their hashes.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use uuid::Uuid;

use crate::engine::oauth::Asked;

/// How long a code is good.
const LIFETIME: Duration = Duration::from_secs(60);
/// Most codes at a time. One more takes the place of the oldest: nobody who signs in again and again keeps others out, and most
/// codes are used within a second.
const MOST: usize = 1_024;

type Hash = [u8; 32];

/// What a code is exchanged for. It has no text form, as it holds a token.
pub(crate) struct Granted {
    /// What the client asked for.
    pub(crate) asked: Asked,
    /// The token of the user.
    pub(crate) token: String,
    /// When the token ends, as the iam service says it.
    pub(crate) expires: String,
}

struct Kept {
    granted: Granted,
    until: Instant,
}

/// All codes.
#[derive(Default)]
pub(crate) struct Codes(Mutex<BTreeMap<Hash, Kept>>);

fn hash(code: &str) -> Hash {
    Sha256::digest(code).into()
}

impl Codes {
    /// Makes a code.
    pub(crate) fn put(&self, granted: Granted, now: Instant) -> String {
        let code = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let until = now + LIFETIME;
        let mut codes = self.0.lock();
        codes.retain(|_, kept| kept.until > now);
        if codes.len() >= MOST {
            let oldest = codes.iter().min_by_key(|(_, kept)| kept.until);
            if let Some(oldest) = oldest.map(|(hash, _)| *hash) {
                codes.remove(&oldest);
            }
        }
        codes.insert(hash(&code), Kept { granted, until });
        code
    }

    /// Uses a code up.
    pub(crate) fn take(&self, code: &str, now: Instant) -> Option<Granted> {
        let kept = self.0.lock().remove(&hash(code))?;
        (kept.until > now).then_some(kept.granted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::oauth::{Client, Given};

    fn granted(token: &str) -> Granted {
        let back = "http://127.0.0.1:7/".to_owned();
        let client = Client::new("c", vec![back.clone()], |_| false).unwrap();
        let given = [
            ("response_type", "code".to_owned()),
            ("client_id", client.id().unwrap()),
            ("redirect_uri", back),
            ("code_challenge", "c".repeat(43)),
            ("code_challenge_method", "S256".to_owned()),
        ];
        let given: Given = given.map(|(name, value)| (name.to_owned(), value)).into();
        let (_, asked) = Asked::read(&given, "http://gate", |_| false).unwrap();
        Granted {
            asked,
            token: token.to_owned(),
            expires: String::new(),
        }
    }

    #[test]
    fn a_code_is_good_once_and_for_a_minute() {
        let codes = Codes::default();
        let now = Instant::now();
        let [first, late] = ["t", "u"].map(|token| codes.put(granted(token), now));
        assert_ne!(first, late);
        assert!(codes.take("another", now).is_none());
        let taken = codes.take(&first, now).map(|granted| granted.token);
        assert_eq!(taken.as_deref(), Some("t"));
        assert!(codes.take(&first, now).is_none());
        assert!(codes.take(&late, now + LIFETIME).is_none());
    }

    #[test]
    fn one_code_too_many_takes_the_place_of_the_oldest() {
        let codes = Codes::default();
        let now = Instant::now();
        let at = |number: usize| now + Duration::from_micros(number as u64);
        let all: Vec<String> = (0..=MOST)
            .map(|number| codes.put(granted("t"), at(number)))
            .collect();
        assert_eq!(codes.0.lock().len(), MOST);
        assert!(codes.take(&all[0], at(MOST)).is_none());
        assert!(codes.take(&all[1], at(MOST)).is_some());
        assert!(codes.take(&all[MOST], at(MOST)).is_some());
        // Those that are over make room.
        codes.put(granted("t"), at(MOST) + LIFETIME);
        assert_eq!(codes.0.lock().len(), 1);
    }
}
