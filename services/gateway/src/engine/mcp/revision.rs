//! Which revision of the protocol a message is spoken in. Up to 2025-11-25 a client begins with `initialize`, and names the
//! revision in a header from then on; since 2026-07-28 there is no beginning, each request says all that is needed of
//! its client, and headers repeat what it asks for, for those who pass it on without reading it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ErrorData, ProtocolVersion};

use super::message::{Message, Request, RpcError};
use super::{prompts, resources};

/// What a client asks instead of `initialize`.
pub(crate) const DISCOVER: &str = "server/discover";
/// What a client begins with.
pub(crate) const INITIALIZE: &str = "initialize";
/// What calls a tool, by its name.
pub(crate) const CALL: &str = "tools/call";

/// How a message is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Revision {
    /// As up to 2025-11-25.
    Handshake,
    /// As since 2026-07-28.
    Stateless,
}

/// A header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Header {
    /// It is not there.
    #[default]
    Absent,
    /// Its text.
    Text(String),
    /// It is there several times, or is no text.
    Unclear,
}

impl Header {
    fn is(&self, text: &str) -> bool {
        matches!(self, Self::Text(own) if own == text)
    }

    /// Whether it is this text, plain or as base64 where it cannot stand in a header as it is.
    fn means(&self, text: &str) -> bool {
        let Self::Text(own) = self else {
            return false;
        };
        let encoded = own.strip_prefix("=?base64?");
        match encoded.and_then(|rest| rest.strip_suffix("?=")) {
            None => own == text,
            Some(encoded) => STANDARD
                .decode(encoded)
                .is_ok_and(|bytes| bytes == text.as_bytes()),
        }
    }
}

/// The headers of the protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Headers {
    /// `MCP-Protocol-Version`.
    pub(crate) version: Header,
    /// `Mcp-Method`.
    pub(crate) method: Header,
    /// `Mcp-Name`.
    pub(crate) name: Header,
}

/// Whether a client with these headers may send several messages at once. Revisions that allow it are named by no header, or by
/// their own name.
pub(crate) fn takes_several(headers: &Headers) -> bool {
    let of_its_own = ["2024-11-05", "2025-03-26"];
    headers.version == Header::Absent || of_its_own.iter().any(|own| headers.version.is(own))
}

impl Revision {
    /// Of a message with these headers.
    ///
    /// # Errors
    /// The revision is not known here; a header and the message say different things; what each request has to say is
    /// missing.
    pub(crate) fn of(headers: &Headers, message: &Message) -> Result<Self, RpcError> {
        let Message::Request(request) = message else {
            return by_header(&headers.version);
        };
        // Only the revisions with a beginning have one, whatever it names.
        let declared = request.meta.protocol_version();
        if request.method == INITIALIZE && declared.is_none_or(|one| one.has_initialize()) {
            return Ok(Self::Handshake);
        }
        let told = of_request(headers, request);
        told.map_err(|fault| fault.of(&request.id))
    }
}

fn of_request(headers: &Headers, request: &Request) -> Result<Revision, RpcError> {
    let declared = request.meta.protocol_version();
    if request.method != DISCOVER && declared.is_none() {
        let by_header = by_header(&headers.version)?;
        if by_header == Revision::Handshake {
            return Ok(by_header);
        }
    }
    let missing = request
        .meta
        .missing_required_keys(&ProtocolVersion::V_2026_07_28);
    let Some(declared) = declared.filter(|_| missing.is_empty()) else {
        let why = format!(
            "_meta: lacks, or has in another form: {}",
            missing.join(", ")
        );
        return Err(RpcError::params(why));
    };
    if !headers.version.is(declared.as_str()) {
        return Err(mismatch("MCP-Protocol-Version", "the revision in _meta"));
    }
    if !ProtocolVersion::KNOWN_VERSIONS.contains(&declared) {
        return Err(unsupported(declared));
    }
    if declared.has_initialize() {
        return Ok(Revision::Handshake);
    }
    if !headers.method.is(&request.method) {
        return Err(mismatch("Mcp-Method", "the method"));
    }
    let named = match request.method.as_str() {
        CALL | prompts::GET => Some("name"),
        resources::READ => Some("uri"),
        _ => None,
    };
    if let Some(key) = named
        && !headers.name.means(request.text(key)?)
    {
        return Err(mismatch("Mcp-Name", "what the request names"));
    }
    Ok(Revision::Stateless)
}

/// As the header alone says; without it, a revision that had none.
fn by_header(version: &Header) -> Result<Revision, RpcError> {
    let Header::Text(version) = version else {
        return match version {
            Header::Unclear => Err(RpcError::invalid("MCP-Protocol-Version: must be one text")),
            _ => Ok(Revision::Handshake),
        };
    };
    let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
    match known.find(|known| known.as_str() == version) {
        Some(known) if known.has_initialize() => Ok(Revision::Handshake),
        Some(_) => Ok(Revision::Stateless),
        None => match serde_json::from_value(version.as_str().into()) {
            Ok(version) => Err(unsupported(version)),
            Err(_) => Err(RpcError::invalid("MCP-Protocol-Version: must be one text")),
        },
    }
}

fn unsupported(version: ProtocolVersion) -> RpcError {
    let known = ProtocolVersion::KNOWN_VERSIONS;
    RpcError::new(400, ErrorData::unsupported_protocol_version(version, known))
}

fn mismatch(header: &str, what: &str) -> RpcError {
    let text = format!("{header}: must be {what}");
    RpcError::new(400, ErrorData::header_mismatch(text, None))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn headers(version: &str, method: &str, name: &str) -> Headers {
        let text = |text: &str| match text {
            "" => Header::Absent,
            text => Header::Text(text.to_owned()),
        };
        Headers {
            version: text(version),
            method: text(method),
            name: text(name),
        }
    }

    fn of(headers: &Headers, method: &str, params: Value) -> Result<Revision, i64> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let message = Message::read(body.as_object().cloned().unwrap()).unwrap();
        Revision::of(headers, &message).map_err(|fault| {
            assert_eq!(fault.status, 400);
            let body = fault.body();
            assert_eq!(body["id"], 1);
            body["error"]["code"].as_i64().unwrap()
        })
    }

    fn stateless(name: &str) -> Value {
        json!({"name": name, "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}})
    }

    #[test]
    fn lists_of_messages_are_of_the_revisions_that_have_them() {
        for (version, takes) in [
            ("", true),
            ("2025-03-26", true),
            ("2025-06-18", false),
            ("2026-07-28", false),
        ] {
            assert_eq!(takes_several(&headers(version, "", "")), takes, "{version}");
        }
    }

    #[test]
    fn older_revisions_are_told_by_the_header_or_by_nothing() {
        let handshake = Ok(Revision::Handshake);
        for version in ["", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            assert_eq!(
                of(&headers(version, "", ""), "tools/list", json!({})),
                handshake
            );
        }
        assert_eq!(
            of(&headers("2031-01-01", "", ""), "tools/list", json!({})),
            Err(-32022)
        );
        // Whatever it names, it is the beginning of what has one.
        let newest = json!({"protocolVersion": "2026-07-28"});
        assert_eq!(of(&headers("", "", ""), "initialize", newest), handshake);
        // The newest says in each request that it is the newest, and has none.
        let stateless = of(
            &headers("2026-07-28", "initialize", ""),
            "initialize",
            stateless(""),
        );
        assert_eq!(stateless, Ok(Revision::Stateless));
    }

    #[test]
    fn the_newest_says_all_in_each_request_and_its_headers_agree() {
        let version = "2026-07-28";
        let good = headers(version, "tools/call", "ask_agent");
        assert_eq!(
            of(&good, CALL, stateless("ask_agent")),
            Ok(Revision::Stateless)
        );
        let encoded = headers(version, CALL, "=?base64?YXNrX2FnZW50?=");
        assert_eq!(
            of(&encoded, CALL, stateless("ask_agent")),
            Ok(Revision::Stateless)
        );
        let listed = headers(version, "tools/list", "");
        assert_eq!(
            of(&listed, "tools/list", stateless("")),
            Ok(Revision::Stateless)
        );
        let mismatch = Err(-32020);
        for wrong in [
            headers("", CALL, "ask_agent"),
            headers("2025-11-25", CALL, "ask_agent"),
            headers(version, "", "ask_agent"),
            headers(version, "tools/list", "ask_agent"),
            headers(version, CALL, ""),
            headers(version, CALL, "graph_rag"),
            headers(version, CALL, "=?base64?!?="),
        ] {
            assert_eq!(
                of(&wrong, CALL, stateless("ask_agent")),
                mismatch,
                "{wrong:?}"
            );
        }
        let mut read = stateless("");
        read["uri"] = json!("threadgraph://document/a");
        let named = headers(version, resources::READ, "threadgraph://document/a");
        assert_eq!(
            of(&named, resources::READ, read.clone()),
            Ok(Revision::Stateless)
        );
        let unnamed = headers(version, resources::READ, "");
        assert_eq!(of(&unnamed, resources::READ, read), mismatch);
        let twice = Headers {
            method: Header::Unclear,
            ..good.clone()
        };
        assert_eq!(of(&twice, CALL, stateless("ask_agent")), mismatch);
        // It is missing, not merely different.
        assert_eq!(of(&good, CALL, json!({"name": "ask_agent"})), Err(-32602));
        assert_eq!(of(&headers("", "", ""), DISCOVER, json!({})), Err(-32602));
        let mut unknown = stateless("");
        unknown["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
        let headers = headers("2031-01-01", DISCOVER, "");
        assert_eq!(of(&headers, DISCOVER, unknown), Err(-32022));
    }
}
