//! What a dialog consists of, and how many tokens that is, about.

/// Part of a window, in hundredths, from which on it is compacted.
pub const GATE: u64 = 80;
/// Characters that are a token, about.
const CHARACTERS: u64 = 4;
/// Tokens that a row takes beside its text.
const FRAME: u64 = 4;

/// Who says a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Whoever asks.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

impl Role {
    /// Its name in a prompt.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Its arguments, as JSON text.
    pub arguments: String,
}

/// A row of a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Who says it.
    pub role: Role,
    /// The text; of a tool what it returned.
    pub content: String,
    /// Calls of tools that the model makes with it.
    pub calls: Vec<Call>,
    /// Addresses of pictures.
    pub images: Vec<String>,
    /// Of a tool its name, where it is known.
    pub tool: Option<String>,
}

impl Row {
    /// A row that is only text.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            calls: Vec::new(),
            images: Vec::new(),
            tool: None,
        }
    }

    /// The model calls a tool.
    pub fn call(content: impl Into<String>, name: &str, arguments: &str) -> Self {
        Self {
            calls: vec![Call {
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            }],
            ..Self::text(Role::Assistant, content)
        }
    }

    /// A tool returns.
    pub fn result(content: impl Into<String>, name: &str) -> Self {
        Self {
            tool: Some(name.to_owned()),
            ..Self::text(Role::Tool, content)
        }
    }

    /// How many tokens it is, about.
    pub fn tokens(&self) -> u64 {
        let calls = self.calls.iter();
        let calls = calls.map(|call| quarter(&call.arguments) + quarter(&call.name));
        let images = self.images.iter().map(|url| quarter(url));
        FRAME + quarter(&self.content) + calls.chain(images).sum::<u64>()
    }
}

/// A quarter of the characters of a text.
fn quarter(text: &str) -> u64 {
    text.chars().count() as u64 / CHARACTERS
}

/// How many tokens rows are, about.
pub fn tokens(rows: &[Row]) -> u64 {
    rows.iter().map(Row::tokens).sum()
}

/// Whether rows take more of a window of so many tokens than they may.
pub fn is_full(rows: &[Row], window: u64) -> bool {
    tokens(rows).saturating_mul(100) > window.saturating_mul(GATE)
}

/// Whether so many rows, of so many bytes of text together, take no more of a window than they may, whatever they say. `false`: it
/// has to be counted.
pub fn surely_fit(rows: usize, bytes: usize, window: u64) -> bool {
    let frames = (rows as u64).saturating_mul(FRAME);
    let most = frames.saturating_add(bytes as u64 / CHARACTERS);
    most.saturating_mul(100) <= window.saturating_mul(GATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_quarters_of_characters_and_not_of_bytes() {
        assert_eq!(Row::text(Role::User, "größer ✓").tokens(), 2 + 4);
        let call = Row::call("think", "search", "{\"q\": \"frask\"}");
        assert_eq!(call.tokens(), 1 + 4 + 3 + 1);
        let mut picture = Row::text(Role::User, "");
        picture.images.push("x".repeat(400));
        assert_eq!(tokens(&[call, picture]), 9 + 104);
    }

    #[test]
    fn what_surely_fits_is_not_full() {
        for (text, fits) in [("x".repeat(4 * 76), true), ("x".repeat(4 * 77), false)] {
            assert_eq!(surely_fit(1, text.len(), 100), fits);
            assert_eq!(is_full(&[Row::text(Role::User, text)], 100), !fits);
        }
        // Fewer characters than bytes have to be counted.
        let text = "ö".repeat(4 * 76);
        assert!(!surely_fit(1, text.len(), 100));
        assert!(!is_full(&[Row::text(Role::User, text)], 100));
    }

    #[test]
    fn four_fifths_of_a_window_are_not_too_much_yet() {
        let rows = |characters: usize| [Row::text(Role::User, "x".repeat(characters))];
        assert!(!is_full(&rows(4 * 76), 100));
        assert!(is_full(&rows(4 * 77), 100));
    }
}
