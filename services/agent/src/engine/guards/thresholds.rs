//! How often is too often.

use serde::Deserialize;

/// Longest window: what is remembered travels with every step.
pub const MAX_WINDOW: usize = 1000;

/// When the detectors find something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Whether anything is looked for.
    pub enabled: bool,
    /// Calls that are remembered.
    pub history: usize,
    /// From so many on, the model is warned.
    pub warning: usize,
    /// From so many on, the run is stopped.
    pub critical: usize,
    /// From so many of any call on, whatever else is looked for.
    pub breaker: usize,
    /// Whether repeats of one call are looked for.
    pub generic_repeat: bool,
    /// Whether polls that always say the same are looked for.
    pub known_poll_no_progress: bool,
    /// Whether two calls in turn are looked for.
    pub ping_pong: bool,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            enabled: true,
            history: 30,
            warning: 10,
            critical: 20,
            breaker: 30,
            generic_repeat: true,
            known_poll_no_progress: true,
            ping_pong: true,
        }
    }
}

impl Thresholds {
    /// Calls that are remembered: never fewer than the breaker needs.
    pub fn window(&self) -> usize {
        self.history.max(self.breaker).min(MAX_WINDOW)
    }

    /// With what a workspace says of its own.
    pub fn with(self, own: &Overrides) -> Self {
        let count = |own: Option<i64>, usual: usize, default: usize| match own {
            // What is not positive is the default.
            Some(own) => usize::try_from(own)
                .ok()
                .filter(|own| *own > 0)
                .unwrap_or(default),
            None => usual,
        };
        let default = Self::default();
        Self {
            enabled: own.enabled.unwrap_or(self.enabled),
            history: count(own.history_size, self.history, default.history),
            warning: count(own.warning_threshold, self.warning, default.warning),
            critical: count(own.critical_threshold, self.critical, default.critical),
            breaker: count(
                own.global_circuit_breaker_threshold,
                self.breaker,
                default.breaker,
            ),
            generic_repeat: own.generic_repeat.unwrap_or(self.generic_repeat),
            known_poll_no_progress: own
                .known_poll_no_progress
                .unwrap_or(self.known_poll_no_progress),
            ping_pong: own.ping_pong.unwrap_or(self.ping_pong),
        }
    }
}

/// What a workspace or a definition says of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Overrides {
    enabled: Option<bool>,
    history_size: Option<i64>,
    warning_threshold: Option<i64>,
    critical_threshold: Option<i64>,
    global_circuit_breaker_threshold: Option<i64>,
    generic_repeat: Option<bool>,
    known_poll_no_progress: Option<bool>,
    ping_pong: Option<bool>,
}

impl Overrides {
    /// From a row of configuration.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_slice(text.as_bytes()).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_positive_is_the_default_and_the_breaker_fits_the_window() {
        let usual = Thresholds {
            warning: 3,
            critical: 5,
            ..Thresholds::default()
        };
        let own = r#"{"warningThreshold": 0, "criticalThreshold": -4, "globalCircuitBreakerThreshold": 50,
                      "pingPong": false}"#;
        let with = usual.with(&Overrides::read(own).unwrap());
        assert_eq!((with.warning, with.critical, with.breaker), (10, 20, 50));
        assert_eq!((with.history, with.window()), (30, 50));
        assert!(!with.ping_pong && with.generic_repeat && with.enabled);
        assert_eq!(usual.with(&Overrides::default()), usual);
        assert!(Overrides::read(r#"{"warningThreshold": "many"}"#).is_err());
        let vast = Overrides::read(r#"{"historySize": 100000000}"#).unwrap();
        assert_eq!(usual.with(&vast).window(), MAX_WINDOW);
    }
}
