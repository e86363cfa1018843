//! Whom a token of the issuer is of: its claims, held against what is set. Pure.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::options::{OidcOptions, RoleMap};
use crate::external::{External, PREFIX};

/// Oldest token that is taken, in seconds: what the issuer took back since counts by then, however long its tokens are good.
const MAX_AGE: i64 = 3_600;
/// What tokens say that are made for clients and not for us.
const FOR_CLIENTS: [&str; 4] = ["nonce", "at_hash", "c_hash", "events"];
/// Longest name for people in bytes; the one who comes in is not kept out by it.
const MAX_NAME: usize = 255;

/// Who it is, if the token is for us and good now; else why not, for the log.
pub(super) fn read(
    options: &OidcOptions,
    map: &RoleMap,
    claims: &Map<String, Value>,
    now: i64,
) -> Result<External, &'static str> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(options.issuer.as_str()) {
        return Err("another issuer");
    }
    let is_us = |value: &Value| value.as_str() == Some(options.audience.as_str());
    let ours = match claims.get("aud") {
        Some(Value::Array(all)) => all.iter().any(is_us),
        Some(one) => is_us(one),
        None => false,
    };
    if !ours {
        return Err("another audience");
    }
    let leeway = options.leeway_secs as i64;
    let until = seconds(claims.get("exp"))
        .ok_or("no end")?
        .saturating_add(leeway);
    if until <= now {
        return Err("it has ended");
    }
    let made = seconds(claims.get("iat")).ok_or("no time at which it was made")?;
    let from = match claims.get("nbf") {
        None => made,
        some => seconds(some).ok_or("a time that is none")?.max(made),
    };
    if from > now.saturating_add(leeway) {
        return Err("it has not begun");
    }
    if made < now.saturating_sub(MAX_AGE).saturating_sub(leeway) {
        return Err("it is too old");
    }
    if FOR_CLIENTS.iter().any(|name| claims.contains_key(*name)) {
        return Err("it is made for a client");
    }
    let subject = text("sub").filter(|sub| !sub.is_empty());
    let subject = subject.ok_or("no subject")?;
    let roles = roles(map, found(claims, &options.roles_claim));
    if roles.is_empty() {
        return Err("no role of ours");
    }
    let home = match options.workspace_claim.as_str() {
        "" => options.workspace.as_str(),
        claim => found(claims, claim)
            .and_then(Value::as_str)
            .ok_or("no workspace")?,
    };
    let of_issuer = hex::encode(&Sha256::digest(&options.issuer)[..4]);
    let whole = Sha256::digest(format!("{}\0{subject}", options.issuer));
    let mut id = [0; 16];
    id.copy_from_slice(&whole[..16]);
    let shown = text("name").or_else(|| text("preferred_username"));
    let fits = |name: &&str| name.len() <= MAX_NAME && !name.chars().any(char::is_control);
    Ok(External {
        id: uuid::Builder::from_bytes(id).into_uuid().to_string(),
        username: format!("{}{of_issuer}:{subject}", PREFIX),
        name: shown.filter(fits).unwrap_or(subject).to_owned(),
        roles,
        home: home.to_owned(),
        until,
    })
}

/// Whole seconds of Unix; some write fractions.
fn seconds(value: Option<&Value>) -> Option<i64> {
    let value = value?;
    value
        .as_i64()
        .or_else(|| value.as_f64().map(|at| at as i64))
}

/// A claim by its name, or by the way to it.
fn found<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(name) {
        return Some(value);
    }
    let (first, rest) = name.split_once('.')?;
    found(claims.get(first)?.as_object()?, rest)
}

fn roles(map: &RoleMap, claim: Option<&Value>) -> BTreeSet<String> {
    let named: Vec<&str> = match claim {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => text.split(' ').collect(),
        _ => Vec::new(),
    };
    let ours = named.into_iter().filter_map(|name| map.get(name));
    ours.flatten().cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn options() -> OidcOptions {
        OidcOptions {
            issuer: "https://id.example".into(),
            audience: "us".into(),
            roles_claim: "realm.roles".into(),
            roles: "staff=reader,ed=writer".into(),
            ..OidcOptions::default()
        }
    }

    fn good() -> Value {
        json!({"iss": "https://id.example", "aud": ["x", "us"], "sub": "ada", "exp": NOW + 10,
               "iat": NOW, "realm": {"roles": ["staff", "king"]}})
    }

    fn told(options: &OidcOptions, claims: &Value) -> Result<External, &'static str> {
        let map = options.role_map().unwrap();
        read(options, &map, claims.as_object().unwrap(), NOW)
    }

    #[test]
    fn a_good_token_says_who_it_is() {
        let ada = told(&options(), &good()).unwrap();
        assert_eq!(ada.roles, BTreeSet::from(["reader".to_owned()]));
        assert_eq!((ada.home.as_str(), ada.until), ("default", NOW + 70));
        assert_eq!(told(&options(), &good()).unwrap().id, ada.id);
        let (mut other, mut of_other) = (options(), good());
        other.issuer = "https://id2.example".into();
        of_other["iss"] = json!(other.issuer);
        let same = told(&other, &of_other).unwrap();
        assert!(same.id != ada.id && same.username != ada.username);
        let with_claim = OidcOptions {
            workspace_claim: "tenant".into(),
            ..options()
        };
        assert_eq!(told(&with_claim, &good()), Err("no workspace"));
        let mut acme = good();
        acme["tenant"] = json!("acme");
        acme["realm"]["roles"] = json!("ed staff");
        let ada = told(&with_claim, &acme).unwrap();
        assert_eq!((ada.home.as_str(), ada.roles.len()), ("acme", 2));
    }

    #[test]
    fn what_is_not_for_us_or_not_now_is_refused() {
        for (claim, value, why) in [
            ("iss", json!("https://id.example/"), "another issuer"),
            ("iss", Value::Null, "another issuer"),
            ("aud", json!("them"), "another audience"),
            ("aud", Value::Null, "another audience"),
            ("exp", Value::Null, "no end"),
            ("exp", json!("soon"), "no end"),
            ("exp", json!(NOW - 60), "it has ended"),
            ("nbf", json!(NOW + 61), "it has not begun"),
            ("nbf", json!("now"), "a time that is none"),
            ("iat", json!(NOW + 61), "it has not begun"),
            ("sub", json!(""), "no subject"),
            ("sub", json!(7), "no subject"),
            ("realm", json!({"roles": ["king"]}), "no role of ours"),
            ("realm", json!("staff"), "no role of ours"),
        ] {
            let mut claims = good();
            claims[claim] = value;
            assert_eq!(told(&options(), &claims), Err(why), "{claim}");
        }
        let mut late = good();
        late["exp"] = json!(NOW - 59);
        assert!(told(&options(), &late).is_ok(), "within the leeway");
    }
}
