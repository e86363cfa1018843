//! `put-tenant-config`: changes what a workspace says of its sessions.

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{CONFIG_WRITE, REQUEST_ID, SESSIONS, SINCE};
use super::tenant_config::{TenantChange, TenantConfig};
use crate::topic::Class;

/// The operation.
pub struct PutTenantConfig;

impl Operation for PutTenantConfig {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "put-tenant-config",
        summary: "Changes the settings of sessions of a workspace. A setting that is null is taken back.",
        capability: CONFIG_WRITE,
        method: "PUT",
        path: "/v1/tenant/config",
        status: 200,
        stream: "",
        id_key: REQUEST_ID,
        headers: &[],
        query: &[],
        class: Class::Request,
        effect: Effect::Write,
        asks_models: false,
        since: SINCE,
    };
    type Request = TenantChange;
    type Reply = TenantConfig;
    type Chunk = Empty;
    type Error = Failure;
}
