//! How much a model can read at once, and whether that is enough to work with.

/// Tokens below which no model is asked.
pub const LEAST: u64 = 16_000;
/// Tokens below which it is reported that they are few.
pub const FEW: u64 = 32_000;

/// What becomes of a question to a model with such a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It is asked.
    Enough,
    /// It is asked, and it is told that there is little room.
    Little,
    /// It is not asked.
    TooLittle,
}

/// What becomes of a question.
pub fn room(window: u64) -> Room {
    match window {
        window if window < LEAST => Room::TooLittle,
        window if window < FEW => Room::Little,
        _ => Room::Enough,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 95
    #[test]
    fn the_bounds_are_exact() {
        assert_eq!(room(15_999), Room::TooLittle);
        assert_eq!((room(16_000), room(31_999)), (Room::Little, Room::Little));
        assert_eq!(room(32_000), Room::Enough);
        assert_eq!(
            room(tg_compaction::window(None, None, Some(0))),
            Room::Enough
        );
    }
}
