//! Which configuration is known.

use super::*;

pub(super) async fn a_known_config_store_is_remembered(ledger: Store) {
    let config = ledger.known_config();
    assert_eq!(config.config_known().await.unwrap(), None);
    for version in [3, 5, 5] {
        let known = tg_storage::ConfigKnown {
            identity: "x".into(),
            version,
        };
        config.remember_config(known.clone()).await.unwrap();
        assert_eq!(config.config_known().await.unwrap(), Some(known));
    }
}
