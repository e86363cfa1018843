//! What a token says.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who makes the tokens.
pub const ISSUER: &str = "trustgraph-iam";
/// How long a token is good, in seconds.
pub const LIFETIME: i64 = 3600;

/// The claims of a token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claims {
    /// Who made it.
    pub iss: String,
    /// Id of the user.
    pub sub: String,
    /// Where requests go that name no workspace.
    pub default_workspace: String,
    /// When it was made, in seconds of Unix.
    pub iat: i64,
    /// When it ends.
    pub exp: i64,
    /// From when on it is good, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nbf: Option<i64>,
    /// The user's sessions are counted: those of an earlier count are over. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<i64>,
    /// What policies are to know of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_context: Option<Map<String, Value>>,
}

impl Claims {
    /// A token that begins now.
    pub fn new(user_id: &str, workspace: &str, session: i64, now: i64) -> Self {
        Self {
            iss: ISSUER.to_owned(),
            sub: user_id.to_owned(),
            default_workspace: workspace.to_owned(),
            iat: now,
            exp: now + LIFETIME,
            nbf: None,
            session: Some(session),
            user_context: None,
        }
    }
}
