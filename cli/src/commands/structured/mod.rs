//! Rows from files: `tg load-structured-data`.
//!
//! * `descriptor` says how a file is read and what its records become; it is read whole before anything
//!   else, and what this program does not do is refused by name.
//! * `records` reads CSV, JSON and XML record by record; a file is never held whole.
//! * `transform` and `validate` change and check single values. Pure.
//! * `rows` makes rows of records, counts what is refused and says why.
//! * `diagnose` asks the flow which schema a sample fits and how it is read.
//! * `propose` makes a schema and a descriptor of the file alone; `make` asks the user and stores it.
//! * `fit` says whether a descriptor fills rows of a schema. Pure.
//! * `load` is the command: `steps` reads the file beside it, `parsed` takes rows that are only shown.
//! * `saved` takes all rows, or vectors, of a collection to a file and back: `tg save-rows`, `tg load-rows`,
//!   `tg save-vectors`, `tg load-vectors`.

pub mod load;
pub mod saved;

mod descriptor;
mod diagnose;
mod fit;
#[cfg(test)]
mod fuzz;
mod make;
mod parsed;
mod propose;
mod records;
mod rows;
mod steps;
mod transform;
mod validate;
