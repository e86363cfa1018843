//! Texts with `{name}` placeholders. Substitution is one pass: what a value contains is never expanded.

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Name(String),
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong with it, in words: braces that do not enclose one plain name, or control characters.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.chars().any(char::is_control) {
            return Err("control characters are not allowed");
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            if rest[at..].starts_with('}') {
                return Err("has a '}' without a '{'");
            }
            let inner = &rest[at + 1..];
            let end = inner.find(['{', '}']).ok_or("has a '{' without a '}'")?;
            if inner[end..].starts_with('{') || !is_name(&inner[..end]) {
                return Err("braces must enclose one parameter name");
            }
            if at > 0 {
                pieces.push(Piece::Text(rest[..at].to_owned()));
            }
            pieces.push(Piece::Name(inner[..end].to_owned()));
            rest = &inner[end + 1..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self { pieces })
    }

    /// The names it asks for, with repeats.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Name(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// Whether it is nothing but `{name}`.
    pub fn is_just(&self, name: &str) -> bool {
        matches!(self.pieces.as_slice(), [Piece::Name(only)] if only == name)
    }

    /// Fills it in.
    ///
    /// # Errors
    /// The first name without a value.
    pub fn render<'s, 'v>(
        &'s self,
        value: impl Fn(&str) -> Option<&'v str>,
    ) -> Result<String, &'s str> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Name(name) => text.push_str(value(name).ok_or(name.as_str())?),
            }
        }
        Ok(text)
    }
}

/// Whether a text can stand between braces: letters, digits, `.`, `_` and `-`.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

impl std::fmt::Display for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Text(plain) => f.write_str(plain)?,
                Piece::Name(name) => write!(f, "{{{name}}}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_expanded_again() {
        let template = Template::parse("{a}-{b}").unwrap();
        let text = template.render(|name| match name {
            "a" => Some("{b}"),
            "b" => Some("x"),
            _ => None,
        });
        assert_eq!(text.unwrap(), "{b}-x");
        assert_eq!(
            template.render(|name| (name == "a").then_some("1")),
            Err("b")
        );
    }

    #[test]
    fn odd_braces_are_refused() {
        for bad in ["{", "}", "{}", "a{b", "a}b", "{{a}}", "{a{b}}", "x\u{0}"] {
            assert!(Template::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Template::parse("p{x}q").unwrap().to_string(), "p{x}q");
    }
}
