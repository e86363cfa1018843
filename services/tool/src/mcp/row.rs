//! A row of config type `mcp`, and the tokens that users have for its server.

use serde::Deserialize;
use tg_provider_http::Secret;

use crate::error::ToolError;

/// Config type of the tokens of users, each under the user's id and the key of the server's row.
pub(crate) const USER_TOKENS: &str = "mcp-user-token";

/// A server, or one tool of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub(super) place: Place,
    /// The tool's name at the server.
    pub(super) remote_name: String,
    /// The row is for that tool alone.
    alone: bool,
    /// Roles of whom it is for; `None`: of everybody.
    roles: Option<Vec<String>>,
    /// Each user has a token of their own.
    of_users: bool,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// At an address.
    At { url: String, token: Option<Secret> },
    /// A program of the settings, by its name.
    Program(String),
}

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    server: Option<String>,
    #[serde(default, rename = "remote-name")]
    remote_name: String,
    #[serde(default, rename = "auth-token")]
    token: Option<Secret>,
    #[serde(default)]
    roles: Option<Vec<String>>,
    #[serde(default, rename = "user-tokens")]
    of_users: bool,
}

/// The token of a user.
#[derive(Deserialize)]
struct UserToken {
    #[serde(rename = "auth-token")]
    token: Secret,
}

/// A token that says something.
fn said(token: &Secret) -> Option<Secret> {
    Some(bare(token)).filter(|token| !token.expose().is_empty())
}

impl Server {
    /// Reads a row; the error names the field.
    pub(crate) fn read(key: &str, value: &str) -> Result<Self, ToolError> {
        let fault = |why: &str| ToolError::Row {
            key: key.to_owned(),
            why: why.to_owned(),
        };
        const NEEDED: &str =
            "the configuration cannot be read; 'url' is required, or 'server' instead";
        let row: Row = serde_json::from_slice(value.as_bytes()).map_err(|_| fault(NEEDED))?;
        let token = row.token.as_ref().and_then(said);
        if row.of_users && token.is_some() {
            return Err(fault(
                "auth-token: must be left out where each user has a token",
            ));
        }
        if row.of_users && row.server.is_some() {
            return Err(fault(
                "user-tokens: must be left out where 'server' is said",
            ));
        }
        let place = match (row.url, row.server) {
            (Some(_), Some(_)) => {
                return Err(fault("url: must be left out where 'server' is said"));
            }
            (None, None) => return Err(fault(NEEDED)),
            (None, Some(name)) => Place::Program(name),
            (Some(url), None) => {
                let mut web = ["http://", "https://"].iter();
                if !web.any(|scheme| url.starts_with(scheme)) {
                    return Err(fault("url: must begin with http:// or https://"));
                }
                Place::At { url, token }
            }
        };
        let alone = !row.remote_name.is_empty();
        let remote_name = match alone {
            true => row.remote_name,
            false => key.to_owned(),
        };
        Ok(Self {
            place,
            remote_name,
            alone,
            roles: row.roles,
            of_users: row.of_users,
        })
    }

    /// Whether each user has a token of their own.
    pub(crate) fn is_of_users(&self) -> bool {
        self.of_users
    }

    /// The same server with a user's token, as its row says it. `None`: the row says none.
    pub(crate) fn with_token(mut self, row: &str) -> Option<Self> {
        let row: UserToken = serde_json::from_slice(row.as_bytes()).ok()?;
        let own = said(&row.token)?;
        match &mut self.place {
            Place::At { token, .. } => *token = Some(own),
            Place::Program(_) => return None,
        }
        Some(self)
    }

    /// The same server with another of its tools, if the row is for that.
    pub(crate) fn with_tool(mut self, name: &str) -> Option<Self> {
        if !self.has(name) {
            return None;
        }
        name.clone_into(&mut self.remote_name);
        Some(self)
    }

    /// Whether the row is for this tool of the server.
    pub(crate) fn has(&self, name: &str) -> bool {
        !self.alone || self.remote_name == name
    }

    /// Whether it is for who has these roles, which are separated by spaces.
    pub(crate) fn is_for(&self, roles: Option<&str>) -> bool {
        let has = |name: &String| {
            let had = roles.unwrap_or_default();
            had.split_whitespace().any(|one| one == name)
        };
        self.roles
            .as_ref()
            .is_none_or(|roles| roles.iter().any(has))
    }

    /// Its address, if it has one.
    #[cfg(test)]
    pub(super) fn url(&self) -> Option<&str> {
        match &self.place {
            Place::At { url, .. } => Some(url),
            Place::Program(_) => None,
        }
    }
}

/// The token alone: some rows hold the whole value of the header, scheme included.
fn bare(token: &Secret) -> Secret {
    let told = token.expose().trim();
    match told.split_once(char::is_whitespace) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("Bearer") => Secret::new(rest.trim()),
        _ => Secret::new(told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(server: &Server) -> &str {
        match &server.place {
            Place::At {
                token: Some(token), ..
            } => token.expose(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_row_names_its_fault_and_keeps_its_secret() {
        let row = r#"{"url": "http://x/mcp", "auth-token": "s3cret"}"#;
        let server = Server::read("find", row).unwrap();
        assert_eq!(server.remote_name, "find");
        assert!(!format!("{server:?}").contains("s3cret"));
        assert!(server.is_for(None));
        let row = r#"{"url": "http://x/mcp", "roles": ["writer"]}"#;
        let server = Server::read("find", row).unwrap();
        assert!(server.is_for(Some("reader writer")));
        assert!(!server.is_for(Some("reader")) && !server.is_for(None));
        // A name of something of the server's is a text as any other.
        for named in ["env:PATH", "file:/etc/passwd"] {
            let row = format!(r#"{{"url": "http://x/mcp", "auth-token": "{named}"}}"#);
            assert_eq!(token(&Server::read("find", &row).unwrap()), named);
        }
        // The whole value of the header, as some write it.
        for written in ["Bearer s3cret", "bearer  s3cret ", " s3cret"] {
            let row = format!(r#"{{"url": "http://x/mcp", "auth-token": "{written}"}}"#);
            assert_eq!(token(&Server::read("find", &row).unwrap()), "s3cret");
        }
        for bad in [
            "{",
            "{}",
            r#"{"url": "ftp://x"}"#,
            r#"{"url": "http://x", "server": "s"}"#,
        ] {
            let error = Server::read("find", bad).unwrap_err();
            assert!(
                error.to_string().contains("'find'") && error.to_string().contains("url"),
                "{error}"
            );
        }
    }

    #[test]
    fn each_user_may_have_a_token_and_then_there_is_no_other() {
        let row = r#"{"url": "http://x/mcp", "user-tokens": true}"#;
        let server = Server::read("find", row).unwrap();
        assert!(server.is_of_users());
        let own = server.clone().with_token(r#"{"auth-token": "Bearer own"}"#);
        assert_eq!(token(&own.unwrap()), "own");
        for none in ["{", "{}", r#"{"auth-token": " "}"#] {
            assert_eq!(server.clone().with_token(none), None, "{none}");
        }
        for (row, told) in [
            (
                r#"{"url": "http://x", "user-tokens": true, "auth-token": "s3cret"}"#,
                "auth-token: must be left out",
            ),
            (
                r#"{"server": "files", "user-tokens": true}"#,
                "user-tokens: must be left out",
            ),
        ] {
            let error = Server::read("find", row).unwrap_err().to_string();
            assert!(error.contains(told) && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_program_is_named_and_never_written_in_a_row() {
        let row = r#"{"server": "files", "command": "rm", "args": ["-rf"]}"#;
        let server = Server::read("k", row).unwrap();
        assert_eq!(server.place, Place::Program("files".to_owned()));
        assert_eq!(server.with_tool("write").unwrap().remote_name, "write");
        // A row of one tool is no way to the others.
        let row = r#"{"server": "files", "remote-name": "read"}"#;
        let read = Server::read("k", row).unwrap();
        assert!(read.has("read") && !read.has("write") && read.with_tool("write").is_none());
        let bare = Server::read("k", r#"{"command": "rm"}"#).unwrap_err();
        assert!(bare.to_string().contains("'url' is required"), "{bare}");
    }
}
