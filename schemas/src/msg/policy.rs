//! The user context that policies are evaluated in. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::{nullable, string_map};
use super::message;

/// Something that a user is assigned to. Understood only by stores that filter by policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Assignment {
    #[serde(deserialize_with = "nullable")]
    /// What the user is assigned to.
    pub resource: String,
    #[serde(deserialize_with = "nullable")]
    /// How far the assignment reaches.
    pub scope: String,
    #[serde(deserialize_with = "nullable")]
    /// Where it stands, such as `active`.
    pub status: String,
    #[serde(deserialize_with = "nullable")]
    /// When it begins, as text in RFC 3339; empty: always.
    pub valid_from: String,
    #[serde(deserialize_with = "nullable")]
    /// When it ends, as text in RFC 3339; empty: never.
    pub valid_to: String,
    #[serde(deserialize_with = "string_map")]
    /// What else policies may ask for, by name.
    pub qualifiers: BTreeMap<String, String>,
}

message!(Assignment);

/// Something that a user may see. Understood only by stores that filter by policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Entitlement {
    #[serde(deserialize_with = "nullable")]
    /// Which resources.
    pub resource_scope: String,
    #[serde(deserialize_with = "nullable")]
    /// How far the access goes, in the words of the policy.
    pub access_level: String,
    #[serde(deserialize_with = "nullable")]
    /// When it begins, as text in RFC 3339; empty: always.
    pub valid_from: String,
    #[serde(deserialize_with = "nullable")]
    /// When it ends, as text in RFC 3339; empty: never.
    pub valid_to: String,
}

message!(Entitlement);

/// A right to pass over a policy. Understood only by stores that filter by policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct OverrideAuthority {
    #[serde(deserialize_with = "nullable")]
    /// Which policies.
    pub policy_area: String,
    #[serde(deserialize_with = "nullable")]
    /// When, in the words of the policy.
    pub condition: String,
}

message!(OverrideAuthority);

/// For whom a user acts. Understood only by stores that filter by policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Delegation {
    #[serde(deserialize_with = "nullable")]
    /// Id of the user for whom.
    pub delegator_id: String,
    #[serde(deserialize_with = "nullable")]
    /// How far the delegation reaches.
    pub scope: String,
}

message!(Delegation);

/// What policies know of the user for whom a question is asked. Ours passes it on; a store that filters by policy
/// reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct UserContext {
    #[serde(deserialize_with = "nullable")]
    /// Id of the user.
    pub user_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Roles, in the words of the policies.
    pub roles: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// What the user is assigned to.
    pub assignments: Vec<Assignment>,
    #[serde(deserialize_with = "nullable")]
    /// What the user may see.
    pub entitlements: Vec<Entitlement>,
    #[serde(deserialize_with = "nullable")]
    /// Units of the organisation that the user belongs to.
    pub organisational_units: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Rights to pass over policies.
    pub override_authorities: Vec<OverrideAuthority>,
    /// For whom the user acts; `None`: only for themselves.
    pub delegation: Option<Delegation>,
    #[serde(deserialize_with = "nullable")]
    /// What the question is for, in the words of the policies; empty: not said.
    pub purpose: String,
}

message!(UserContext);
