//! How a process uses a broker.

use tg_tls::ClientFiles;

use crate::bus::MAX_BODY;
use crate::mode::WireRules;

/// Bytes of records in hand where nobody says otherwise.
const IN_HAND: usize = 128 << 20;

/// The exchange through which processes with users of their own answer each other. Each broker has it, and nobody can delete it or
/// make it another one. It routes by topics, so the broker can say which inboxes a user may bind to it.
pub const INBOX_EXCHANGE: &str = "amq.topic";

/// What the queues of records are on a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordQueues {
    /// On one node: while that is away, so are its queues.
    #[default]
    Classic,
    /// On most nodes of a cluster: they go on while more than half of the nodes are there.
    Quorum,
}

/// How this process uses a broker.
#[derive(Debug, Clone)]
pub struct RabbitOptions {
    /// Seconds without a sign of life after which a connection is given up (twice this, on either side).
    pub heartbeat: u16,
    /// Largest body in bytes.
    pub max_body: usize,
    /// Bytes of records that consumers hold at once, beside one for each of them.
    pub in_hand: usize,
    /// Channels with confirms, for questions and for records each.
    pub publishers: usize,
    /// Answers travel through [`INBOX_EXCHANGE`], and not through the broker's default one, on which whoever may publish
    /// reaches every queue. All processes of a system need the same.
    pub inbox_exchange: bool,
    /// What queues of records are. All processes of a system need the same.
    pub queues: RecordQueues,
    /// Whom this process trusts to be the broker, and what it shows of itself, where the address begins with `amqps://`.
    pub tls: ClientFiles,
}

impl RabbitOptions {
    /// The defaults on a wire.
    pub fn of(rules: impl Into<&'static WireRules>) -> Self {
        Self {
            heartbeat: rules.into().heartbeat,
            max_body: MAX_BODY,
            in_hand: IN_HAND,
            publishers: 4,
            inbox_exchange: false,
            queues: RecordQueues::default(),
            tls: ClientFiles::default(),
        }
    }
}
