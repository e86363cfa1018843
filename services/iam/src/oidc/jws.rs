//! Tokens of an external issuer: which keys it has, and whether one of them signed. Pure.
//!
//! The key says which algorithm it is for, the token only which key; nothing symmetric is ever among them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// More keys are not read.
pub(super) const MOST: usize = 64;
/// What an access token may say that it is.
const TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

/// A document of keys, as far as it is looked at.
#[derive(Debug, Deserialize)]
pub(super) struct KeySet {
    keys: Vec<Value>,
}

/// One of its keys.
#[derive(Debug, Clone, Deserialize)]
struct Jwk {
    kid: String,
    kty: String,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default, rename = "use")]
    usage: Option<String>,
    #[serde(default)]
    crv: String,
    #[serde(default)]
    n: String,
    #[serde(default)]
    e: String,
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
}

/// A key that can verify.
#[derive(Debug, Clone)]
enum Key {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The keys of an issuer.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys(Vec<(String, Option<String>, Key)>);

impl From<KeySet> for Keys {
    /// What cannot verify, or is for something else, is left out.
    fn from(set: KeySet) -> Self {
        let read = |value: Value| {
            let jwk: Jwk = serde_json::from_value(value).ok()?;
            let key = jwk.key().filter(|_| !jwk.kid.is_empty())?;
            Some((jwk.kid, jwk.alg, key))
        };
        Self(set.keys.into_iter().take(MOST).filter_map(read).collect())
    }
}

impl Jwk {
    fn key(&self) -> Option<Key> {
        if self.usage.as_deref().is_some_and(|usage| usage != "sig") {
            return None;
        }
        match (self.kty.as_str(), self.crv.as_str()) {
            ("RSA", _) => Some(Key::Rsa {
                n: decoded(&self.n)?,
                e: decoded(&self.e)?,
            }),
            ("EC", "P-256") => {
                let (x, y) = (decoded(&self.x)?, decoded(&self.y)?);
                Some(Key::P256([&[4][..], &x, &y].concat()))
            }
            ("OKP", "Ed25519") => Some(Key::Ed25519(decoded(&self.x)?)),
            _ => None,
        }
    }
}

impl Key {
    fn verifies(&self, alg: &str, message: &[u8], signature: &[u8]) -> bool {
        let plain = |with: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(with, key).verify(message, signature)
        };
        let outcome = match (self, alg) {
            (Self::Rsa { n, e }, "RS256" | "PS256") => {
                let with = match alg {
                    "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
                    _ => &signature::RSA_PSS_2048_8192_SHA256,
                };
                RsaPublicKeyComponents { n, e }.verify(with, message, signature)
            }
            (Self::P256(key), "ES256") => plain(&signature::ECDSA_P256_SHA256_FIXED, key),
            (Self::Ed25519(key), "EdDSA") => plain(&signature::ED25519, key),
            _ => return false,
        };
        outcome.is_ok()
    }
}

/// The first part of a token.
#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: String,
    #[serde(default)]
    typ: Option<String>,
    /// What must be understood: nothing is.
    #[serde(default)]
    crit: Option<Value>,
}

/// A text of the form of a token whose signature nobody has looked at.
pub(super) struct Unverified {
    header: Header,
    message: String,
    signature: Vec<u8>,
    claims: Map<String, Value>,
}

impl Unverified {
    /// `None`: no token, or by an algorithm that is never taken.
    pub(super) fn read(text: &str) -> Option<Self> {
        if !tg_jwt::is_plausible(text) {
            return None;
        }
        let (message, signature) = text.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let header: Header = json(header)?;
        let typ = header.typ.as_deref().unwrap_or("jwt").to_lowercase();
        let known = ["RS256", "PS256", "ES256", "EdDSA"].contains(&header.alg.as_str());
        let fits = known && TYPES.contains(&typ.as_str()) && header.crit.is_none();
        fits.then_some(Self {
            message: message.to_owned(),
            signature: decoded(signature)?,
            claims: json(claims)?,
            header,
        })
    }

    /// Which key it names.
    pub(super) fn kid(&self) -> &str {
        &self.header.kid
    }

    /// Whether it says that it is of an issuer: no other is asked for keys.
    pub(super) fn is_of(&self, issuer: &str) -> bool {
        self.claims.get("iss").and_then(Value::as_str) == Some(issuer)
    }

    /// What it says, if one of these keys has signed it.
    pub(super) fn verified(self, keys: &Keys) -> Option<Map<String, Value>> {
        let alg = self.header.alg.as_str();
        let mut fitting = keys.0.iter().filter(|(kid, of, _)| {
            *kid == self.header.kid && of.as_deref().is_none_or(|of| of == alg)
        });
        fitting
            .any(|(_, _, key)| key.verifies(alg, self.message.as_bytes(), &self.signature))
            .then_some(self.claims)
    }
}

impl Keys {
    pub(super) fn has(&self, kid: &str) -> bool {
        self.0.iter().any(|(known, ..)| known == kid)
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn json<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&decoded(part)?).ok()
}

#[cfg(test)]
pub(super) mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::json;

    use super::*;

    /// A key of P-256, its JWK, and what signs by it.
    pub(crate) struct Signer(EcdsaKeyPair);

    impl Signer {
        pub(crate) fn new() -> Self {
            let (with, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
            let made = EcdsaKeyPair::generate_pkcs8(with, &random).unwrap();
            Self(EcdsaKeyPair::from_pkcs8(with, made.as_ref(), &random).unwrap())
        }

        pub(crate) fn jwk(&self, kid: &str) -> Value {
            let point = self.0.public_key().as_ref();
            let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
            json!({"kid": kid, "kty": "EC", "crv": "P-256", "use": "sig",
                   "x": text(&point[1..33]), "y": text(&point[33..])})
        }

        pub(crate) fn token(&self, header: &Value, claims: &Value) -> String {
            let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let message = format!("{}.{}", part(header), part(claims));
            let signature = self.0.sign(&SystemRandom::new(), message.as_bytes());
            let signature = URL_SAFE_NO_PAD.encode(signature.unwrap().as_ref());
            format!("{message}.{signature}")
        }
    }

    fn keys(all: &[Value]) -> Keys {
        serde_json::from_value::<KeySet>(json!({"keys": all}))
            .unwrap()
            .into()
    }

    #[test]
    fn only_the_named_key_and_its_algorithm_verify() {
        let (one, other) = (Signer::new(), Signer::new());
        let known = keys(&[
            one.jwk("a"),
            other.jwk("b"),
            json!({"kty": "oct", "k": "x", "kid": "h"}),
        ]);
        let claims = json!({"iss": "i"});
        let good = one.token(
            &json!({"alg": "ES256", "kid": "a", "typ": "at+jwt"}),
            &claims,
        );
        let read = Unverified::read(&good).unwrap();
        assert!(read.is_of("i") && !read.is_of("j"));
        assert!(read.verified(&known).is_some());
        // Another's key, no key, and another algorithm for the same key.
        for header in [
            json!({"alg": "ES256", "kid": "b"}),
            json!({"alg": "ES256", "kid": "h"}),
            json!({"alg": "EdDSA", "kid": "a"}),
            json!({"alg": "RS256", "kid": "a"}),
        ] {
            let token = Unverified::read(&one.token(&header, &claims)).unwrap();
            assert!(token.verified(&known).is_none(), "{header}");
        }
        for header in [
            json!({"alg": "none", "kid": "a"}),
            json!({"alg": "HS256", "kid": "a"}),
            json!({"alg": "ES256"}),
            json!({"alg": "ES256", "kid": "a", "crit": ["b64"]}),
            json!({"alg": "ES256", "kid": "a", "typ": "logout+jwt"}),
        ] {
            assert!(
                Unverified::read(&one.token(&header, &claims)).is_none(),
                "{header}"
            );
        }
        let mut said = one.jwk("a");
        said["use"] = json!("enc");
        assert!(!keys(&[said]).has("a"));
    }
}
