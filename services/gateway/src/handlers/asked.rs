//! What most handlers take of a request besides its path and body.

use axum::extract::rejection::ExtensionRejection;
use axum::extract::{Extension, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::request::Parts;

use crate::call::Meta;
use crate::state::Shared;

/// A request to the gateway, before it is known who sent it.
pub(crate) struct Asked {
    pub(super) app: Shared,
    pub(super) meta: Meta,
    pub(super) headers: HeaderMap,
}

impl FromRequestParts<Shared> for Asked {
    type Rejection = ExtensionRejection;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Self::Rejection> {
        let Extension(meta) = Extension::<Meta>::from_request_parts(parts, app).await?;
        Ok(Self {
            app: app.clone(),
            meta,
            headers: parts.headers.clone(),
        })
    }
}
