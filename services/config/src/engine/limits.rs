//! What a request may hold. Every refusal names the field.

use tg_schemas::{Error, ErrorCode, WorkspaceId, limits};

use super::is_reserved;

/// Longest type in bytes.
pub(crate) const MAX_NAME: usize = 255;
/// Longest key in bytes: ids that people give, of collections for example, are keys.
pub(crate) const MAX_KEY: usize = limits::CONFIG_KEY;
/// Largest value in bytes.
pub(crate) const MAX_VALUE: usize = limits::CONFIG_VALUE;
/// Most keys or values in one request.
pub(crate) const MAX_ITEMS: usize = 4096;

fn bad(field: &str, why: &str) -> Error {
    Error::new(ErrorCode::BadRequest, format!("{field}: {why}"))
}

/// A type.
pub(crate) fn check_name(field: &str, text: &str) -> Result<(), Error> {
    check_text(field, text, MAX_NAME)
}

/// A key.
pub(crate) fn check_key(field: &str, text: &str) -> Result<(), Error> {
    check_text(field, text, MAX_KEY)
}

fn check_text(field: &str, text: &str, longest: usize) -> Result<(), Error> {
    if text.is_empty() {
        return Err(bad(field, "is required"));
    }
    if text.len() > longest {
        return Err(bad(field, &format!("is longer than {longest} bytes")));
    }
    if text.chars().any(char::is_control) {
        return Err(bad(field, "must not contain control characters"));
    }
    Ok(())
}

/// The number of keys or values.
pub(crate) fn check_count(field: &str, count: usize) -> Result<(), Error> {
    if count > MAX_ITEMS {
        return Err(Error::new(
            ErrorCode::TooLarge,
            format!("{field}: must not have more than {MAX_ITEMS} entries"),
        ));
    }
    Ok(())
}

/// A value.
pub(crate) fn check_value(field: &str, value: &str) -> Result<(), Error> {
    if value.len() > MAX_VALUE {
        return Err(Error::new(
            ErrorCode::TooLarge,
            format!("{field}: is larger than {MAX_VALUE} bytes"),
        ));
    }
    Ok(())
}

/// What a write adds to a workspace that holds `held` bytes and may hold `most`, and by type to what the workspace holds
/// of it: each process reads whole types.
pub(crate) fn check_room<'a>(
    most: usize,
    held: usize,
    added: impl IntoIterator<Item = (&'a str, usize, usize)>,
) -> Result<(), Error> {
    let added: Vec<_> = added.into_iter().collect();
    let all: usize = held + added.iter().map(|(.., more)| more).sum::<usize>();
    // What adds nothing is let through, however full it is.
    if all > most && all > held {
        return Err(full(&format!(
            "the configuration of a workspace must not exceed {}",
            limits::human(most)
        )));
    }
    let most = limits::config_type(most);
    let over = |(_, of_type, more): &&(&str, usize, usize)| *more > 0 && of_type + more > most;
    match added.iter().find(over) {
        Some((kind, ..)) => Err(full(&format!(
            "the rows of type '{kind}' in a workspace must not exceed {}",
            limits::human(most)
        ))),
        None => Ok(()),
    }
}

fn full(why: &str) -> Error {
    Error::new(ErrorCode::TooLarge, format!("values: {why}"))
}

/// A workspace named in a request: a valid id, or a reserved one.
pub(crate) fn check_workspace(workspace: &str) -> Result<(), Error> {
    if workspace.is_empty() {
        return Err(Error::new(ErrorCode::BadRequest, "Workspace is required"));
    }
    if is_reserved(workspace) {
        let plain = workspace
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        return if plain && workspace.len() < tg_schemas::ids::MAX_PAIR {
            Ok(())
        } else {
            Err(bad("workspace", "is not a valid workspace id"))
        };
    }
    WorkspaceId::new(workspace).map(|_| ())
}
