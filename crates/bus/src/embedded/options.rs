//! How an embedded bus is set up.

use tg_storage::Durability;

use crate::bus::MAX_BODY;
use crate::mode::WireRules;

/// How an embedded bus behaves.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedOptions {
    /// What holds on it.
    pub rules: &'static WireRules,
    /// How hard a confirmed record is.
    pub durability: Durability,
    /// Largest body in bytes.
    pub max_body: usize,
    /// Bytes of waiting records held in memory; more wait on disk, or are refused without one.
    pub memory: usize,
    /// Bytes on disk beyond which records are refused. Of those that wait, one workspace has half.
    pub disk: u64,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            rules: Default::default(),
            durability: Durability::Process,
            max_body: MAX_BODY,
            memory: 128 << 20,
            disk: 16 << 30,
        }
    }
}
