//! The user context that policies are evaluated in. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::{nullable, string_map};
use super::message;

/// The `Assignment` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Assignment {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `resource`.
    pub resource: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `scope`.
    pub scope: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `status`.
    pub status: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `valid_from`.
    pub valid_from: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `valid_to`.
    pub valid_to: String,
    #[serde(deserialize_with = "string_map")]
    /// Wire field `qualifiers`.
    pub qualifiers: BTreeMap<String, String>,
}

message!(Assignment);

/// The `Entitlement` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Entitlement {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `resource_scope`.
    pub resource_scope: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `access_level`.
    pub access_level: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `valid_from`.
    pub valid_from: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `valid_to`.
    pub valid_to: String,
}

message!(Entitlement);

/// The `OverrideAuthority` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct OverrideAuthority {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `policy_area`.
    pub policy_area: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `condition`.
    pub condition: String,
}

message!(OverrideAuthority);

/// The `Delegation` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Delegation {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `delegator_id`.
    pub delegator_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `scope`.
    pub scope: String,
}

message!(Delegation);

/// The `UserContext` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct UserContext {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `user_id`.
    pub user_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `roles`.
    pub roles: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `assignments`.
    pub assignments: Vec<Assignment>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `entitlements`.
    pub entitlements: Vec<Entitlement>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `organisational_units`.
    pub organisational_units: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `override_authorities`.
    pub override_authorities: Vec<OverrideAuthority>,
    /// Wire field `delegation`.
    pub delegation: Option<Delegation>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `purpose`.
    pub purpose: String,
}

message!(UserContext);
