//! Workspace and flow ids: validated once, at the endpoint, so that no name built from them can be ambiguous.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorCode};

/// Workspace and flow id together must leave room for the longest queue name (255 bytes, AMQP).
pub const MAX_PAIR: usize = 93;

fn check(field: &str, text: &str) -> Result<(), Error> {
    let fault = |why: &str| Err(Error::new(ErrorCode::BadRequest, format!("{field}: {why}")));
    if text.is_empty() {
        return fault("is required");
    }
    if text.len() >= MAX_PAIR {
        return fault("is too long (at most 92 bytes)");
    }
    let mut chars = text.chars();
    let first_ok = chars.next().is_some_and(|c| c.is_ascii_alphanumeric());
    if !first_ok || !chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')) {
        return fault(
            "may contain letters, digits, '.', '_' and '-', and starts with a letter or digit",
        );
    }
    if text.contains("--") {
        return fault("must not contain '--'");
    }
    Ok(())
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $field:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Validates the text. The error names the field.
            ///
            /// # Errors
            /// `bad-request`: it is empty, too long, or has characters that no id may have.
            pub fn new(text: &str) -> Result<Self, Error> {
                check($field, text)?;
                Ok(Self(text.into()))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;
            fn try_from(text: String) -> Result<Self, Error> {
                Self::new(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().to_owned()
            }
        }
    };
}

id_type!(
    /// A workspace: the unit of isolation.
    WorkspaceId,
    "workspace"
);
id_type!(
    /// A flow: one running instance of a blueprint in a workspace.
    FlowId,
    "flow-id"
);

/// Checks that the two ids fit together into every queue name.
///
/// # Errors
/// `bad-request`: together they are too long.
pub fn check_pair(workspace: &WorkspaceId, flow: &FlowId) -> Result<(), Error> {
    if workspace.as_str().len() + flow.as_str().len() > MAX_PAIR {
        return Err(Error::new(
            ErrorCode::BadRequest,
            format!("flow-id: workspace and flow id together may have at most {MAX_PAIR} bytes"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_ids_are_refused_with_the_field_named() {
        let long = "x".repeat(300);
        for bad in [
            "", "a:b", "a/b", "a--b", "-a", "_sys", "ü", "a b", "{id}", &long,
        ] {
            let error = WorkspaceId::new(bad).unwrap_err();
            assert!(error.message.starts_with("workspace: "), "{error:?}");
        }
        for good in ["default", "a", "A.b_c-d", "0"] {
            assert_eq!(FlowId::new(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn the_pair_is_bounded() {
        let ws = WorkspaceId::new(&"w".repeat(50)).unwrap();
        assert!(check_pair(&ws, &FlowId::new(&"f".repeat(43)).unwrap()).is_ok());
        assert!(check_pair(&ws, &FlowId::new(&"f".repeat(44)).unwrap()).is_err());
    }
}
