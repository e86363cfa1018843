//! Keys, ends of keys, names and questions of permission as anybody may present them.

use chrono::DateTime;
use tg_schemas::msg::IamRequest;
use tg_testkit::fuzz::run;

use super::{authorise, check};
use crate::secret::ApiKey;

#[test]
fn keys_as_they_are_presented() {
    let seeds: [&[u8]; 2] = [b"tg_0123456789abcdefABCDEF-_0123456789", "tg_ü".as_bytes()];
    run("keys as they are presented", &seeds, |bytes| {
        if let Some(key) = ApiKey::presented(&String::from_utf8_lossy(bytes)) {
            assert_eq!(key.hash().len(), 64);
            assert!(key.reveal().starts_with(&key.prefix()));
        }
    });
}

#[test]
fn ends_of_keys_and_names() {
    let seeds: [&[u8]; 5] = [
        b"2030-12-31T23:59:59.999999999+14:00",
        b"+262143-12-31 23:59:60",
        b"2030-12-31T23:59",
        b"-0001-02-29",
        "größe@example.org".as_bytes(),
    ];
    let now = DateTime::from_timestamp(1_900_000_000, 0).expect("a time");
    run("ends of keys", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(Some(end)) = check::expiry("expires", &text, now) {
            assert!(end > now);
        }
        let _ = check::required("name", &text);
        let _ = check::workspace_id("workspace", &text);
        let _ = check::roles("roles", &[text.into_owned()]);
    });
}

#[test]
fn tokens_and_public_keys_as_they_are_presented() {
    let key = tg_jwt::SigningKey::generate().expect("a key");
    let claims = tg_jwt::Claims::new("u", "acme", 0, 1_900_000_000);
    let token = key.sign(&claims).expect("a token");
    let pem = key.public().to_pem();
    let keys: tg_jwt::PublicKeys = [key.public()].into_iter().collect();
    let seeds: [&[u8]; 3] = [
        token.as_bytes(),
        pem.as_bytes(),
        b"eyJhbGciOiJub25lIn0.e30.",
    ];
    run("tokens as they are presented", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(found) = keys.verify(&text, 1_900_000_001) {
            assert_eq!(
                (&*text, &found),
                (token.as_str(), &claims),
                "nobody else signs"
            );
        }
        let _ = tg_jwt::PublicKeys::from_pem(&text);
        let _ = check::username("username", &text);
    });
}

#[test]
fn questions_of_permission() {
    let seeds: [&[u8]; 2] = [
        br#"{"workspace": "w", "flow": "f"}"#,
        br#"[{"capability": "graph:read", "resource": {"workspace": "w"}, "parameters": {"workspace": 3}}]"#,
    ];
    run("questions of permission", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        if let Ok(value) = serde_json::from_slice(bytes) {
            let _ = authorise::target(&value, &value);
        }
        let ask = IamRequest {
            authorise_checks: text.clone(),
            resource_json: text.clone(),
            parameters_json: text,
            ..IamRequest::default()
        };
        let _ = authorise::checks(&ask);
    });
}
