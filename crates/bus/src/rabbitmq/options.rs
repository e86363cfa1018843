//! How a process uses a broker.

use crate::bus::MAX_BODY;
use crate::mode::WireRules;

/// How this process uses a broker.
#[derive(Debug, Clone, Copy)]
pub struct RabbitOptions {
    /// Seconds without a sign of life after which a connection is given up (twice this, on either side).
    pub heartbeat: u16,
    /// Largest body in bytes.
    pub max_body: usize,
    /// Channels with confirms, for questions and for records each.
    pub publishers: usize,
}

impl RabbitOptions {
    /// The defaults on a wire.
    pub fn of(rules: impl Into<&'static WireRules>) -> Self {
        Self {
            heartbeat: rules.into().heartbeat,
            max_body: MAX_BODY,
            publishers: 4,
        }
    }
}
