//! How a backup keeps one workspace of the ledger. Runs of releases that noted no workspace go, and so does the key that signs
//! heads, which is good for all workspaces: the restored ledger makes its own.

use tg_jwt::SigningKey;
use tg_storage::rusqlite::Transaction;
use tg_storage::{OneWorkspace, StorageError, query_rows};

use super::schema::MIGRATIONS;

/// See the module.
pub const ONE_WORKSPACE: OneWorkspace = OneWorkspace::new(
    MIGRATIONS,
    &[
        "DELETE FROM run WHERE workspace <> ?1",
        "DELETE FROM step WHERE run NOT IN (SELECT run FROM run)",
        "DELETE FROM said WHERE run NOT IN (SELECT run FROM run)",
        "DELETE FROM finding WHERE run NOT IN (SELECT run FROM run)",
        "DELETE FROM call_seen WHERE run NOT IN (SELECT run FROM run)",
        "DELETE FROM remade WHERE run NOT IN (SELECT run FROM run)",
        "DELETE FROM detached WHERE workspace <> ?1",
        "DELETE FROM told WHERE workspace <> ?1",
        "DELETE FROM told_total WHERE workspace <> ?1",
        "DELETE FROM confirmation WHERE workspace <> ?1",
        "DELETE FROM record WHERE workspace <> ?1",
        "DELETE FROM record_total WHERE workspace <> ?1",
        "DELETE FROM exchange WHERE root NOT IN (SELECT root FROM record)",
        "DELETE FROM usage_call WHERE workspace <> ?1",
        "DELETE FROM usage_total WHERE workspace <> ?1",
        "DELETE FROM ended WHERE workspace <> ?1",
        "DELETE FROM head WHERE workspace <> ?1",
        "DELETE FROM task WHERE workspace <> ?1",
    ],
)
.and(without_key);

/// Removes the key that signs. What verifies by it stays, so that the heads of the workspace can be verified.
fn without_key(tx: &Transaction<'_>) -> Result<(), StorageError> {
    let keys = query_rows(tx, "SELECT pkcs8 FROM head_key", [], |row| {
        row.get::<_, Vec<u8>>(0)
    })?;
    for key in keys.iter().filter_map(|key| SigningKey::read(key).ok()) {
        tx.execute(
            "INSERT INTO head_key_before (pem) VALUES (?1)",
            [key.public().to_pem()],
        )?;
    }
    tx.execute("DELETE FROM head_key", [])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tg_schemas::WorkspaceKey;
    use tg_storage::{Database, Durability};

    use super::*;

    #[tokio::test]
    async fn what_verifies_heads_stays_and_what_signs_them_goes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("agent.db");
        let key = SigningKey::generate().unwrap();
        let pkcs8 = key.pkcs8().to_vec();
        let db = Database::open(&file, MIGRATIONS, Durability::Process).unwrap();
        let sql = "INSERT INTO head_key VALUES (1, ?1)";
        db.write(move |tx| Ok(tx.execute(sql, [pkcs8])?))
            .await
            .unwrap();
        drop(db);
        ONE_WORKSPACE
            .keep(&file, &WorkspaceKey::new("acme", 7))
            .unwrap();
        let db = Database::open(&file, MIGRATIONS, Durability::Process).unwrap();
        let all = "SELECT pem FROM head_key_before UNION ALL SELECT hex(pkcs8) FROM head_key";
        let left = db
            .read(move |conn| query_rows(conn, all, [], |row| row.get::<_, String>(0)))
            .await
            .unwrap();
        assert_eq!(left, [key.public().to_pem()]);
    }
}
