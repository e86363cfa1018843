//! Content as text.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use tg_schemas::Error;

use crate::error::invalid;

/// Encoders disagree about padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(super) fn encode(content: impl AsRef<[u8]>) -> String {
    BASE64.encode(content)
}

/// Reads content; the error names the field.
pub(super) fn decode(field: &str, content: &str) -> Result<Vec<u8>, Error> {
    // Blanks are looked for only where there is something else than base64: most content has none, and may be long.
    let decoded = BASE64.decode(content).or_else(|fault| {
        if !content.contains(char::is_whitespace) {
            return Err(fault);
        }
        BASE64.decode(content.split_whitespace().collect::<String>())
    });
    decoded.map_err(|_| invalid(format!("{field}: is not base64")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_read_with_or_without_padding_and_line_ends() {
        for text in ["aGVsbG8=", "aGVsbG8", "aGVs\nbG8=\r\n"] {
            assert_eq!(decode("content", text).unwrap(), b"hello");
        }
        let error = decode("contents[3]", "aGV*").unwrap_err();
        assert_eq!(error.message, "contents[3]: is not base64");
    }
}
