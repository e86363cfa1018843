//! Knowledge cores: knowledge and kg-store.
