//! The keys: the private one, and the public ones as text.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use sha2::{Digest, Sha256};

/// `SubjectPublicKeyInfo` of Ed25519 before the 32 bytes of the key.
const SPKI: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";
/// More keys are not read: the one that signs, and as many as may have signed heads of traces before it.
const MOST: usize = 1 + 256;

/// A key could not be made or read. Says nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a signing key cannot be made or read")]
pub struct KeyError;

/// A private key. Prints as stars.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey {
    pkcs8: Vec<u8>,
    public: PublicKey,
}

impl SigningKey {
    /// A new one.
    ///
    /// # Errors
    /// The machine has no randomness.
    pub fn generate() -> Result<Self, KeyError> {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| KeyError)?;
        Self::read(made.as_ref())
    }

    /// From what [`Self::pkcs8`] returned.
    ///
    /// # Errors
    /// It is no such key.
    pub fn read(pkcs8: &[u8]) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8).map_err(|_| KeyError)?;
        let public = pair.public_key().as_ref();
        Ok(Self {
            public: PublicKey(public.try_into().map_err(|_| KeyError)?),
            pkcs8: pkcs8.to_vec(),
        })
    }

    /// For the store only.
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// What verifies its tokens.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn signature(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let pair = Ed25519KeyPair::from_pkcs8(&self.pkcs8).map_err(|_| KeyError)?;
        Ok(pair.sign(message).as_ref().to_vec())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(pub(crate) [u8; 32]);

impl PublicKey {
    /// Its id: 16 hexadecimal digits, which follow from the key.
    pub fn kid(&self) -> String {
        hex::encode(&Sha256::digest(self.0)[..8])
    }

    /// As text in PEM.
    pub fn to_pem(&self) -> String {
        let der = [&SPKI[..], &self.0].concat();
        format!("{BEGIN}\n{}\n{END}\n", STANDARD.encode(der))
    }
}

/// The public keys that are good.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublicKeys(Vec<PublicKey>);

impl FromIterator<PublicKey> for PublicKeys {
    fn from_iter<I: IntoIterator<Item = PublicKey>>(keys: I) -> Self {
        Self(keys.into_iter().take(MOST).collect())
    }
}

impl PublicKeys {
    /// From one block of PEM after another; what is no such key is left out.
    pub fn from_pem(text: &str) -> Self {
        let blocks = text.split(BEGIN).skip(1);
        let read = |block: &str| {
            let base64: String = block.split(END).next()?.split_whitespace().collect();
            let der = STANDARD.decode(base64).ok()?;
            let key = der.strip_prefix(&SPKI[..])?;
            Some(PublicKey(key.try_into().ok()?))
        };
        blocks.filter_map(read).collect()
    }

    /// As one block of PEM after another.
    pub fn to_pem(&self) -> String {
        self.0.iter().map(PublicKey::to_pem).collect()
    }

    /// Ids of the keys.
    pub fn ids(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(PublicKey::kid)
    }

    /// Whether a key is known.
    pub fn has(&self, kid: &str) -> bool {
        self.find(kid).is_some()
    }

    pub(crate) fn find(&self, kid: &str) -> Option<&PublicKey> {
        self.0.iter().find(|key| key.kid() == kid)
    }
}
