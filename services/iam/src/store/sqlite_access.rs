//! Passwords, signing keys, groups and grants in the same file.

use chrono::{DateTime, Utc};
use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, Row, Transaction, params};

use crate::engine::{Change, Grant, Grantee, Group, Signing};

/// What came with them.
pub(super) const TABLES: &str = "
    ALTER TABLE user ADD COLUMN password TEXT NOT NULL DEFAULT '';
    ALTER TABLE user ADD COLUMN session INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE api_key ADD COLUMN scopes TEXT NOT NULL DEFAULT '';
    CREATE TABLE signing_key (
        kid TEXT PRIMARY KEY,
        pkcs8 BLOB NOT NULL,
        created INTEGER NOT NULL,
        retired INTEGER
    );
    CREATE TABLE user_group (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        description TEXT NOT NULL,
        enabled INTEGER NOT NULL,
        created INTEGER NOT NULL,
        made_by TEXT NOT NULL
    );
    CREATE TABLE group_member (
        group_id TEXT NOT NULL,
        user_id TEXT NOT NULL,
        PRIMARY KEY (group_id, user_id)
    ) WITHOUT ROWID;
    CREATE INDEX member_group ON group_member (user_id);
    CREATE TABLE access_grant (
        holder TEXT NOT NULL,
        holder_id TEXT NOT NULL,
        capability TEXT NOT NULL,
        workspace TEXT NOT NULL,
        PRIMARY KEY (holder, holder_id, capability, workspace)
    ) WITHOUT ROWID;
    CREATE INDEX grant_workspace ON access_grant (workspace);
";

/// Makes one of the changes that concern them.
pub(super) fn write(tx: &Transaction<'_>, change: &Change) -> Result<(), StorageError> {
    let run = |sql: &str, values: &[&dyn tg_storage::rusqlite::ToSql]| {
        tx.prepare_cached(sql)?.execute(values)?;
        Ok(())
    };
    match change {
        Change::PutSigning(one) => run(
            "INSERT INTO signing_key VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (kid) DO UPDATE SET retired = excluded.retired",
            params![
                one.key.public().kid(),
                one.key.pkcs8(),
                one.created.timestamp(),
                one.retired.map(|at| at.timestamp())
            ],
        ),
        Change::RemoveSigning(kid) => run("DELETE FROM signing_key WHERE kid = ?1", params![kid]),
        Change::PutGroup(g) => run(
            "INSERT INTO user_group VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (id) DO UPDATE SET name = excluded.name,
                 description = excluded.description, enabled = excluded.enabled",
            params![
                g.id,
                g.name,
                g.description,
                g.enabled,
                g.created.timestamp(),
                g.made_by
            ],
        ),
        Change::RemoveGroup(id) => {
            run("DELETE FROM group_member WHERE group_id = ?1", params![id])?;
            let sql = "DELETE FROM access_grant WHERE holder = 'group' AND holder_id = ?1";
            run(sql, params![id])?;
            run("DELETE FROM user_group WHERE id = ?1", params![id])
        }
        Change::PutMember(group, user) => run(
            "INSERT INTO group_member VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            params![group, user],
        ),
        Change::RemoveMember(group, user) => run(
            "DELETE FROM group_member WHERE group_id = ?1 AND user_id = ?2",
            params![group, user],
        ),
        Change::PutGrant(holder, grant) => run(
            "INSERT INTO access_grant VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            params![
                holder.kind(),
                holder.id(),
                grant.capability,
                grant.workspace
            ],
        ),
        Change::RemoveGrant(holder, grant) => run(
            "DELETE FROM access_grant
             WHERE holder = ?1 AND holder_id = ?2 AND capability = ?3 AND workspace = ?4",
            params![
                holder.kind(),
                holder.id(),
                grant.capability,
                grant.workspace
            ],
        ),
        // The others are written where all changes are.
        _ => Ok(()),
    }
}

/// What goes with a user.
pub(super) fn without_user(tx: &Transaction<'_>, id: &str) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM group_member WHERE user_id = ?1")?
        .execute([id])?;
    tx.prepare_cached("DELETE FROM access_grant WHERE holder = 'user' AND holder_id = ?1")?
        .execute([id])?;
    Ok(())
}

/// What goes with a workspace.
pub(super) fn without_workspace(tx: &Transaction<'_>, id: &str) -> Result<(), StorageError> {
    // Nothing in a workspace is a grant for all of them.
    tx.prepare_cached("DELETE FROM access_grant WHERE workspace = ?1 AND workspace <> ''")?
        .execute([id])?;
    Ok(())
}

/// All of it, as the changes that make it.
pub(super) fn read(conn: &Connection) -> Result<Vec<Change>, StorageError> {
    let mut all = Vec::new();
    let signing = "SELECT pkcs8, created, retired FROM signing_key ORDER BY kid";
    let groups =
        "SELECT id, name, description, enabled, created, made_by FROM user_group ORDER BY id";
    let members = "SELECT group_id, user_id FROM group_member ORDER BY group_id, user_id";
    let grants = "SELECT holder, holder_id, capability, workspace FROM access_grant
                  ORDER BY holder, holder_id, capability, workspace";
    rows(conn, signing, &mut all, signing_key)?;
    rows(conn, groups, &mut all, group)?;
    rows(conn, members, &mut all, |row| {
        Ok(Change::PutMember(row.get(0)?, row.get(1)?))
    })?;
    rows(conn, grants, &mut all, grant)?;
    Ok(all)
}

fn rows(
    conn: &Connection,
    sql: &str,
    into: &mut Vec<Change>,
    read: fn(&Row<'_>) -> Result<Change, StorageError>,
) -> Result<(), StorageError> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        into.push(read(row)?);
    }
    Ok(())
}

fn signing_key(row: &Row<'_>) -> Result<Change, StorageError> {
    let pkcs8: Vec<u8> = row.get(0)?;
    let retired: Option<i64> = row.get(2)?;
    let key = tg_jwt::SigningKey::read(&pkcs8);
    Ok(Change::PutSigning(Signing {
        key: key.map_err(|fault| StorageError::Corrupt(fault.to_string()))?,
        created: time(row.get(1)?)?,
        retired: retired.map(time).transpose()?,
    }))
}

fn group(row: &Row<'_>) -> Result<Change, StorageError> {
    Ok(Change::PutGroup(Group {
        id: row.get(0)?,
        name: row.get(1)?,
        description: row.get(2)?,
        enabled: row.get(3)?,
        created: time(row.get(4)?)?,
        made_by: row.get(5)?,
    }))
}

fn grant(row: &Row<'_>) -> Result<Change, StorageError> {
    let (kind, id): (String, String) = (row.get(0)?, row.get(1)?);
    let holder = match kind.as_str() {
        "user" => Grantee::User(id),
        "group" => Grantee::Group(id),
        _ => return Err(StorageError::Corrupt("a grant is nobody's".to_owned())),
    };
    Ok(Change::PutGrant(
        holder,
        Grant {
            capability: row.get(2)?,
            workspace: row.get(3)?,
        },
    ))
}

/// A time as it is kept.
pub(super) fn time(seconds: i64) -> Result<DateTime<Utc>, StorageError> {
    DateTime::from_timestamp(seconds, 0)
        .ok_or_else(|| StorageError::Corrupt("a time is out of range".to_owned()))
}
