//! The page on which a user signs in for a client of `/mcp`. It has no script and no style.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::forwarded::kept_nowhere;
use crate::engine::oauth::{Asked, Client, origin};

/// `form-action` is left out: browsers hold against it where a form leads to in the end, which is the client's address.
const POLICY: &str = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'";

/// Beside what every answer says. A browser names the origin of a form to its own host only.
const HEADERS: [(&str, &str); 4] = [
    ("content-security-policy", POLICY),
    ("content-type", "text/html; charset=utf-8"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
];

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width\"><title>Sign in to Threadgraph</title></head><body><main>\
    <h1>Sign in to Threadgraph</h1>";
const FORM: &str = "<form method=\"post\">\
    <p><label>Name <input name=\"username\" autocomplete=\"username\" required></label></p>\
    <p><label>Password <input name=\"password\" type=\"password\" autocomplete=\"current-password\" required></label></p>\
    <p><button>Sign in and allow</button></p></form>";
const TAIL: &str = "</main></body></html>\n";

/// The form, why the last try failed, and a way back to the client for a user who does not want this. The name is set apart
/// (`bdi`): letters that turn the direction of writing turn nothing of what the page says.
pub(super) fn form(client: &Client, asked: &Asked, failed: Option<(StatusCode, &str)>) -> Response {
    let (status, why) = failed.unwrap_or((StatusCode::OK, ""));
    let who = who(client);
    let to = escaped(origin(&asked.redirect).unwrap_or_default());
    let why = escaped(why);
    let denied = escaped(&asked.back("error", "access_denied"));
    let text = format!(
        "<p>A program {who} asks for your access. It gets a token at <b>{to}</b> and may do \
         whatever you may until the token ends, in about an hour.</p>\
         <p>Sign in only if you have just started this in that program.</p><p role=\"alert\">{why}</p>{FORM}\
         <p><a href=\"{denied}\">Cancel</a></p>"
    );
    page(status, &text)
}

/// What a client calls itself. Claude Desktop and others register without a name.
fn who(client: &Client) -> String {
    match client.name.trim() {
        "" => "without a name".to_owned(),
        name => format!("that calls itself <b><bdi>{}</bdi></b>", escaped(name)),
    }
}

/// Why nobody can be asked.
pub(super) fn refusal(status: StatusCode, why: &str) -> Response {
    page(status, &format!("<p role=\"alert\">{}</p>", escaped(why)))
}

/// Sends the user back to the client.
pub(super) fn back(address: &str) -> Response {
    let Ok(address) = HeaderValue::try_from(address) else {
        let text = "The address that you would be sent back to cannot be used.";
        return refusal(StatusCode::BAD_REQUEST, text);
    };
    let mut response = StatusCode::SEE_OTHER.into_response();
    response.headers_mut().insert(header::LOCATION, address);
    kept_nowhere(response)
}

fn page(status: StatusCode, content: &str) -> Response {
    let mut response = (status, format!("{HEAD}{content}{TAIL}")).into_response();
    for (name, value) in HEADERS {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    kept_nowhere(response)
}

/// A text that is no markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_calls_itself_is_no_markup() {
        assert_eq!(
            escaped("<b a=\"1\" c='2'>&"),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;"
        );
    }
}
