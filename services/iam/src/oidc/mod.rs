//! Logins by tokens of an external issuer (OpenID Connect): its keys by discovery, its claims by what is set.
//!
//! * `options`: what is set. `jws`: keys and signatures. `claims`: whom a token is of.
//! * `keys`: the keys, as they are remembered and looked up anew. Here: as they are fetched.
//!
//! An issuer is asked only for what says that it is of this issuer, by few at once, and seldom: no more is in its way than
//! that logins by its tokens wait. Nothing of a token is logged.

mod claims;
#[cfg(test)]
mod fuzz;
mod jws;
mod keys;
mod options;

use serde::Deserialize;
use tg_mesh::clock;
use tg_provider_http::{HttpClient, HttpError, Limits, NoClient};
use tg_schemas::Error;
use tg_schemas::msg::IamRequest;
use tokio::time::Instant;

pub use options::OidcOptions;

use crate::attempts::{Attempt, Attempts};
use crate::engine::auth_failed;
use crate::external::External;
use jws::{KeySet, Keys, Unverified};
use keys::{KnownKeys, LOOK};
use options::{RoleMap, safe, same_origin};

/// Largest document of an issuer in bytes.
const DOCUMENT: usize = 256 << 10;

/// What the discovery document must say.
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

/// The issuer whose tokens are taken.
pub(crate) struct Issuer {
    options: OidcOptions,
    map: RoleMap,
    http: HttpClient,
    keys: KnownKeys,
    attempts: Attempts,
}

impl Issuer {
    /// `None` where none is set, or what is set is wrong, which is told at the start.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub(crate) fn new(options: &OidcOptions) -> Result<Option<Self>, NoClient> {
        let map = options.role_map().filter(|_| options.faults().is_empty());
        let (false, Some(map)) = (options.issuer.is_empty(), map) else {
            return Ok(None);
        };
        let limits = Limits {
            connect: LOOK,
            silence: Some(LOOK),
            idle: 1,
            redirects: 0,
            answer: DOCUMENT,
            ..Limits::default()
        };
        // All that is asked for is there.
        let server = match options.jwks.as_str() {
            "" => options.issuer.as_str(),
            keys => keys,
        };
        Ok(Some(Self {
            http: HttpClient::new(server, limits)?,
            options: options.clone(),
            map,
            keys: KnownKeys::default(),
            attempts: Attempts::default(),
        }))
    }

    /// Whom the token of a login is of. Every reason to refuse one reads the same.
    pub(crate) async fn login(&self, ask: &IamRequest) -> Result<External, Error> {
        let (token, address) = (ask.api_key.as_str(), ask.client_ip.as_str());
        let attempt = Attempt::new(token, address);
        let from = Attempt::coming_in(None, address);
        self.attempts.allow(&attempt, Instant::now())?;
        self.attempts.allow(&from, Instant::now())?;
        let told = |why: &'static str| {
            tracing::info!(why, "a token of an external issuer was refused");
            auth_failed()
        };
        let refused = |why: &'static str| {
            self.attempts.count(&attempt, Instant::now());
            told(why)
        };
        let read = Unverified::read(token).ok_or_else(|| refused("it is none"))?;
        if !read.is_of(&self.options.issuer) {
            return Err(refused("another issuer"));
        }
        let keys = self.keys.now(read.kid(), address, || self.look()).await?;
        let claims = read.verified(&keys);
        let claims = claims.ok_or_else(|| refused("no key of the issuer has signed it"))?;
        let now = clock::now().timestamp();
        let who = claims::read(&self.options, &self.map, &claims, now).map_err(|why| {
            // Whoever has it has guessed nothing, as long as they do not go on with it.
            self.attempts.count_again(&attempt, Instant::now());
            told(why)
        })?;
        let came = Attempt::coming_in(Some(&who.id), address);
        self.attempts.allow(&came, Instant::now())?;
        self.attempts.count(&came, Instant::now());
        Ok(who)
    }

    async fn look(&self) -> Result<Keys, String> {
        let told = |error: HttpError| error.to_string();
        let issuer = self.options.issuer.as_str();
        let at = match self.options.jwks.as_str() {
            "" => {
                let base = issuer.trim_end_matches('/');
                let url = format!("{base}/.well-known/openid-configuration");
                let document = self.http.json::<Discovery>(self.http.get(&url)).await;
                let document = document.map_err(told)?;
                if document.issuer != issuer {
                    return Err("it names itself otherwise".to_owned());
                }
                let own = safe("jwks_uri", &document.jwks_uri).is_ok()
                    && same_origin(issuer, &document.jwks_uri);
                if !own {
                    return Err("its keys are elsewhere: iam.oidc.jwks must say where".to_owned());
                }
                document.jwks_uri
            }
            set => set.to_owned(),
        };
        let set = self.http.json::<KeySet>(self.http.get(&at)).await;
        set.map(Keys::from).map_err(told)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::jws::tests::Signer;
    use super::*;

    const ISSUER: &str = "http://127.0.0.1:9/";

    /// One whose key is known.
    async fn issuer() -> (Issuer, Signer) {
        let options = OidcOptions {
            issuer: ISSUER.into(),
            audience: "us".into(),
            roles: "staff=reader".into(),
            ..OidcOptions::default()
        };
        let (issuer, signer) = (Issuer::new(&options).unwrap().unwrap(), Signer::new());
        let set = json!({"keys": [signer.jwk("k")]});
        let set: KeySet = serde_json::from_value(set).unwrap();
        let look = || async { Ok(Keys::from(set)) };
        issuer.keys.now("k", "", look).await.unwrap();
        (issuer, signer)
    }

    fn token(signer: &Signer, who: &str, role: &str) -> String {
        let now = clock::now().timestamp();
        let claims: Value = json!({"iss": ISSUER, "aud": "us", "sub": who, "iat": now,
            "exp": now + 300, "roles": [role]});
        signer.token(&json!({"alg": "ES256", "kid": "k"}), &claims)
    }

    async fn login(issuer: &Issuer, token: &str, from: &str) -> Result<External, Error> {
        let ask = IamRequest {
            api_key: token.into(),
            client_ip: from.into(),
            ..IamRequest::default()
        };
        issuer.login(&ask).await
    }

    #[tokio::test]
    async fn a_signed_token_that_is_not_for_us_is_no_guess_unless_it_comes_again() {
        let (issuer, signer) = issuer().await;
        let at = "10.0.0.1";
        for who in 0..200 {
            let refused = login(&issuer, &token(&signer, &who.to_string(), "king"), at).await;
            assert_eq!(refused.unwrap_err(), auth_failed(), "{who}");
        }
        login(&issuer, &token(&signer, "ada", "staff"), at)
            .await
            .unwrap();
        // One of them again and again, from elsewhere.
        let one = token(&signer, "eve", "king");
        let other = "10.0.0.2";
        let mut last = auth_failed();
        for _ in 0..20 {
            last = login(&issuer, &one, other).await.unwrap_err();
        }
        assert_eq!(last.kind, "too-many-requests");
        // Others from there still come in; what nobody has signed is a guess.
        login(&issuer, &token(&signer, "bob", "staff"), other)
            .await
            .unwrap();
        let stranger = Signer::new();
        for who in 0..100 {
            let _ = login(&issuer, &token(&stranger, &who.to_string(), "staff"), other).await;
        }
        let refused = login(&issuer, &token(&signer, "bob", "staff"), other).await;
        assert_eq!(refused.unwrap_err().kind, "too-many-requests");
    }

    #[tokio::test]
    async fn who_comes_in_over_and_over_is_told_to_wait_and_others_are_not() {
        let (issuer, signer) = issuer().await;
        let of_ada = token(&signer, "ada", "staff");
        let mut came = 0;
        let refused = loop {
            match login(&issuer, &of_ada, "10.0.0.1").await {
                Ok(_) => came += 1,
                Err(error) => break error,
            }
            assert!(came < 1_000);
        };
        assert_eq!(refused.kind, "too-many-requests");
        // Wherever else: it is the same user.
        login(&issuer, &of_ada, "10.0.0.2").await.unwrap_err();
        login(&issuer, &token(&signer, "bob", "staff"), "10.0.0.1")
            .await
            .unwrap();
        // And of one address not all that there are.
        let mut last = Ok(());
        for who in 0..1_000 {
            let one = token(&signer, &who.to_string(), "staff");
            last = login(&issuer, &one, "10.0.0.1").await.map(drop);
        }
        assert_eq!(last.unwrap_err().kind, "too-many-requests");
        login(&issuer, &token(&signer, "bob", "staff"), "10.0.0.3")
            .await
            .unwrap();
    }
}
