//! Everybody and everything known, in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};

use super::{ADMIN, Change, Grant, Grantee, Group, Key, Signing, User, Workspace};

/// All of it, with the ways to find it.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    workspaces: BTreeMap<String, Workspace>,
    users: BTreeMap<String, User>,
    by_username: HashMap<String, String>,
    keys: HashMap<String, Key>,
    by_hash: HashMap<String, String>,
    by_user: HashMap<String, BTreeSet<String>>,
    signing: BTreeMap<String, Signing>,
    groups: BTreeMap<String, Group>,
    members: BTreeMap<String, BTreeSet<String>>,
    memberships: BTreeMap<String, BTreeSet<String>>,
    grants: BTreeMap<Grantee, BTreeSet<Grant>>,
}

impl Directory {
    /// A workspace by id.
    pub(crate) fn workspace(&self, id: &str) -> Option<&Workspace> {
        self.workspaces.get(id)
    }

    /// All workspaces by id.
    pub(crate) fn workspaces(&self) -> impl ExactSizeIterator<Item = &Workspace> {
        self.workspaces.values()
    }

    /// Whether the workspace is there and enabled.
    pub(crate) fn is_open(&self, workspace: &str) -> bool {
        self.workspace(workspace).is_some_and(|w| w.enabled)
    }

    /// A user by id.
    pub(crate) fn user(&self, id: &str) -> Option<&User> {
        self.users.get(id)
    }

    /// A user by name.
    pub(crate) fn named(&self, username: &str) -> Option<&User> {
        self.users.get(self.by_username.get(username)?)
    }

    /// All users.
    pub(crate) fn users(&self) -> impl ExactSizeIterator<Item = &User> {
        self.users.values()
    }

    /// A key by id.
    pub(crate) fn key(&self, id: &str) -> Option<&Key> {
        self.keys.get(id)
    }

    /// A key by the hash of its text.
    pub(crate) fn key_by_hash(&self, hash: &str) -> Option<&Key> {
        self.keys.get(self.by_hash.get(hash)?)
    }

    /// A user's keys.
    pub(crate) fn keys_of(&self, user_id: &str) -> impl Iterator<Item = &Key> {
        self.by_user
            .get(user_id)
            .into_iter()
            .flatten()
            .filter_map(|id| self.keys.get(id))
    }

    /// What signs tokens, and what did.
    pub(crate) fn signing(&self) -> impl Iterator<Item = &Signing> {
        self.signing.values()
    }

    /// A group by id.
    pub(crate) fn group(&self, id: &str) -> Option<&Group> {
        self.groups.get(id)
    }

    /// All groups.
    pub(crate) fn groups(&self) -> impl ExactSizeIterator<Item = &Group> {
        self.groups.values()
    }

    /// Ids of a group's members.
    pub(crate) fn members(&self, group_id: &str) -> impl Iterator<Item = &String> {
        self.members.get(group_id).into_iter().flatten()
    }

    /// The groups of a user.
    pub(crate) fn groups_of<'a>(
        &'a self,
        user_id: &str,
    ) -> impl Iterator<Item = &'a Group> + use<'a> {
        let ids = self.memberships.get(user_id).into_iter().flatten();
        ids.filter_map(|id| self.groups.get(id))
    }

    /// What was granted to somebody themselves.
    pub(crate) fn grants<'a>(
        &'a self,
        holder: &Grantee,
    ) -> impl Iterator<Item = &'a Grant> + use<'a> {
        self.grants.get(holder).into_iter().flatten()
    }

    /// Whether the user's keys are good now.
    pub(crate) fn is_active(&self, user: &User) -> bool {
        user.enabled && self.is_open(&user.home)
    }

    /// Whether a user can come in now as who they are: by a password, or by a key that has not ended and may all
    /// that they may, when those keys do not count. Nobody by an external issuer: it may be gone tomorrow, or say
    /// something else of them at their next login, which is not ours to refuse.
    pub(crate) fn comes_in(
        &self,
        user: &User,
        now: DateTime<Utc>,
        without: impl Fn(&Key) -> bool,
    ) -> bool {
        let good = |key: &Key| {
            key.scopes.is_empty() && key.expires.is_none_or(|end| now < end) && !without(key)
        };
        let by_us = self.is_active(user) && !user.is_external();
        by_us && (user.password.is_some() || self.keys_of(&user.id).any(good))
    }

    /// Whether there is an administrator who stays one that can come in.
    pub(crate) fn keeps_admin(&self, stays: impl Fn(&User) -> bool) -> bool {
        let mut admins = self.users.values().filter(|one| one.roles.contains(ADMIN));
        admins.any(stays)
    }

    /// Takes a change.
    pub(crate) fn apply(&mut self, change: &Change) {
        match change {
            Change::PutWorkspace(workspace) => {
                self.workspaces
                    .insert(workspace.id.clone(), workspace.clone());
            }
            Change::RemoveWorkspace(id) => {
                self.workspaces.remove(id);
                for grants in self.grants.values_mut() {
                    grants.retain(|grant| grant.workspace != *id);
                }
                self.grants.retain(|_, grants| !grants.is_empty());
            }
            Change::PutUser(user) => {
                self.by_username
                    .insert(user.username.clone(), user.id.clone());
                self.users.insert(user.id.clone(), user.clone());
            }
            Change::RemoveUser(id) => {
                if let Some(user) = self.users.remove(id) {
                    self.by_username.remove(&user.username);
                }
                self.grants.remove(&Grantee::User(id.clone()));
                for group in self.memberships.remove(id).unwrap_or_default() {
                    take(&mut self.members, &group, id);
                }
            }
            Change::PutKey(key) => {
                self.by_hash.insert(key.hash.clone(), key.id.clone());
                self.by_user
                    .entry(key.user_id.clone())
                    .or_default()
                    .insert(key.id.clone());
                self.keys.insert(key.id.clone(), key.clone());
            }
            Change::RemoveKey(id) => {
                if let Some(key) = self.keys.remove(id) {
                    self.by_hash.remove(&key.hash);
                    if let Some(ids) = self.by_user.get_mut(&key.user_id) {
                        ids.remove(id);
                        if ids.is_empty() {
                            self.by_user.remove(&key.user_id);
                        }
                    }
                }
            }
            _ => self.apply_access(change),
        }
    }

    fn apply_access(&mut self, change: &Change) {
        match change {
            Change::PutSigning(signing) => {
                let kid = signing.key.public().kid();
                self.signing.insert(kid, signing.clone());
            }
            Change::RemoveSigning(kid) => {
                self.signing.remove(kid);
            }
            Change::PutGroup(group) => {
                self.groups.insert(group.id.clone(), group.clone());
            }
            Change::RemoveGroup(id) => {
                self.groups.remove(id);
                self.grants.remove(&Grantee::Group(id.clone()));
                for user in self.members.remove(id).unwrap_or_default() {
                    take(&mut self.memberships, &user, id);
                }
            }
            Change::PutMember(group, user) => {
                put(&mut self.members, group.clone(), user.clone());
                put(&mut self.memberships, user.clone(), group.clone());
            }
            Change::RemoveMember(group, user) => {
                take(&mut self.members, group, user);
                take(&mut self.memberships, user, group);
            }
            Change::PutGrant(holder, grant) => {
                put(&mut self.grants, holder.clone(), grant.clone());
            }
            Change::RemoveGrant(holder, grant) => take(&mut self.grants, holder, grant),
            _ => {}
        }
    }
}

fn put<K: Ord, V: Ord>(sets: &mut BTreeMap<K, BTreeSet<V>>, key: K, value: V) {
    sets.entry(key).or_default().insert(value);
}

fn take<K: Ord, V: Ord>(sets: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}
