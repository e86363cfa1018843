//! Options of services: serde structs that know their defaults, their ranges and what each of them means.
//!
//! * [`options!`] declares such a struct; its fields are settings, its doc comments the page of settings.
//! * [`read`] reads one from texts by key, as files and the environment give them. All mistakes are reported at once, each
//!   as a [`SettingError`] with its key and never with its value.
//! * [`Key`] is a setting as the listing shows it.
//!
//! ```
//! tg_settings::options! {
//!     /// How texts are cut.
//!     pub struct Options {
//!         /// Characters of a piece.
//!         size: usize = 400, Whole(10..=10_000);
//!         /// What pieces are cut at; empty: at nothing.
//!         mark: Option<String> = None;
//!     }
//! }
//!
//! let given = [("size".to_owned(), "20".to_owned())].into();
//! let (options, faults) = tg_settings::read::<Options>(given);
//! assert_eq!((options.size, faults), (20, vec![]));
//! let given = [("size".to_owned(), "5".to_owned())].into();
//! let (options, faults) = tg_settings::read::<Options>(given);
//! assert_eq!(faults[0].to_string(), "size: must be a whole number from 10 to 10,000");
//! assert_eq!(options, Options::default());
//! ```

// The code that the macro makes names this crate.
#[cfg(test)]
extern crate self as tg_settings;

mod error;
mod key;
mod near;
mod options;
mod reference;
mod source;

pub use error::SettingError;
pub use key::{Bounds, Filled, Key};
#[doc(hidden)]
pub use options::listing;
pub use options::{Options, shown};
pub use reference::resolved;
pub use source::{Texts, read, variables};

#[doc(hidden)]
pub use serde;
