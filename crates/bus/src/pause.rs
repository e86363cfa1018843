//! How pauses between tries grow: each is twice the one before, up to a bound. Everything on the bus and above waits by
//! these; who calls a server of others has `Backoff` of `tg-provider-http`, which also counts tries and adds chance.

use std::time::Duration;

/// After the bus is up again: one that goes down at once must not be asked in a tight loop.
pub const ONCE_UP: Duration = Duration::from_millis(10);

/// The pause after this one.
pub fn doubled(pause: Duration, longest: Duration) -> Duration {
    pause.saturating_mul(2).min(longest)
}

/// The pause after so many failed tries, where `first` is the one after none.
pub fn after(first: Duration, tries: u32, longest: Duration) -> Duration {
    let factor = 1_u32.checked_shl(tries).unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_bound() {
        let second = Duration::from_secs(1);
        assert_eq!(doubled(second, second * 5), second * 2);
        assert_eq!(doubled(second * 4, second * 5), second * 5);
        let mut pause = second;
        for tries in 0..100 {
            assert_eq!(after(second, tries, second * 300), pause, "{tries}");
            pause = doubled(pause, second * 300);
        }
        assert_eq!(after(Duration::MAX, 32, Duration::MAX), Duration::MAX);
    }
}
