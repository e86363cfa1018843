//! How a process uses a broker.

use crate::bus::MAX_BODY;
use crate::mode::Mode;

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
    /// The defaults of a mode.
    pub fn of(mode: Mode) -> Self {
        Self {
            heartbeat: match mode {
                Mode::Native => 15,
                Mode::Interop => 60,
            },
            max_body: MAX_BODY,
            publishers: 4,
        }
    }
}
