//! SQLite pool, migrations and blob files.
