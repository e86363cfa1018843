//! What differs from operation to operation, as values: what serves operations is compiled once and not for each of them.

use axum::http::HeaderMap;
use percent_encoding::percent_decode_str;
use tg_schemas::operations::{Field, Meta, Object, Operation, Refusal, read, write};

/// Names and values of headers of a response.
type ResponseHeaders = Vec<(&'static str, String)>;

/// An operation without its types.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// What it declares.
    pub(super) meta: &'static Meta,
    /// Whether a request fits.
    pub(super) fits: fn(&Object) -> Result<(), String>,
    /// The headers of the response with a reply, where the reply fits.
    pub(super) headers: fn(&Object) -> Result<ResponseHeaders, String>,
    /// Its error for a request that cannot be read.
    pub(super) unreadable: fn(String) -> Object,
    /// Its error for a header that cannot be read.
    pub(super) bad_header: fn(String) -> Object,
}

impl Shape {
    /// That of an operation.
    pub(super) fn of<O: Operation>() -> Self {
        Self {
            meta: const { &O::META },
            fits: |request| read::<O::Request>(request).map(|_| ()),
            headers: |reply| read::<O::Reply>(reply).map(|reply| O::headers(&reply)),
            unreadable: |why| object_of(&O::Error::unreadable(why)),
            bad_header: |why| object_of(&O::Error::bad_header(why)),
        }
    }

    /// Adds the fields that headers and the query carry. They win over those of the body, which cannot name another user.
    pub(super) fn beside(
        self,
        body: &mut Object,
        headers: &HeaderMap,
        query: Option<&str>,
    ) -> Result<(), Object> {
        for field in self.meta.headers {
            body.remove(field.field);
            let Some(value) = headers.get(field.name) else {
                continue;
            };
            let value = value.to_str().ok().and_then(|text| field.read(text.trim()));
            let value = value.ok_or_else(|| {
                let text = format!(
                    "{}: does not have the form that the header takes",
                    field.name
                );
                (self.bad_header)(text)
            })?;
            body.insert(field.field.to_owned(), value);
        }
        for (name, text) in pairs(query.unwrap_or_default()) {
            let known = |field: &&Field| field.name == name;
            let Some(field) = self.meta.query.iter().find(known) else {
                continue;
            };
            let value = field.read(&text).ok_or_else(|| {
                let text = format!("{name}: does not have the form that the query takes");
                (self.unreadable)(text)
            })?;
            body.insert(field.field.to_owned(), value);
        }
        Ok(())
    }
}

/// The parameters of a query.
pub(super) fn pairs(query: &str) -> impl Iterator<Item = (String, String)> + '_ {
    let text = |part: &str| {
        let part = part.replace('+', " ");
        percent_decode_str(&part).decode_utf8_lossy().into_owned()
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(move |pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (text(name), text(value))
    })
}

/// A failure as its fields.
pub(super) fn object_of(failure: &impl Refusal) -> Object {
    write(failure).unwrap_or_default()
}
