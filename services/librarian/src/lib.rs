//! Documents and their content.
