//! A page that stands with its pictures in one message (MHTML), as some programs put it into a Word document.
//! The pictures are never decoded, and no address is followed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use encoding_rs::Encoding;

/// Parts within parts that are looked into.
const DEEPEST: usize = 4;
/// Fields of a head, and parts of a message, that are read.
const FIELDS: usize = 100;
const PARTS: usize = 1_000;

/// A page, and its charset where the message says it.
pub(super) type Page = (Vec<u8>, Option<&'static Encoding>);

/// The fields of a head: names in lower case, and values.
type Fields = Vec<(String, String)>;

/// The page of a message. `None` of what is no message, and of one without a page.
pub(super) fn page(message: &[u8]) -> Option<Page> {
    within(message.trim_ascii_start(), 0)
}

fn within(message: &[u8], depth: usize) -> Option<Page> {
    let (fields, body) = head(message)?;
    let field = |name: &str| {
        let found = fields.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    };
    let kind = field("content-type")?;
    let essence = kind.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    if essence.starts_with("multipart/") && depth < DEEPEST {
        let boundary = parameter(kind, "boundary")?;
        let parts = parts(body, &boundary);
        return parts.into_iter().find_map(|part| within(part, depth + 1));
    }
    if essence != "text/html" && essence != "application/xhtml+xml" {
        return None;
    }
    let encoding = field("content-transfer-encoding").unwrap_or_default();
    let page = match encoding.to_ascii_lowercase().as_str() {
        "quoted-printable" => unquoted(body),
        "base64" => {
            let digits = body.iter().copied();
            let digits: Vec<u8> = digits.filter(|one| !one.is_ascii_whitespace()).collect();
            BASE64.decode(digits).ok()?
        }
        _ => body.to_vec(),
    };
    let charset = parameter(kind, "charset");
    let charset = charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    Some((page, charset))
}

/// The fields of a head, and what stands behind the blank line. `None` where a line is no field.
fn head(message: &[u8]) -> Option<(Fields, &[u8])> {
    let mut fields = Fields::new();
    let mut rest = message;
    while !rest.is_empty() && fields.len() < FIELDS {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (line, behind) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        rest = behind;
        let line = std::str::from_utf8(line).ok()?;
        if line.trim().is_empty() {
            return Some((fields, rest));
        }
        if line.starts_with([' ', '\t']) {
            let (_, value) = fields.last_mut()?;
            value.push_str(line.trim());
            continue;
        }
        let (name, value) = line.split_once(':')?;
        let of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if !name.bytes().all(of_name) {
            return None;
        }
        fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    None
}

/// A parameter of a field: `boundary` of `multipart/related; boundary="x"`.
fn parameter(value: &str, name: &str) -> Option<String> {
    value.split(';').skip(1).find_map(|part| {
        let (key, value) = part.split_once('=')?;
        let value = value.trim().trim_matches('"');
        let is_it = key.trim().eq_ignore_ascii_case(name);
        is_it.then(|| value.to_owned())
    })
}

/// What stands between the lines of a boundary. What is cut off counts to its end.
fn parts<'a>(body: &'a [u8], boundary: &str) -> Vec<&'a [u8]> {
    let boundary = format!("--{boundary}");
    let mut parts = Vec::new();
    let mut begin = None;
    let mut at = 0;
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let end = at + line.len();
        let behind = line.trim_ascii_end().strip_prefix(boundary.as_bytes());
        if behind.is_some_and(|behind| behind.is_empty() || behind == b"--") {
            parts.extend(begin.and_then(|begin| body.get(begin..at)));
            begin = Some(end);
            if parts.len() == PARTS {
                return parts;
            }
        }
        at = end;
    }
    parts.extend(begin.and_then(|begin| body.get(begin..)));
    parts
}

/// Quoted-printable (RFC 2045, 6.7); what is not written as that has it stays as it is.
fn unquoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        rest = behind;
        match (first, behind) {
            (b'=', [b'\r', b'\n', behind @ ..] | [b'\n', behind @ ..]) => rest = behind,
            (b'=', [high, low, behind @ ..]) => {
                let byte = digit(high).zip(digit(low));
                let byte = byte.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
                match byte {
                    Some(byte) => {
                        out.push(byte);
                        rest = behind;
                    }
                    None => out.push(b'='),
                }
            }
            (plain, _) => out.push(*plain),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(message: &str) -> Option<String> {
        let (bytes, charset) = page(message.as_bytes())?;
        let text = charset.unwrap_or(encoding_rs::UTF_8).decode(&bytes).0;
        Some(text.trim().to_owned())
    }

    #[test]
    fn the_page_of_a_message_is_found_and_decoded() {
        let plain = "MIME-Version: 1.0\r\nContent-Type: text/html\r\n\r\n<p>A: b</p>\r\n";
        assert_eq!(found(plain).as_deref(), Some("<p>A: b</p>"));
        let related = "\nMIME-Version: 1.0\nContent-Type: Multipart/Related;\n\ttype=\"text/html\";\n boundary=\"=x\"\n\n\
            preamble\n--=x\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\nAAAA\n--=x\n\
            Content-Type: text/html; charset=\"iso-8859-1\"\nContent-Transfer-Encoding: Quoted-Printable\n\n\
            <p style=3D\"x\">Gr=F6=\nße = 2</p>\n--=x--\nepilogue\n";
        // The two bytes of a letter that is not quoted are letters of that charset.
        assert_eq!(
            found(related).as_deref(),
            Some("<p style=\"x\">GröÃŸe = 2</p>")
        );
        let coded =
            "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\nPHA+\nSGk8L3A+\n";
        assert_eq!(found(coded).as_deref(), Some("<p>Hi</p>"));
        let cut =
            "Content-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>Hi";
        assert_eq!(found(cut).as_deref(), Some("<p>Hi"));
    }

    #[test]
    fn what_is_no_message_and_what_has_no_page_is_none() {
        for message in [
            "",
            "<html><body>Content-Type: text/html</body></html>",
            "Content-Type: text/plain\n\nHi",
            "Content-Type: text/html",
            "Content-Type: multipart/related\n\n--b\nContent-Type: text/html\n\n<p>Hi",
            "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\n<p>Hi",
        ] {
            assert_eq!(found(message), None, "{message}");
        }
        let nested = |depth: usize| {
            let open = |n| format!("Content-Type: multipart/related; boundary=b{n}\n\n--b{n}\n");
            let open: String = (0..depth).map(open).collect();
            format!("{open}Content-Type: text/html\n\n<p>Hi")
        };
        assert_eq!(found(&nested(DEEPEST)).as_deref(), Some("<p>Hi"));
        assert_eq!(found(&nested(DEEPEST + 1)), None);
    }

    #[test]
    fn broken_messages_are_read_or_refused() {
        let seed = "Content-Type: multipart/related; boundary=b\n\n--b\nContent-Type: text/html\n\
            Content-Transfer-Encoding: quoted-printable\n\n<p>=3D=\nHi\n--b--";
        tg_testkit::fuzz::run("messages with a page", &[seed.as_bytes()], |bytes| {
            let _ = page(bytes);
        });
    }
}
