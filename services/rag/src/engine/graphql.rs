//! Bounds the number of rows that a written query asks for. Reads only as much of GraphQL as that takes;
//! what it does not understand it leaves as it is, to be refused by whoever runs it.

/// The query with a `limit` of at most `most` on every top-level field. A limit that is a variable stays.
pub fn bounded(query: &str, most: u64) -> String {
    let tokens = tokens(query);
    let mut out = String::with_capacity(query.len() + 32);
    let mut copied = 0;
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        match token.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            "(" => {
                at = closing(&tokens, at);
            }
            "..." | "@" => {
                // Fragments and directives: their name is no field.
                at += 1;
                if tokens.get(at).is_some_and(|next| next.text == "on") {
                    at += 1;
                }
            }
            text if depth == 1 && is_name(text) => {
                // With an alias, the field follows the colon.
                if tokens.get(at + 1).is_some_and(|next| next.text == ":") {
                    at += 2;
                    continue;
                }
                match tokens.get(at + 1) {
                    Some(open) if open.text == "(" => {
                        let close = closing(&tokens, at + 1);
                        match limit(&tokens[at + 1..close]) {
                            Limit::Number(value) => {
                                if value.text.parse::<u64>().is_ok_and(|given| given > most) {
                                    out.push_str(&query[copied..value.from]);
                                    out.push_str(&most.to_string());
                                    copied = value.from + value.text.len();
                                }
                            }
                            Limit::Other => {}
                            Limit::None => {
                                let end = open.from + 1;
                                out.push_str(&query[copied..end]);
                                out.push_str(&format!("limit: {most}, "));
                                copied = end;
                            }
                        }
                        at = close;
                    }
                    _ if !text.starts_with("__") => {
                        let end = token.from + text.len();
                        out.push_str(&query[copied..end]);
                        out.push_str(&format!("(limit: {most})"));
                        copied = end;
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        at += 1;
    }
    out.push_str(&query[copied..]);
    out
}

struct Token<'a> {
    from: usize,
    text: &'a str,
}

enum Limit<'a> {
    Number(&'a Token<'a>),
    Other,
    None,
}

/// The argument among those of one field, not inside their values.
fn limit<'a>(arguments: &'a [Token<'a>]) -> Limit<'a> {
    let mut depth = 0;
    for (at, token) in arguments.iter().enumerate() {
        match token.text {
            "(" | "{" | "[" => depth += 1,
            ")" | "}" | "]" => depth -= 1,
            "limit" if depth == 1 && arguments.get(at + 1).is_some_and(|t| t.text == ":") => {
                return match arguments.get(at + 2) {
                    Some(value) if value.text.bytes().all(|b| b.is_ascii_digit()) => {
                        Limit::Number(value)
                    }
                    _ => Limit::Other,
                };
            }
            _ => {}
        }
    }
    Limit::None
}

/// Where the bracket that opens here closes, else the end.
fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" => depth += 1,
            ")" => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Names, numbers, strings and signs, with their places. Comments and commas are left out.
fn tokens(query: &str) -> Vec<Token<'_>> {
    let bytes = query.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let from = at;
        match bytes[at] {
            b'#' => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
                continue;
            }
            b'"' => at = string_end(bytes, at),
            b if b.is_ascii_alphanumeric() || b == b'_' => {
                while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
                    at += 1;
                }
            }
            b'.' if query[at..].starts_with("...") => at += 3,
            b if b.is_ascii_whitespace() || b == b',' || !b.is_ascii() => {
                at += 1;
                continue;
            }
            _ => at += 1,
        }
        found.push(Token {
            from,
            text: &query[from..at],
        });
    }
    found
}

fn string_end(bytes: &[u8], from: usize) -> usize {
    if bytes[from..].starts_with(b"\"\"\"") {
        let rest = &bytes[from + 3..];
        let end = rest.windows(3).position(|window| window == b"\"\"\"");
        return end.map_or(bytes.len(), |end| from + 3 + end + 3);
    }
    let mut at = from + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_top_field_is_bounded() {
        for (query, expected) in [
            ("{ orders { id } }", "{ orders(limit: 5) { id } }"),
            (
                "query Q($a: Int = 3) { o: orders(where: {limit: {gt: 9}, n: {in: [1]}}) { id limit } }",
                "query Q($a: Int = 3) { o: orders(limit: 5, where: {limit: {gt: 9}, n: {in: [1]}}) { id limit } }",
            ),
            (
                "{ a(limit: 100) { x } b(limit:2) { y } }",
                "{ a(limit: 5) { x } b(limit:2) { y } }",
            ),
            ("{ a(limit: $n) { x } }", "{ a(limit: $n) { x } }"),
            (
                "{ a(name: \"limit: 9 ) {\") { x } # limit: 900\n}",
                "{ a(limit: 5, name: \"limit: 9 ) {\") { x } # limit: 900\n}",
            ),
            (
                "{ __typename ...F @skip(if: true) }",
                "{ __typename ...F @skip(if: true) }",
            ),
            ("{ ... on Query { a } }", "{ ... on Query { a } }"),
            ("{ a(", "{ a(limit: 5, "),
            ("ü { \"", "ü { \""),
            ("", ""),
        ] {
            assert_eq!(bounded(query, 5), expected);
        }
    }
}
