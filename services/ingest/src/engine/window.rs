//! Cuts a long text into windows while it arrives, so that a document of any size passes through bounded
//! memory. What fits into one window is never cut.

/// Collects text and hands out windows of at most `limit` bytes.
#[derive(Debug)]
pub struct Windows {
    limit: usize,
    text: String,
}

impl Windows {
    /// Windows of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(8),
            text: String::new(),
        }
    }

    /// Where to append text.
    pub fn text(&mut self) -> &mut String {
        &mut self.text
    }

    /// A full window, if there is more text than fits into one. It ends behind the last blank line in its
    /// second half, else behind the last line end or blank there.
    pub fn full(&mut self) -> Option<String> {
        if self.text.len() <= self.limit {
            return None;
        }
        let floor = |mut at: usize| {
            while !self.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (half, end) = (floor(self.limit / 2), floor(self.limit));
        let second = &self.text[half..end];
        let cut = ["\n\n", "\n", " "]
            .iter()
            .find_map(|border| second.rfind(border).map(|at| half + at + border.len()))
            .unwrap_or(end);
        let rest = self.text.split_off(cut);
        Some(std::mem::replace(&mut self.text, rest))
    }

    /// What is left when no more text comes.
    pub fn last(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, limit: usize) -> Vec<String> {
        let mut windows = Windows::new(limit);
        let mut all = Vec::new();
        let mut letters = [0; 4];
        for char in text.chars() {
            windows.text().push_str(char.encode_utf8(&mut letters));
            all.extend(windows.full());
        }
        all.push(windows.last());
        all
    }

    #[test]
    fn windows_end_at_borders_and_lose_nothing() {
        assert_eq!(cut("short", 8), ["short"]);
        assert_eq!(cut("aaaaaa\n\nb b", 10), ["aaaaaa\n\n", "b b"]);
        assert_eq!(cut("aaa bbb ccc ddd", 8), ["aaa bbb ", "ccc ddd"]);
        assert_eq!(cut("éééééééé", 9), ["éééé", "éééé"]);
        let text = "some words\nand lines\n\nand more of them ".repeat(50);
        let windows = cut(&text, 100);
        assert!(windows.iter().all(|window| window.len() <= 100));
        assert_eq!(windows.concat(), text);
    }
}
