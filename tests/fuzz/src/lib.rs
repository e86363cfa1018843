//! Fuzz targets of what is public: one per parser of bytes that come from outside. Parsers that a crate keeps to
//! itself have theirs beside them (`fuzz.rs`). All run through `tg_testkit::fuzz`, a moment each, a minute together
//! in `make test`.
