//! **Backpressure** in numbers: the **window** of a reply, in one place because they must agree: how far a server may be ahead of what
//! the client has used up, when the client says so, and what the client keeps for a reader that is behind.

use tg_schemas::limits;

/// Parts a server sends ahead of what the client has used up.
pub const WINDOW_PARTS: u64 = 192;
/// Bytes a server sends ahead; at least one part goes whatever its size.
pub const WINDOW_BYTES: usize = limits::WINDOW;
/// Most parts in one message: what is sent ahead may exceed [`WINDOW_PARTS`] by these.
pub const TOGETHER: usize = 32;
/// Largest message, in bytes, that holds several parts.
pub const JOINED_BYTES: usize = limits::JOINED;
/// The client grants credit after this many parts were used up, ...
pub const CREDIT_PARTS: u64 = 64;
/// ... or after this many bytes.
pub const CREDIT_BYTES: usize = limits::CREDIT;
/// Parts the client keeps for a reader that is behind; the server stops before.
pub const MAX_PARTS: usize = 256;
/// Bytes the client keeps for a reader that is behind: a full window, and one largest message on top of it.
pub const MAX_BYTES: usize = limits::WAITING;

const _: () = assert!(WINDOW_PARTS as usize + TOGETHER <= MAX_PARTS);
const _: () = assert!(CREDIT_PARTS < WINDOW_PARTS && CREDIT_BYTES < WINDOW_BYTES);
