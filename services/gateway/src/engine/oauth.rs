//! What of OAuth 2.1 needs no clock: clients as their ids describe them, where a user may be sent back to, what a client asks
//! for, and the proof that whoever brings a code asked for it (PKCE).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Fields of a query string or a form.
pub(crate) type Given = BTreeMap<String, String>;

/// Addresses of a client, their bytes together, and characters of its name. A request for a token, which has the id, stays
/// below what an unauthenticated client may send.
const ADDRESSES: usize = 8;
const BYTES: usize = 1_024;
const NAME: usize = 64;
/// Longest id. Those of registered clients are shorter: the above as JSON in base64.
const ID: usize = 2_048;
/// Lengths of a verifier (RFC 7636), and of a challenge: 32 bytes in base64.
const VERIFIER: std::ops::RangeInclusive<usize> = 43..=128;
const CHALLENGE: usize = 43;
/// Names of the machine of whoever asks.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// The text of a field, or none.
pub(crate) fn of<'a>(given: &'a Given, name: &str) -> &'a str {
    given.get(name).map_or("", String::as_str)
}

/// A client. Its id is its description, so nothing is kept of it: anybody may register, and a made-up id says no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Client {
    /// What it calls itself.
    #[serde(rename = "n")]
    pub(crate) name: String,
    /// Where it may have its users sent back to.
    #[serde(rename = "r")]
    pub(crate) redirects: Vec<String>,
}

impl Client {
    /// A client with those of its addresses that users may be sent to: on their own machine, or of an origin that the operator
    /// `allows`. `None`: it has none.
    pub(crate) fn new(
        name: &str,
        redirects: Vec<String>,
        allows: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        let mut bytes = 0;
        let fits = |one: &String| {
            bytes += one.len();
            bytes <= BYTES
        };
        let redirects = redirects.into_iter().take(2 * ADDRESSES);
        let redirects = redirects.filter(|one| is_redirect(one, &allows));
        let redirects: Vec<String> = redirects.take(ADDRESSES).take_while(fits).collect();
        let name = name.chars().filter(|c| !c.is_control());
        (!redirects.is_empty()).then(|| Self {
            name: name.take(NAME).collect(),
            redirects,
        })
    }

    /// The client that an id describes.
    pub(crate) fn of_id(id: &str, allows: impl Fn(&str) -> bool) -> Option<Self> {
        let id = Some(id).filter(|id| id.len() <= ID)?;
        let text = URL_SAFE_NO_PAD.decode(id).ok()?;
        let said: Self = serde_json::from_slice(&text).ok()?;
        Self::new(&said.name, said.redirects, allows)
    }

    /// Its id.
    pub(crate) fn id(&self) -> Result<String, serde_json::Error> {
        Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(self)?))
    }
}

/// Whether a user may be sent to an address.
fn is_redirect(address: &str, allows: impl Fn(&str) -> bool) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"#'<>\\^`{|}".contains(&byte);
    let origin = origin(address).filter(|_| address.bytes().all(is_plain));
    origin.is_some_and(|origin| is_of_this_machine(origin) || allows(origin))
}

/// Scheme and host of an address.
pub(crate) fn origin(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once("://")?;
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    let of_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:[]".contains(&byte);
    let is_host = !host.is_empty() && host.bytes().all(of_host);
    let end = scheme.len() + "://".len() + host.len();
    address.get(..end).filter(|_| is_host)
}

/// Whether an origin is a program on the machine of whoever asks.
fn is_of_this_machine(origin: &str) -> bool {
    loopback_name(origin).is_some()
}

/// The name by which an origin means the machine of whoever asks, without the port.
fn loopback_name(origin: &str) -> Option<&'static str> {
    let host = origin.strip_prefix("http://")?;
    LOOPBACK.into_iter().find(|name| {
        let port = host.strip_prefix(name);
        port.is_some_and(|port| {
            let number = port.strip_prefix(':');
            port.is_empty() || number.is_some_and(|number| number.parse::<u16>().is_ok())
        })
    })
}

/// Name and path of an address on the machine of whoever asks.
fn without_port(address: &str) -> Option<(&'static str, &str)> {
    let origin = origin(address)?;
    Some((loopback_name(origin)?, address.get(origin.len()..)?))
}

/// Whether an address is a registered one. On the user's machine the port may be another one (RFC 8252): VS Code takes a free port
/// where its own is in use, and other clients choose one at each start.
fn is_registered(registered: &str, address: &str) -> bool {
    let wanted = without_port(address);
    registered == address || (wanted.is_some() && wanted == without_port(registered))
}

/// Why no user is asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The page shows why, as the user may not be sent back.
    Here(&'static str),
    /// The user is sent back to this address, where the client reads why.
    Back(String),
}

/// What a client asks for. A code is good for this alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    client: String,
    /// Where the user is sent back to.
    pub(crate) redirect: String,
    challenge: String,
    state: Option<String>,
    issuer: String,
}

impl Asked {
    /// Reads what a client asks of the server of an origin.
    ///
    /// # Errors
    /// Whether the page shows why, or the client reads it.
    pub(crate) fn read(
        given: &Given,
        issuer: &str,
        allows: impl Fn(&str) -> bool,
    ) -> Result<(Client, Self), Refused> {
        let client = Client::of_id(of(given, "client_id"), allows);
        let client = client.ok_or(Refused::Here("The client is not known here."))?;
        let redirect = of(given, "redirect_uri");
        let mut registered = client.redirects.iter();
        if !registered.any(|one| is_registered(one, redirect)) {
            let text = "The client did not register the address that you would be sent back to.";
            return Err(Refused::Here(text));
        }
        let asked = Self {
            client: of(given, "client_id").to_owned(),
            redirect: redirect.to_owned(),
            challenge: of(given, "code_challenge").to_owned(),
            state: given.get("state").cloned(),
            issuer: issuer.to_owned(),
        };
        let is_proved =
            of(given, "code_challenge_method") == "S256" && is_challenge(&asked.challenge);
        let error = match of(given, "response_type") {
            "code" if !is_proved => "invalid_request",
            "code" if !is_for(given, issuer) => "invalid_target",
            "code" => return Ok((client, asked)),
            _ => "unsupported_response_type",
        };
        Err(Refused::Back(asked.back("error", error)))
    }

    /// The address that the user is sent back to, with what the client reads there.
    pub(crate) fn back(&self, name: &str, value: &str) -> String {
        let state = self.state.as_deref().map(|state| ("state", state));
        let pairs = [(name, value), ("iss", self.issuer.as_str())];
        let mut address = self.redirect.clone();
        for (name, value) in pairs.into_iter().chain(state) {
            address.push(if address.contains('?') { '&' } else { '?' });
            address.push_str(name);
            address.push('=');
            address.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
        }
        address
    }

    /// The part of it that a code is compared with. What only [`Self::back`] needs may be long, and is left out.
    pub(crate) fn kept(&self) -> Self {
        Self {
            client: self.client.clone(),
            redirect: self.redirect.clone(),
            challenge: self.challenge.clone(),
            state: None,
            issuer: String::new(),
        }
    }

    /// Whether a request for a token is of whoever asked: of this client, for this address, with the proof.
    pub(crate) fn is_of(&self, given: &Given) -> bool {
        let verifier = of(given, "code_verifier");
        of(given, "client_id") == self.client
            && of(given, "redirect_uri") == self.redirect
            && VERIFIER.contains(&verifier.len())
            && URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)) == self.challenge
    }
}

fn is_challenge(text: &str) -> bool {
    let of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    text.len() == CHALLENGE && text.bytes().all(of_base64)
}

/// Whether a token is wanted for this system, where the client says for which (RFC 8707). Some clients send the address that their
/// user gave them, which may have a query (`?workspace=`).
pub(crate) fn is_for(given: &Given, issuer: &str) -> bool {
    let Some(resource) = given.get("resource") else {
        return true;
    };
    let rest = resource.strip_prefix(issuer);
    let path = rest.map(|rest| rest.split_once('?').map_or(rest, |(path, _)| path));
    path.is_some_and(|path| matches!(path, "" | "/" | "/mcp" | "/mcp/"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HERE: &str = "http://gate:1";
    const BACK: &str = "http://127.0.0.1:7/cb";

    fn none(_: &str) -> bool {
        false
    }

    fn given(pairs: &[(&str, &str)]) -> Given {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn client() -> Client {
        Client::new("Tool", vec![BACK.to_owned()], none).unwrap()
    }

    fn asks() -> Given {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest("v".repeat(43)));
        let id = client().id().unwrap();
        given(&[
            ("response_type", "code"),
            ("client_id", id.as_str()),
            ("redirect_uri", BACK),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
            ("state", "a b&c"),
        ])
    }

    #[test]
    fn users_are_sent_to_their_own_machine_or_to_a_named_origin() {
        for good in [
            BACK,
            "http://localhost/",
            "http://localhost",
            "http://[::1]:9/a?b=c",
        ] {
            assert!(is_redirect(good, none), "{good}");
        }
        for bad in [
            "https://web.example/cb",
            "http://localhost.evil.example/cb",
            "http://127.0.0.1:7@evil.example/cb",
            "http://127.0.0.1:70000/cb",
            "http://127.0.0.1:7/cb#x",
            "http://127.0.0.1:7/\"><script>",
            "http://127.0.0.1:7\\@evil.example/",
            "https://127.0.0.1/cb",
            "javascript:alert(1)",
            "cursor://done",
            "",
        ] {
            assert!(!is_redirect(bad, none), "{bad}");
        }
        let named = |origin: &str| origin == "https://web.example";
        assert!(is_redirect("https://web.example/cb", named));
        assert!(!is_redirect("https://web.example.evil/cb", named));
        assert!(!is_redirect("https://web.example:8/cb", named));
        // Cursor has a scheme of its own.
        let cursor = |origin: &str| origin == "cursor://anysphere.cursor-mcp";
        let back = "cursor://anysphere.cursor-mcp/oauth/callback";
        assert!(is_redirect(back, cursor));
        assert!(is_registered(back, back));
        assert!(!is_redirect("cursor://another/oauth/callback", cursor));
    }

    #[test]
    fn only_the_port_of_an_address_on_the_users_machine_may_be_another_one() {
        // As VS Code registers and asks where its own port is in use.
        let vscode = ["http://127.0.0.1/", "http://127.0.0.1:33418/"];
        for registered in vscode {
            assert!(is_registered(registered, "http://127.0.0.1:59656/"));
        }
        assert!(is_registered(
            "http://[::1]:7/cb?a=b",
            "http://[::1]/cb?a=b"
        ));
        for other in [
            "http://localhost:7/cb",
            "http://[::1]:7/cb",
            "https://127.0.0.1:7/cb",
            "http://127.0.0.1:8/cb/",
            "http://127.0.0.1:8/cb?x=1",
            "http://127.0.0.1:8/CB",
            "http://127.0.0.1:70000/cb",
            "http://127.0.0.1:/cb",
            "http://127.0.0.1:8@evil.example/cb",
            "http://127.0.0.1.evil.example/cb",
            "http://evil.example/cb",
            "",
        ] {
            assert!(!is_registered(BACK, other), "{other}");
        }
        let web = "https://web.example:7/cb";
        assert!(is_registered(web, web));
        assert!(!is_registered(web, "https://web.example:8/cb"));
        assert!(!is_registered(web, "https://web.example/cb"));
    }

    #[test]
    fn an_id_describes_its_client_and_is_looked_at_again() {
        let all = ["https://web.example/cb", BACK].map(str::to_owned);
        let named = Client::new("T\n", all.to_vec(), |_| true).unwrap();
        assert_eq!((named.name.as_str(), named.redirects.len()), ("T", 2));
        let id = named.id().unwrap();
        assert_eq!(Client::of_id(&id, |_| true), Some(named));
        // The operator names that origin no longer.
        let left = Client::of_id(&id, none).unwrap();
        assert_eq!(left.redirects, [BACK]);
        let long = format!("{BACK}/{}", "x".repeat(BYTES));
        assert_eq!(Client::new("T", vec![long], none), None);
        for wrong in ["", "!", "bm90aGluZw"] {
            assert_eq!(Client::of_id(wrong, none), None);
        }
    }

    #[test]
    fn the_id_of_the_largest_client_is_read_and_a_longer_one_is_not() {
        // Quotation marks and letters of four bytes take most room.
        for name in ["\"".repeat(NAME), "\u{1f980}".repeat(NAME)] {
            let address = |port: usize| format!("http://127.0.0.1:{port}/{}", "x".repeat(100));
            let all = (1..=ADDRESSES).map(address).collect();
            let client = Client::new(&name, all, none).unwrap();
            assert_eq!(client.redirects.len(), ADDRESSES);
            let id = client.id().unwrap();
            assert_eq!(Client::of_id(&id, none), Some(client));
        }
        let padded = json!({"n": "T", "r": [BACK], "more": "x".repeat(ID)}).to_string();
        let long = URL_SAFE_NO_PAD.encode(padded);
        assert_eq!(Client::of_id(&long, none), None);
    }

    #[test]
    fn whoever_cannot_be_sent_back_is_told_here() {
        for (name, value) in [
            ("client_id", "x"),
            ("redirect_uri", "http://127.0.0.1:7/cb2"),
            ("redirect_uri", ""),
        ] {
            let mut wrong = asks();
            wrong.insert(name.to_owned(), value.to_owned());
            let refused = Asked::read(&wrong, HERE, none).unwrap_err();
            assert!(matches!(refused, Refused::Here(_)), "{name}: {refused:?}");
        }
        for (name, value, error) in [
            ("response_type", "token", "unsupported_response_type"),
            ("code_challenge_method", "plain", "invalid_request"),
            ("code_challenge", "", "invalid_request"),
            ("resource", "https://other.example/mcp", "invalid_target"),
        ] {
            let mut wrong = asks();
            wrong.insert(name.to_owned(), value.to_owned());
            let refused = Asked::read(&wrong, HERE, none).unwrap_err();
            let encoded = utf8_percent_encode(error, NON_ALPHANUMERIC);
            let back = format!("{BACK}?error={encoded}&iss=http%3A%2F%2Fgate%3A1&state=a%20b%26c");
            assert_eq!(refused, Refused::Back(back), "{name}");
        }
    }

    #[test]
    fn a_code_is_for_its_client_address_and_proof() {
        let (_, asked) = Asked::read(&asks(), HERE, none).unwrap();
        let id = client().id().unwrap();
        let verifier = "v".repeat(43);
        let good = given(&[
            ("client_id", id.as_str()),
            ("redirect_uri", BACK),
            ("code_verifier", verifier.as_str()),
        ]);
        assert!(asked.is_of(&good));
        let kept = asked.kept();
        assert!(kept.is_of(&good));
        assert_eq!((kept.state, kept.issuer.as_str()), (None, ""));
        for name in ["client_id", "redirect_uri", "code_verifier"] {
            let mut wrong = good.clone();
            wrong.insert(name.to_owned(), "w".repeat(43));
            assert!(!asked.is_of(&wrong), "{name}");
            wrong.remove(name);
            assert!(!asked.is_of(&wrong), "{name}");
        }
    }

    #[test]
    fn a_token_is_for_this_system() {
        for good in [
            HERE,
            "http://gate:1/",
            "http://gate:1/mcp",
            "http://gate:1/mcp?workspace=a&flow=b",
        ] {
            assert!(is_for(&given(&[("resource", good)]), HERE), "{good}");
        }
        for bad in [
            "http://gate:12",
            "http://gate",
            "http://gate:1/mcpx",
            "http://gate:1.evil.example/mcp?",
            "?http://gate:1/mcp",
            "",
        ] {
            assert!(!is_for(&given(&[("resource", bad)]), HERE), "{bad}");
        }
        assert!(is_for(&Given::new(), HERE));
    }
}
