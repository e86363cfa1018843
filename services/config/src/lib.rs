//! Key/type/value configuration per workspace, with change notices.
