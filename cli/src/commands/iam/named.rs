//! A user by id or by name: people know the name, the service takes the id.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::in_workspace;
use crate::client::Result;
use crate::fields::{list, text};
use crate::session::Session;

/// The id of a user. What is no name of one that the caller may see is taken for an id, and the service says if it is none.
///
/// # Errors
/// Where the gateway cannot be asked at all.
pub(super) async fn user_id(
    session: &Session,
    given: &str,
    workspace: Option<&String>,
) -> Result<String> {
    if is_id(given) {
        return Ok(given.to_owned());
    }
    let ask = in_workspace(json!({"operation": "list-users"}), workspace.cloned());
    // Who may not list users may still know the id of one.
    let reply = session.http()?.all_iam(ask).await.unwrap_or_default();
    Ok(among(list(&reply, "users"), given))
}

/// The names of users by their ids, as far as the caller may see them, and the id of one of them. The list is asked for once.
///
/// # Errors
/// As [`user_id`].
pub(super) async fn names_and_id(
    session: &Session,
    given: Option<&str>,
    workspace: Option<&String>,
) -> Result<(BTreeMap<String, String>, Option<String>)> {
    let ask = in_workspace(json!({"operation": "list-users"}), workspace.cloned());
    let reply = session.http()?.all_iam(ask).await.unwrap_or_default();
    let users = list(&reply, "users");
    let named = |user| (text(user, "id"), text(user, "username"));
    let id = given.map(|given| among(users, given));
    Ok((users.iter().map(named).collect(), id))
}

fn among(users: &[Value], given: &str) -> String {
    let by = |field: &str| users.iter().find(|user| text(user, field) == given);
    let found = by("id").or_else(|| by("username"));
    found.map_or_else(|| given.to_owned(), |user| text(user, "id"))
}

/// Whether a text has the form of ids that our service gives.
fn is_id(text: &str) -> bool {
    let hex = |at: usize, c: char| match at {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.chars().enumerate().all(|(at, c)| hex(at, c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_name_and_an_id_stays_what_it_is() {
        let users = [
            json!({"id": "u1", "username": "carl"}),
            json!({"id": "carl", "username": "other"}),
            json!({"id": "u2", "username": "dora"}),
        ];
        assert_eq!(among(&users, "dora"), "u2");
        assert_eq!(among(&users, "carl"), "carl", "an id wins over a name");
        assert_eq!(among(&users, "nobody"), "nobody");
        assert!(is_id("7859a16a-1daa-4e6a-9ab3-bf4fbc5bb4d6"));
        for other in ["carl", "", "7859a16a-1daa-4e6a-9ab3-bf4fbc5bb4dg"] {
            assert!(!is_id(other), "{other}");
        }
    }
}
