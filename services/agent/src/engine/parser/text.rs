//! Text that is given out while it grows, without white space at either end.

/// Collects text. What might be trailing is held back until something follows it.
#[derive(Debug, Default)]
pub(super) struct Text {
    shown: String,
    held: String,
}

impl Text {
    /// Adds text; what became certain is also added to `out`.
    pub(super) fn push(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            if c.is_whitespace() {
                if !self.shown.is_empty() || !self.held.is_empty() {
                    self.held.push(c);
                }
                continue;
            }
            if !self.held.is_empty() {
                self.shown.push_str(&self.held);
                out.push_str(&self.held);
                self.held.clear();
            }
            self.shown.push(c);
            out.push(c);
        }
    }

    /// Adds text that counts only if more text follows. An earlier such text is certain now.
    pub(super) fn push_if_followed(&mut self, text: &str, out: &mut String) {
        if self.held.trim().is_empty() {
            self.held.push_str(text);
        } else {
            let held = std::mem::take(&mut self.held);
            self.shown.push_str(&held);
            out.push_str(&held);
            self.held.push_str(text);
        }
    }

    /// Everything given out so far.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }
}
