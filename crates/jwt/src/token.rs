//! Writing and reading tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::claims::{Claims, ISSUER, LIFETIME};
use crate::keys::{KeyError, PublicKeys, SigningKey};

/// Longer texts are no tokens.
pub const LONGEST: usize = 16 << 10;
/// The only algorithm.
const ALGORITHM: &str = "EdDSA";
/// By how much the clocks of two machines may differ, in seconds. The end of a token is not stretched by it.
pub const SKEW: i64 = 60;

/// The first part of a token.
#[derive(Serialize, Deserialize)]
struct Header {
    alg: String,
    kid: String,
    typ: String,
    /// What must be understood: nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crit: Option<Value>,
}

/// Why a token is none. For logs and for looking a key up, never for clients.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not of the form.
    #[error("no token")]
    Malformed,
    /// The key that it names is not known.
    #[error("the key is not known")]
    UnknownKey,
    /// Not signed by the key that it names.
    #[error("the signature is wrong")]
    Signature,
    /// Signed, and not good now or not by this issuer.
    #[error("the claims do not hold")]
    Claims,
}

/// Whether a text has the form of a token, so that it is worth a look.
pub fn is_plausible(text: &str) -> bool {
    text.len() <= LONGEST && text.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl SigningKey {
    /// A token.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn sign(&self, claims: &Claims) -> Result<String, KeyError> {
        let header = Header {
            alg: ALGORITHM.to_owned(),
            kid: self.public().kid(),
            typ: "JWT".to_owned(),
            crit: None,
        };
        let part = |json: serde_json::Result<Vec<u8>>| {
            json.map(|json| URL_SAFE_NO_PAD.encode(json))
                .map_err(|_| KeyError)
        };
        let header = part(serde_json::to_vec(&header))?;
        let claims = part(serde_json::to_vec(claims))?;
        let message = format!("{header}.{claims}");
        let signature = URL_SAFE_NO_PAD.encode(self.signature(message.as_bytes())?);
        Ok(format!("{message}.{signature}"))
    }
}

impl PublicKeys {
    /// What a token says, if it is signed by one of these keys and good at this second of Unix.
    ///
    /// # Errors
    /// Why it is not.
    pub fn verify(&self, token: &str, now: i64) -> Result<Claims, Refusal> {
        if !is_plausible(token) {
            return Err(Refusal::Malformed);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(Refusal::Malformed)?;
        let (header, claims) = message.split_once('.').ok_or(Refusal::Malformed)?;
        let header: Header = read(header)?;
        if header.alg != ALGORITHM || header.typ != "JWT" || header.crit.is_some() {
            return Err(Refusal::Malformed);
        }
        let key = self.find(&header.kid).ok_or(Refusal::UnknownKey)?;
        let signature = decoded(signature)?;
        UnparsedPublicKey::new(&ED25519, key.0)
            .verify(message.as_bytes(), &signature)
            .map_err(|_| Refusal::Signature)?;
        let claims: Claims = read(claims)?;
        let holds = claims.iss == ISSUER
            && !claims.sub.is_empty()
            && !claims.default_workspace.is_empty()
            && claims.exp > now
            && claims.iat <= now.saturating_add(SKEW)
            && claims
                .nbf
                .is_none_or(|from| from <= now.saturating_add(SKEW))
            && claims.exp.saturating_sub(claims.iat) <= LIFETIME;
        holds.then_some(claims).ok_or(Refusal::Claims)
    }
}

fn read<T: for<'a> Deserialize<'a>>(part: &str) -> Result<T, Refusal> {
    serde_json::from_slice(&decoded(part)?).map_err(|_| Refusal::Malformed)
}

fn decoded(part: &str) -> Result<Vec<u8>, Refusal> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| Refusal::Malformed)
}
