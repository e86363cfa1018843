//! `get-tenant-config`: what a workspace says of its sessions.

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{CONFIG_READ, REQUEST_ID, SESSIONS, SINCE};
use super::tenant_config::TenantConfig;
use crate::topic::Class;

/// The operation.
pub struct GetTenantConfig;

impl Operation for GetTenantConfig {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "get-tenant-config",
        summary: "Shows the settings of sessions of a workspace, and which level says each.",
        capability: CONFIG_READ,
        method: "GET",
        path: "/v1/tenant/config",
        status: 200,
        stream: "",
        id_key: REQUEST_ID,
        headers: &[],
        query: &[],
        class: Class::Request,
        effect: Effect::Read,
        asks_models: false,
        since: SINCE,
    };
    type Request = Empty;
    type Reply = TenantConfig;
    type Chunk = Empty;
    type Error = Failure;
}
