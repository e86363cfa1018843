//! A row of config type `mcp`.

use serde::Deserialize;
use tg_provider_http::Secret;

use crate::error::ToolError;

/// A tool behind a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Server {
    pub(super) url: String,
    /// The tool's name at the server.
    #[serde(default, rename = "remote-name")]
    pub(super) remote_name: String,
    #[serde(default, rename = "auth-token")]
    pub(super) token: Option<Secret>,
}

impl Server {
    /// Reads a row; the error names the field.
    pub(crate) fn read(key: &str, value: &str) -> Result<Self, ToolError> {
        let fault = |why: &str| ToolError::Row {
            key: key.to_owned(),
            why: why.to_owned(),
        };
        let mut server: Self = serde_json::from_str(value)
            .map_err(|_| fault("the configuration cannot be read; 'url' is required"))?;
        let web = ["http://", "https://"]
            .iter()
            .any(|scheme| server.url.starts_with(scheme));
        if !web {
            return Err(fault("url: must begin with http:// or https://"));
        }
        if server.remote_name.is_empty() {
            key.clone_into(&mut server.remote_name);
        }
        server.token = server.token.filter(|token| !token.expose().is_empty());
        Ok(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_its_fault_and_keeps_its_secret() {
        let row = r#"{"url": "http://x/mcp", "auth-token": "s3cret"}"#;
        let server = Server::read("find", row).unwrap();
        assert_eq!(server.remote_name, "find");
        assert!(!format!("{server:?}").contains("s3cret"));
        for bad in ["{", "{}", r#"{"url": "ftp://x"}"#] {
            let error = Server::read("find", bad).unwrap_err();
            assert!(
                error.to_string().contains("'find'") && error.to_string().contains("url"),
                "{error}"
            );
        }
    }
}
