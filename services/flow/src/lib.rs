//! Blueprints, flow lifecycle and put-aside records.
