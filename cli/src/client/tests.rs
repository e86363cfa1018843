//! Tests of the clients.
