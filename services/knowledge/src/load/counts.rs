//! What a load or an unload reports of itself.

use std::collections::BTreeMap;

/// What a load or an unload did, by kind.
pub(crate) type Counts = BTreeMap<String, i64>;
