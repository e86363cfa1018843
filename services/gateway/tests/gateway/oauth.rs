//! Clients of `/mcp` that get a token of their user by a browser (OAuth 2.1).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tg_gateway::{AuthMode, GatewayOptions};
use tg_jwt::SigningKey;
use tg_testkit::place::Place;

use crate::world::{BOUND, World};

const BACK: &str = "http://127.0.0.1:7/cb";
const VERIFIER: &str = "a-verifier-that-is-long-enough-0123456789-abc";
const FORM: &str = "application/x-www-form-urlencoded";
const GOOD: [(&str, &str); 2] = [("username", "ada"), ("password", "open sesame")];

/// A form, or a query string.
fn form(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter().map(|(name, value)| {
        let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
        format!("{name}={value}")
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// A browser or a client, which sees where it is sent.
struct Visitor {
    world: World,
    http: reqwest::Client,
    client: String,
}

impl Visitor {
    async fn start(place: &Place, change: impl FnOnce(&mut GatewayOptions)) -> Self {
        let world = World::with(place, AuthMode::Iam, change).await;
        let key = SigningKey::generate().unwrap();
        world.fakes.iam.signing.lock().push(key);
        let http = reqwest::Client::builder().redirect(Policy::none());
        let mut visitor = Self {
            world,
            http: http.build().unwrap(),
            client: String::new(),
        };
        let (status, client) = visitor.registers("<b>Tool</b>", BACK).await;
        assert_eq!(status, 201, "{client}");
        visitor.client = client["client_id"].as_str().unwrap().to_owned();
        visitor
    }

    async fn registers(&self, name: &str, back: &str) -> (u16, Value) {
        let client = json!({"client_name": name, "redirect_uris": [back], "grant_types": ["authorization_code"],
            "token_endpoint_auth_method": "none"});
        self.world.post("/oauth/register", "", client).await
    }

    /// The address of the page, with other fields.
    fn page(&self, other: &[(&str, &str)]) -> String {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
        let resource = self.world.url("/mcp");
        let usual = [
            ("response_type", "code"),
            ("client_id", self.client.as_str()),
            ("redirect_uri", BACK),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
            ("state", "s1"),
            ("resource", resource.as_str()),
        ];
        let fields = usual.map(|(name, value)| {
            let other = other.iter().find(|(one, _)| *one == name);
            (name, other.map_or(value, |(_, value)| *value))
        });
        self.world
            .url(&format!("/oauth/authorize?{}", form(&fields)))
    }

    /// The form of the page, as a browser sends it.
    fn sends(&self, page: &str, fields: &[(&str, &str)]) -> RequestBuilder {
        let request = self.http.post(page).body(form(fields));
        request
            .header("content-type", FORM)
            .header("origin", self.world.url(""))
            .header("sec-fetch-site", "same-origin")
    }

    /// Signs in and reads the code.
    async fn code(&self) -> String {
        let answer = answered(self.sends(&self.page(&[]), &GOOD)).await;
        let to = sent_to(&answer);
        let fields = to.strip_prefix(&format!("{BACK}?code=")).unwrap();
        let (code, rest) = fields.split_once('&').unwrap();
        let issuer = form(&[("iss", self.world.url("").as_str()), ("state", "s1")]);
        assert_eq!(rest, issuer);
        code.to_owned()
    }

    /// Exchanges a code, with other fields.
    async fn exchanges(&self, code: &str, other: &[(&str, &str)]) -> (u16, Value) {
        let usual = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", self.client.as_str()),
            ("redirect_uri", BACK),
            ("code_verifier", VERIFIER),
        ];
        let fields = usual.map(|(name, value)| {
            let other = other.iter().find(|(one, _)| *one == name);
            (name, other.map_or(value, |(_, value)| *value))
        });
        let request = self.http.post(self.world.url("/oauth/token"));
        let request = request.header("content-type", FORM).body(form(&fields));
        let answer = answered(request).await;
        let status = answer.status().as_u16();
        assert_eq!(answer.headers()["cache-control"], "no-store");
        (status, answer.json().await.unwrap())
    }
}

async fn answered(request: RequestBuilder) -> Response {
    request.timeout(BOUND).send().await.unwrap()
}

/// Where a browser is sent.
fn sent_to(answer: &Response) -> String {
    assert_eq!(answer.status(), 303);
    let to = answer.headers()["location"].to_str().unwrap();
    to.to_owned()
}

async fn a_client_signs_its_user_in(place: Place) {
    let visitor = Visitor::start(&place, |_| {}).await;
    let world = &visitor.world;
    let path = "/.well-known/oauth-authorization-server";
    let (status, about) = world.get(path, "").await;
    assert_eq!((status, &about["issuer"]), (200, &json!(world.url(""))));
    for (name, path) in [
        ("authorization_endpoint", "/oauth/authorize"),
        ("token_endpoint", "/oauth/token"),
        ("registration_endpoint", "/oauth/register"),
    ] {
        assert_eq!(about[name], json!(world.url(path)));
    }
    assert_eq!(about["code_challenge_methods_supported"], json!(["S256"]));

    // A page of the client may link to it.
    let page = visitor.page(&[]);
    let linked = visitor.http.get(&page);
    let shown = answered(linked.header("sec-fetch-site", "cross-site")).await;
    assert_eq!(shown.status(), 200);
    let policy = shown.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    let text = shown.text().await.unwrap();
    assert!(
        text.contains("<b><bdi>&lt;b&gt;Tool&lt;/b&gt;</bdi></b>"),
        "{text}"
    );
    assert!(text.contains("<b>http://127.0.0.1:7</b>"), "{text}");
    // A user who does not want this is sent back without a code.
    let issuer = world.url("");
    let fields = [
        ("error", "access_denied"),
        ("iss", issuer.as_str()),
        ("state", "s1"),
    ];
    let denied = form(&fields).replace('&', "&amp;");
    let link = format!("<a href=\"{BACK}?{denied}\">Cancel</a>");
    assert!(text.contains(&link), "{text}");

    let wrong = [("username", "ada"), ("password", "shut")];
    let refused = answered(visitor.sends(&page, &wrong)).await;
    assert_eq!(refused.status(), 401);
    let text = refused.text().await.unwrap();
    assert!(
        text.contains("The name or the password is wrong."),
        "{text}"
    );
    assert!(!text.contains("shut"), "{text}");

    let code = visitor.code().await;
    let (status, reply) = visitor.exchanges(&code, &[]).await;
    assert_eq!((status, &reply["token_type"]), (200, &json!("Bearer")));
    assert!(reply["expires_in"].as_i64() > Some(0), "{reply}");
    let token = reply["access_token"].as_str().unwrap();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let (status, tools) = world.post("/mcp", token, message).await;
    assert_eq!(status, 200, "{tools}");
    // It is good once.
    let (status, reply) = visitor.exchanges(&code, &[]).await;
    assert_eq!((status, &reply["error"]), (400, &json!("invalid_grant")));
}

async fn a_code_is_for_its_client_and_address_with_the_proof(place: Place) {
    let visitor = Visitor::start(&place, |_| {}).await;
    let other = visitor.registers("Other", BACK).await.1["client_id"].clone();
    for wrong in [
        ("client_id", other.as_str().unwrap()),
        ("redirect_uri", "http://127.0.0.1:7/cb/"),
        (
            "code_verifier",
            "another-verifier-that-is-long-enough-0123456789",
        ),
    ] {
        let code = visitor.code().await;
        // The second time with nothing wrong: the first one used it up.
        for fields in [&[wrong][..], &[]] {
            let (status, reply) = visitor.exchanges(&code, fields).await;
            let invalid = json!("invalid_grant");
            assert_eq!((status, &reply["error"]), (400, &invalid), "{wrong:?}");
        }
    }
    let code = visitor.code().await;
    let grant = [("grant_type", "client_credentials")];
    let (status, reply) = visitor.exchanges(&code, &grant).await;
    let error = json!("unsupported_grant_type");
    assert_eq!((status, &reply["error"]), (400, &error));
}

async fn nobody_is_sent_to_an_address_that_is_not_registered_or_named(place: Place) {
    let visitor = Visitor::start(&place, |_| {}).await;
    let far = "https://evil.example/cb";
    let (status, reply) = visitor.registers("Far", far).await;
    let error = json!("invalid_redirect_uri");
    assert_eq!((status, &reply["error"]), (400, &error));
    // An id that a client makes up is judged as one that it registered.
    let made = json!({"n": "Far", "r": [far]}).to_string();
    let made = URL_SAFE_NO_PAD.encode(made);
    for wrong in [
        &[("redirect_uri", far)][..],
        &[("redirect_uri", "http://127.0.0.1:7/cb?x=1")],
        &[("client_id", made.as_str()), ("redirect_uri", far)],
    ] {
        let page = visitor.page(wrong);
        for request in [visitor.http.get(&page), visitor.sends(&page, &GOOD)] {
            let refused = answered(request).await;
            assert_eq!(refused.status(), 400, "{wrong:?}");
            assert!(!refused.headers().contains_key("location"), "{wrong:?}");
        }
    }
    for (wrong, error) in [
        (("code_challenge_method", "plain"), "invalid_request"),
        (("resource", "https://other.example/mcp"), "invalid_target"),
    ] {
        let answer = answered(visitor.sends(&visitor.page(&[wrong]), &GOOD)).await;
        let error = form(&[("error", error)]);
        let to = sent_to(&answer);
        assert!(to.starts_with(&format!("{BACK}?{error}&")), "{to}");
    }
    assert_eq!(visitor.world.fakes.iam.count("login"), 0);

    // Cursor has a scheme of its own.
    let named = |options: &mut GatewayOptions| {
        options.settings.oauth_origins =
            "https://web.example, cursor://anysphere.cursor-mcp".to_owned();
    };
    let mut visitor = Visitor::start(&place.another().await, named).await;
    for back in [
        "https://web.example/cb",
        "cursor://anysphere.cursor-mcp/oauth/callback",
    ] {
        let (status, reply) = visitor.registers("Named", back).await;
        assert_eq!(status, 201, "{reply}");
        visitor.client = reply["client_id"].as_str().unwrap().to_owned();
        let page = visitor.page(&[("redirect_uri", back)]);
        let to = sent_to(&answered(visitor.sends(&page, &GOOD)).await);
        assert!(to.starts_with(&format!("{back}?code=")), "{to}");
    }
}

async fn a_page_of_another_origin_sends_no_form(place: Place) {
    let visitor = Visitor::start(&place, |_| {}).await;
    let page = visitor.page(&[]);
    for origin in ["https://evil.example", "null"] {
        let request = visitor.http.post(&page).body(form(&GOOD));
        let request = request
            .header("content-type", FORM)
            .header("origin", origin);
        assert_eq!(answered(request).await.status(), 403, "{origin}");
    }
    let request = visitor.http.post(&page).body(form(&GOOD));
    let request = request.header("content-type", FORM);
    let request = request.header("sec-fetch-site", "cross-site");
    assert_eq!(answered(request).await.status(), 403);
    // Forms go to no other endpoint.
    let login = visitor.world.url("/api/v1/auth/login");
    let login = answered(visitor.sends(&login, &GOOD)).await;
    assert_eq!(login.status(), 403);
    assert_eq!(visitor.world.fakes.iam.count("login"), 0);
}

/// Whatever a client asks to be registered with, it is a public client. Claude Desktop gives no name.
async fn clients_register_with_more_or_less_than_is_read(place: Place) {
    let mut visitor = Visitor::start(&place, |_| {}).await;
    let vscode = json!({"client_name": "Visual Studio Code", "client_uri": "https://code.visualstudio.com",
        "redirect_uris": ["https://vscode.dev/redirect", "http://127.0.0.1/", "http://127.0.0.1:33418/"],
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
        "token_endpoint_auth_method": "none", "application_type": "native"});
    let (status, reply) = visitor.world.post("/oauth/register", "", vscode).await;
    assert_eq!(status, 201, "{reply}");
    let here = json!(["http://127.0.0.1/", "http://127.0.0.1:33418/"]);
    assert_eq!(reply["redirect_uris"], here);
    assert_eq!(reply["client_name"], json!("Visual Studio Code"));

    let nameless = json!({"redirect_uris": [BACK], "scope": "documents:read",
        "token_endpoint_auth_method": "client_secret_post"});
    let (status, reply) = visitor.world.post("/oauth/register", "", nameless).await;
    assert_eq!(status, 201, "{reply}");
    assert_eq!(reply["token_endpoint_auth_method"], json!("none"));
    assert!(reply.get("client_secret").is_none(), "{reply}");
    visitor.client = reply["client_id"].as_str().unwrap().to_owned();
    let shown = answered(visitor.http.get(visitor.page(&[]))).await;
    let text = shown.text().await.unwrap();
    assert!(text.contains("A program without a name asks"), "{text}");
    let code = visitor.code().await;
    let (status, reply) = visitor.exchanges(&code, &[]).await;
    assert_eq!(status, 200, "{reply}");
}

/// VS Code takes a free port where the one that it registered is in use, and so do others.
async fn a_client_on_the_users_machine_may_take_another_port(place: Place) {
    let visitor = Visitor::start(&place, |_| {}).await;
    let free = "http://127.0.0.1:59656/cb";
    let page = visitor.page(&[("redirect_uri", free)]);
    let shown = answered(visitor.http.get(&page)).await;
    assert_eq!(shown.status(), 200);
    let text = shown.text().await.unwrap();
    assert!(text.contains("<b>http://127.0.0.1:59656</b>"), "{text}");
    for (back, wanted) in [(BACK, 400), (free, 200)] {
        let to = sent_to(&answered(visitor.sends(&page, &GOOD)).await);
        let fields = to.strip_prefix(&format!("{free}?code=")).unwrap();
        let (code, _) = fields.split_once('&').unwrap();
        // The code is for the address that was asked for, not for the registered one.
        let (status, reply) = visitor.exchanges(code, &[("redirect_uri", back)]).await;
        assert_eq!(status, wanted, "{reply}");
    }
}

/// What is wrong with the form, or at the moment, is not what is wrong with the password.
async fn a_form_that_is_not_read_or_comes_too_soon_is_no_wrong_password(place: Place) {
    let visitor = Visitor::start(&place, |_| {}).await;
    let page = visitor.page(&[]);
    let long = "x".repeat(8_192);
    for (fields, status) in [
        (&[("username", "ada"), ("username", "bob")][..], 400),
        (&[("username", "ada"), ("password", long.as_str())], 413),
    ] {
        let refused = answered(visitor.sends(&page, fields)).await;
        assert_eq!(refused.status(), status);
        let text = refused.text().await.unwrap();
        assert!(!text.contains("is wrong"), "{text}");
    }
    assert_eq!(visitor.world.fakes.iam.count("login"), 0);
    let hasty = [("username", "hasty"), ("password", "open sesame")];
    let refused = answered(visitor.sends(&page, &hasty)).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "30");
    let text = refused.text().await.unwrap();
    assert!(text.contains("try again in 30 seconds"), "{text}");
}

async fn where_nobody_needs_a_key_nobody_signs_in(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    for path in [
        "/.well-known/oauth-authorization-server",
        "/oauth/authorize",
    ] {
        assert_eq!(world.get(path, "").await.0, 404, "{path}");
    }
    for path in ["/oauth/register", "/oauth/authorize", "/oauth/token"] {
        assert_eq!(world.post(path, "", json!({})).await.0, 404, "{path}");
    }
}

tg_testkit::on_both_buses!(
    a_client_signs_its_user_in,
    a_code_is_for_its_client_and_address_with_the_proof,
    nobody_is_sent_to_an_address_that_is_not_registered_or_named,
    a_page_of_another_origin_sends_no_form,
    clients_register_with_more_or_less_than_is_read,
    a_client_on_the_users_machine_may_take_another_port,
    a_form_that_is_not_read_or_comes_too_soon_is_no_wrong_password,
    where_nobody_needs_a_key_nobody_signs_in,
);
