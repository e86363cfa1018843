//! Signatures over texts that are no tokens, such as the heads of traces. A key signs the one or the other, never both.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, UnparsedPublicKey};

use crate::keys::{KeyError, PublicKeys, SigningKey};
use crate::token::Refusal;

impl SigningKey {
    /// The signature of a text, in base64.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn sign_text(&self, text: &str) -> Result<String, KeyError> {
        Ok(STANDARD.encode(self.signature(text.as_bytes())?))
    }
}

impl PublicKeys {
    /// Whether the key with this id has signed a text.
    ///
    /// # Errors
    /// [`Refusal::UnknownKey`], [`Refusal::Malformed`] for a signature that is not in base64, and [`Refusal::Signature`].
    pub fn verify_text(&self, kid: &str, text: &str, signature: &str) -> Result<(), Refusal> {
        let key = self.find(kid).ok_or(Refusal::UnknownKey)?;
        let signature = STANDARD.decode(signature);
        let signature = signature.map_err(|_| Refusal::Malformed)?;
        UnparsedPublicKey::new(&ED25519, &key.0)
            .verify(text.as_bytes(), &signature)
            .map_err(|_| Refusal::Signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_signed_by_one_key() {
        let (key, other) = (
            SigningKey::generate().unwrap(),
            SigningKey::generate().unwrap(),
        );
        let kid = key.public().kid();
        let signature = key.sign_text("a\n").unwrap();
        let known: PublicKeys = [key.public()].into_iter().collect();
        assert_eq!(known.verify_text(&kid, "a\n", &signature), Ok(()));
        assert_eq!(
            known.verify_text(&kid, "b\n", &signature),
            Err(Refusal::Signature)
        );
        let forged = other.sign_text("a\n").unwrap();
        assert_eq!(
            known.verify_text(&kid, "a\n", &forged),
            Err(Refusal::Signature)
        );
        assert_eq!(known.verify_text(&kid, "a\n", "?"), Err(Refusal::Malformed));
        let kid = other.public().kid();
        assert_eq!(
            known.verify_text(&kid, "a\n", &forged),
            Err(Refusal::UnknownKey)
        );
    }
}
