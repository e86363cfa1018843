//! Documents of keys, tokens and claims as an issuer, or somebody who says that he is one, may present them.

use serde_json::{Map, Value, json};
use tg_testkit::fuzz::run;

use super::claims;
use super::jws::tests::Signer;
use super::jws::{KeySet, Keys, MOST, Unverified};
use super::options::OidcOptions;
use crate::external::PREFIX;

const NOW: i64 = 1_800_000_000;

fn options() -> OidcOptions {
    OidcOptions {
        issuer: "https://id.example".into(),
        audience: "us".into(),
        roles_claim: "realm.roles".into(),
        workspace_claim: "tenant".into(),
        roles: "staff=reader,ed=writer".into(),
        ..OidcOptions::default()
    }
}

fn good() -> Value {
    json!({"iss": "https://id.example", "aud": ["x", "us"], "sub": "ada", "exp": NOW + 10, "iat": NOW,
           "nbf": NOW, "name": "Ada", "tenant": "acme", "realm": {"roles": ["staff", "king"]}})
}

#[test]
fn documents_of_keys() {
    let signer = Signer::new();
    let good =
        json!({"keys": [signer.jwk("a"), {"kty": "RSA", "kid": "r", "n": "AQAB", "e": "AQAB"}]});
    let (good, many) = (
        good.to_string(),
        json!({"keys": vec![signer.jwk("a"); MOST]}).to_string(),
    );
    let token = signer.token(&json!({"alg": "ES256", "kid": "a"}), &json!({"iss": "i"}));
    let seeds: [&[u8]; 4] = [
        good.as_bytes(),
        many.as_bytes(),
        br#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "", "x": "AA", "use": 3}, null, []]}"#,
        br#"{"keys": {}}"#,
    ];
    run("documents of keys of an issuer", &seeds, |bytes| {
        let Ok(set) = serde_json::from_slice::<KeySet>(bytes) else {
            return;
        };
        let keys = Keys::from(set);
        assert!(keys.count() <= MOST);
        // Whatever a key is made of, a signature is held against it.
        for kid in ["a", "r", ""] {
            let known = keys.has(kid);
            assert!(!(known && kid.is_empty()), "a key without a name");
        }
        let read = Unverified::read(&token).expect("a token");
        let _ = read.verified(&keys);
    });
}

#[test]
fn tokens_of_an_issuer() {
    let signer = Signer::new();
    let token = signer.token(
        &json!({"alg": "ES256", "kid": "a", "typ": "at+jwt"}),
        &good(),
    );
    let set: KeySet = serde_json::from_value(json!({"keys": [signer.jwk("a")]})).expect("keys");
    let keys = Keys::from(set);
    let symmetric = signer.token(&json!({"alg": "HS256", "kid": "a"}), &good());
    let seeds: [&[u8]; 3] = [
        token.as_bytes(),
        symmetric.as_bytes(),
        b"eyJhbGciOiJub25lIiwia2lkIjoiYSJ9.e30.",
    ];
    run("tokens of an issuer", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let Some(read) = Unverified::read(&text) else {
            return;
        };
        let _ = (read.is_of("https://id.example"), keys.has(read.kid()));
        if read.verified(&keys).is_some() {
            assert_eq!(&*text, token.as_str(), "nobody else signs");
        }
    });
}

#[test]
fn claims_of_an_issuer() {
    let options = options();
    let map = options.role_map().expect("roles");
    let good = good().to_string();
    let seeds: [&[u8]; 4] = [
        good.as_bytes(),
        br#"{"iss": "https://id.example", "aud": "us", "sub": "a", "exp": 1e300, "iat": -1e300, "nbf": 9223372036854775807}"#,
        br#"{"realm.roles": "ed staff", "realm": {"roles": {"roles": []}}, "tenant": {"a": "b"}}"#,
        br#"{"iss": "https://id.example", "aud": [], "sub": "\u0000", "name": "\u0007", "iat": 1800000000.5, "exp": 18446744073709551615}"#,
    ];
    run("claims of an issuer", &seeds, |bytes| {
        let Ok(claims) = serde_json::from_slice::<Map<String, Value>>(bytes) else {
            return;
        };
        for now in [NOW, i64::MAX, i64::MIN] {
            if let Ok(who) = claims::read(&options, &map, &claims, now) {
                assert!(who.until > now && !who.roles.is_empty());
                assert!(who.username.starts_with(PREFIX));
                assert!(
                    who.roles
                        .iter()
                        .all(|role| ["reader", "writer"].contains(&role.as_str()))
                );
            }
        }
    });
}
