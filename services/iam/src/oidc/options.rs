//! What is set of an external issuer.

use std::collections::{BTreeMap, BTreeSet};

use tg_provider_http::{address, is_loopback};
use tg_settings::SettingError;

use crate::engine::Role;

tg_settings::options! {
    /// Logins by tokens of an external issuer.
    pub struct OidcOptions {
        /// The OpenID provider whose JWT access tokens are good for a login, as it names itself: `https://`, or `http://` on
        /// loopback. Empty: none. With it `iam.oidc.audience` and `iam.oidc.roles` are required.
        issuer: String = String::new();
        /// What a token must be made out to (`aud`).
        audience: String = String::new();
        /// Where the issuer's keys are, if that is not at its own address: keys are fetched from nowhere else.
        jwks: String = String::new();
        /// The claim that names roles, as a list or a text with spaces between; dots lead into objects.
        roles_claim: String = "roles".to_owned();
        /// Which role of ours each of the issuer's is: `staff=reader, editors=writer`. What is not named counts nothing, and
        /// without any role nobody comes in.
        roles: String = String::new();
        /// The claim that names the home workspace; empty: it is `iam.oidc.workspace` for all.
        workspace_claim: String = String::new();
        /// The home workspace where no claim names it.
        workspace: String = "default".to_owned();
        /// Seconds by which the clocks may differ.
        leeway_secs: usize = 60, Whole(0..=300);
    }
}

/// Roles of the issuer, and which of ours each is.
pub(super) type RoleMap = BTreeMap<String, BTreeSet<String>>;

impl OidcOptions {
    /// What is wrong, by key.
    pub fn faults(&self) -> Vec<SettingError> {
        if self.issuer.is_empty() {
            return Vec::new();
        }
        let key = |name: &str| format!("iam.oidc.{name}");
        let mut faults = Vec::new();
        faults.extend(safe(&key("issuer"), &self.issuer).err());
        if !self.jwks.is_empty() {
            faults.extend(safe(&key("jwks"), &self.jwks).err());
        }
        for (name, text) in [
            ("audience", &self.audience),
            ("roles_claim", &self.roles_claim),
        ] {
            if text.is_empty() {
                faults.push(SettingError::new(key(name), "is required with an issuer"));
            }
        }
        if self.workspace_claim.is_empty() && self.workspace.is_empty() {
            let text = "is required where no claim names the workspace";
            faults.push(SettingError::new(key("workspace"), text));
        }
        if self.role_map().is_none_or(|map| map.is_empty()) {
            let text =
                "must say which role each role of the issuer is, like staff=reader, ops=admin";
            faults.push(SettingError::new(key("roles"), text));
        }
        faults
    }

    /// `None` where it cannot be read.
    pub(super) fn role_map(&self) -> Option<RoleMap> {
        let mut map = RoleMap::new();
        let pairs = self.roles.split(',').map(str::trim);
        for pair in pairs.filter(|pair| !pair.is_empty()) {
            let (theirs, ours) = pair.rsplit_once('=')?;
            let (theirs, ours) = (theirs.trim(), ours.trim());
            if theirs.is_empty() || Role::find(ours).is_none() {
                return None;
            }
            map.entry(theirs.to_owned())
                .or_default()
                .insert(ours.to_owned());
        }
        Some(map)
    }
}

/// An address that a stranger on the way cannot answer for.
pub(super) fn safe(key: &str, text: &str) -> Result<(), SettingError> {
    address(key, text)?;
    let fault = |why: &str| Err(SettingError::new(key, why));
    if text.contains(['?', '#', '@']) {
        return fault("must have no user, question or fragment");
    }
    match origin(text) {
        Some(("https", _)) => Ok(()),
        Some(_) if is_loopback(text) => Ok(()),
        _ => fault("must start with https://; http:// is for loopback only"),
    }
}

/// Scheme, and host with port.
fn origin(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    Some((scheme, rest.split('/').next()?))
}

/// Whether two addresses are of one server.
pub(super) fn same_origin(one: &str, other: &str) -> bool {
    let lower = |text: &str| origin(text).map(|(s, h)| (s.to_lowercase(), h.to_lowercase()));
    lower(one).is_some_and(|one| Some(one) == lower(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> OidcOptions {
        OidcOptions {
            issuer: "https://id.example/realm".into(),
            audience: "us".into(),
            roles: "staff=reader, a=b=writer,staff=writer".into(),
            ..OidcOptions::default()
        }
    }

    #[test]
    fn every_mistake_is_told_with_its_key() {
        assert_eq!(OidcOptions::default().faults(), vec![]);
        assert_eq!(good().faults(), vec![]);
        let map = good().role_map().unwrap();
        assert_eq!(map["staff"].len(), 2);
        assert!(map.contains_key("a=b"));
        for issuer in [
            "http://id.example",
            "http://127.0.0.1.example",
            "http://127.0.0.1@id.example",
            "https://u@id.example",
            "ftp://localhost",
        ] {
            let wrong = OidcOptions {
                issuer: issuer.into(),
                ..good()
            };
            let told = wrong.faults()[0].to_string();
            assert!(told.starts_with("iam.oidc.issuer: must "), "{told}");
        }
        for issuer in [
            "http://127.0.0.1:9/x",
            "http://localhost:9",
            "http://[::1]:9",
        ] {
            assert!(safe("k", issuer).is_ok(), "{issuer}");
        }
        let wrong = OidcOptions {
            audience: String::new(),
            roles: "staff=king".into(),
            ..good()
        };
        assert_eq!(wrong.faults().len(), 2);
    }

    #[test]
    fn keys_come_from_the_issuer_itself() {
        assert!(same_origin("https://a/x", "https://A/y"));
        assert!(!same_origin("https://a/x", "https://a:444/x"));
        assert!(!same_origin("https://a/x", "http://a/x"));
        assert!(!same_origin("https://a/x", "https://a.b/x"));
    }
}
