//! What is a token, and what only looks like one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::*;

const NOW: i64 = 1_800_000_000;

fn claims() -> Claims {
    Claims::new("u", "acme", 3, NOW)
}

fn known(keys: &[&SigningKey]) -> PublicKeys {
    keys.iter().map(|key| key.public()).collect()
}

/// A token with any header and claims, signed by a key.
fn forged(key: &SigningKey, header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(header), part(claims));
    let signature = key.signature(message.as_bytes()).unwrap();
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn a_token_is_good_for_an_hour_and_by_its_key_only() {
    let (key, other) = (
        SigningKey::generate().unwrap(),
        SigningKey::generate().unwrap(),
    );
    let token = key.sign(&claims()).unwrap();
    let both = known(&[&other, &key]);
    assert_eq!(both.verify(&token, NOW), Ok(claims()));
    assert_eq!(both.verify(&token, NOW + LIFETIME - 1), Ok(claims()));
    assert_eq!(both.verify(&token, NOW + LIFETIME), Err(Refusal::Claims));
    let without = known(&[&other]);
    assert_eq!(without.verify(&token, NOW), Err(Refusal::UnknownKey));
    let header = token.split('.').next().unwrap();
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    let kid = key.public().kid();
    assert_eq!(header, json!({"alg": "EdDSA", "kid": kid, "typ": "JWT"}));
    assert!(kid.len() == 16 && kid.bytes().all(|digit| digit.is_ascii_hexdigit()));
}

#[test]
fn a_key_comes_back_from_its_bytes_and_texts_and_never_prints() {
    let (key, other) = (
        SigningKey::generate().unwrap(),
        SigningKey::generate().unwrap(),
    );
    assert_eq!(SigningKey::read(key.pkcs8()), Ok(key.clone()));
    assert_eq!(SigningKey::read(b"nothing"), Err(KeyError));
    assert_eq!(format!("{key:?}"), "***");
    let both = known(&[&key, &other]);
    assert_eq!(PublicKeys::from_pem(&both.to_pem()), both);
    assert_eq!(PublicKeys::from_pem("x"), PublicKeys::default());
}

/// As many as the agent keeps of those that signed heads.
#[test]
fn all_keys_that_ever_signed_come_back_from_one_text() {
    let all: Vec<_> = (0..257).map(|_| SigningKey::generate().unwrap()).collect();
    let pem: String = all.iter().map(|key| key.public().to_pem()).collect();
    let (read, oldest) = (PublicKeys::from_pem(&pem), &all[256]);
    let signature = oldest.sign_text("head").unwrap();
    let kid = oldest.public().kid();
    assert_eq!(read.verify_text(&kid, "head", &signature), Ok(()));
}

#[test]
fn what_only_looks_like_a_token_is_refused() {
    let key = SigningKey::generate().unwrap();
    let (keys, kid) = (known(&[&key]), key.public().kid());
    let token = key.sign(&claims()).unwrap();
    let good = serde_json::to_value(claims()).unwrap();
    let header = |alg: &str| json!({"alg": alg, "kid": kid, "typ": "JWT"});
    assert!(
        keys.verify(&forged(&key, &header("EdDSA"), &good), NOW)
            .is_ok()
    );
    for alg in ["none", "HS256", "eddsa", "ES256", "RS256"] {
        let refused = keys.verify(&forged(&key, &header(alg), &good), NOW);
        assert_eq!(refused, Err(Refusal::Malformed), "{alg}");
    }
    let crit = json!({"alg": "EdDSA", "kid": kid, "typ": "JWT", "crit": ["b64"]});
    assert_eq!(
        keys.verify(&forged(&key, &crit, &good), NOW),
        Err(Refusal::Malformed)
    );
    for kid in ["", "../../etc/passwd", "' OR 1=1 --", "0123456789abcdef"] {
        let header = json!({"alg": "EdDSA", "kid": kid, "typ": "JWT"});
        let refused = keys.verify(&forged(&key, &header, &good), NOW);
        assert_eq!(refused, Err(Refusal::UnknownKey), "{kid}");
    }
    // Its own key in the header is not looked at.
    let stranger = SigningKey::generate().unwrap();
    let own = json!({"alg": "EdDSA", "kid": kid, "typ": "JWT", "jwk": {"x": "mine"}});
    assert_eq!(
        keys.verify(&forged(&stranger, &own, &good), NOW),
        Err(Refusal::Signature)
    );
    for (claim, value) in [
        ("iss", json!("somebody")),
        ("sub", json!("")),
        ("default_workspace", json!("")),
        ("exp", json!(NOW)),
        ("exp", json!(NOW + 10 * LIFETIME)),
        ("nbf", json!(NOW + 600)),
        ("iat", json!(NOW + 600)),
        ("iat", json!(i64::MIN)),
    ] {
        let mut claims = good.clone();
        claims[claim] = value;
        let refused = keys.verify(&forged(&key, &header("EdDSA"), &claims), NOW);
        assert_eq!(refused, Err(Refusal::Claims), "{claims}");
    }
    let cut = token.rsplit_once('.').unwrap().0;
    let long = format!("{token}{}", "A".repeat(LONGEST));
    for text in [
        "",
        "..",
        "a.b.c",
        cut,
        &format!("{cut}."),
        &format!("{token}="),
        &long,
    ] {
        assert!(keys.verify(text, NOW).is_err(), "{text:.40}");
    }
    let mut turned = token.clone().into_bytes();
    let middle = turned.len() / 2;
    turned[middle] = if turned[middle] == b'A' { b'B' } else { b'A' };
    assert!(
        keys.verify(&String::from_utf8(turned).unwrap(), NOW)
            .is_err()
    );
}
