//! How a backup keeps one workspace of the directory: who is at home there, with keys, groups and grants. What signs tokens is
//! good for all workspaces and goes; a restored system makes its own. What happened goes, too: an entry about the workspace
//! names people who are at home elsewhere.

use tg_storage::OneWorkspace;

use super::sqlite::MIGRATIONS;

/// See the module. As a fresh directory has it, the workspace `default` is there in any case.
pub const ONE_WORKSPACE: OneWorkspace = OneWorkspace::new(
    MIGRATIONS,
    &[
        "DELETE FROM workspace WHERE id <> ?2",
        "INSERT INTO workspace (id, generation, name, enabled, created, restoring)
         SELECT 'default', -1, 'default', 1, unixepoch(), '' WHERE ?2 <> 'default'",
        "DELETE FROM user WHERE home <> ?2",
        "DELETE FROM api_key WHERE user_id NOT IN (SELECT id FROM user)",
        "DELETE FROM group_member WHERE user_id NOT IN (SELECT id FROM user)",
        "DELETE FROM user_group WHERE id NOT IN (SELECT group_id FROM group_member)",
        "DELETE FROM group_member WHERE group_id NOT IN (SELECT id FROM user_group)",
        "DELETE FROM access_grant WHERE workspace NOT IN (?2, '') OR NOT (
             holder = 'user' AND holder_id IN (SELECT id FROM user)
             OR holder = 'group' AND holder_id IN (SELECT id FROM user_group))",
        "DELETE FROM signing_key",
        "DELETE FROM audit",
        "DELETE FROM audit_shelf",
        "DELETE FROM audit_part",
        "DELETE FROM audit_source",
    ],
);

#[cfg(test)]
mod tests {
    use tg_schemas::WorkspaceKey;
    use tg_storage::{Database, Durability, query_rows};

    use super::*;

    /// Who is at home in two workspaces, with keys, and in a group of both.
    const FILLED: &str = "
        INSERT INTO workspace VALUES ('acme', 7, 'Acme', 1, 1, ''), ('other', 9, 'Other', 1, 1, '');
        INSERT INTO user (id, home, username, name, email, roles, enabled, must_change_password, created, made_by)
        VALUES ('u1', 'acme', 'ann', '', '', 'admin', 1, 0, 1, ''), ('u2', 'other', 'bob', '', '', '', 1, 0, 1, '');
        INSERT INTO api_key (id, user_id, name, prefix, hash, created, made_by)
        VALUES ('k1', 'u1', '', '', 'h1', 1, ''), ('k2', 'u2', '', '', 'h2', 1, '');
        INSERT INTO user_group VALUES ('g1', 'both', '', 1, 1, ''), ('g2', 'others', '', 1, 1, '');
        INSERT INTO group_member VALUES ('g1', 'u1'), ('g1', 'u2'), ('g2', 'u2');
        INSERT INTO access_grant VALUES ('user', 'u1', 'c', 'acme'), ('user', 'u1', 'c', 'other'),
            ('user', 'u2', 'c', 'acme'), ('group', 'g1', 'c', ''), ('group', 'g2', 'c', '');
        INSERT INTO signing_key VALUES ('s', x'00', 1, NULL);";

    #[tokio::test]
    async fn who_is_at_home_in_the_workspace_stays_and_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("iam.sqlite");
        let db = Database::open(&file, MIGRATIONS, Durability::Process).unwrap();
        db.write(|tx| Ok(tx.execute_batch(FILLED)?)).await.unwrap();
        drop(db);
        ONE_WORKSPACE
            .keep(&file, &WorkspaceKey::new("acme", 7))
            .unwrap();
        let db = Database::open(&file, MIGRATIONS, Durability::Process).unwrap();
        let all = "SELECT id || generation FROM workspace UNION ALL SELECT id FROM user
                   UNION ALL SELECT id FROM api_key UNION ALL SELECT id FROM user_group
                   UNION ALL SELECT group_id || user_id FROM group_member
                   UNION ALL SELECT holder_id || workspace FROM access_grant
                   UNION ALL SELECT kid FROM signing_key ORDER BY 1";
        let left = db
            .read(move |conn| query_rows(conn, all, [], |row| row.get::<_, String>(0)))
            .await
            .unwrap();
        assert_eq!(
            left,
            [
                "acme7",
                "default-1",
                "g1",
                "g1",
                "g1u1",
                "k1",
                "u1",
                "u1acme"
            ]
        );
    }
}
