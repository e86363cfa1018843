//! Guards of the loop: does a run get anywhere, and what becomes of it where it does not.
//!
//! [`calls`] makes two calls comparable · [`thresholds`] says when it is too much · [`window`] is what is remembered of
//! calls · [`detectors`] find four kinds of loops in it · [`ladder`] is what follows: the model is warned, told, blocked,
//! and the run stops with the best it has ·
//! [`budget`] is what a run may take.

pub mod budget;
pub mod calls;
pub mod detectors;
pub mod ladder;
pub mod thresholds;
pub mod window;

pub use self::budget::{Budget, Exhausted};
pub use self::detectors::{Detector, Finding, Level};
pub use self::ladder::{Climbed, Rung};
pub use self::thresholds::Thresholds;
pub use self::window::Window;

#[cfg(test)]
mod histories;
#[cfg(test)]
mod tests;
