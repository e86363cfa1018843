//! Server-sent events out of the bytes of a response, piece by piece. Only the data of an event counts here.

use super::error::{Error, Result};

/// Events that are read.
#[derive(Debug)]
pub struct Events {
    /// What came of the line that has not ended yet.
    line: Vec<u8>,
    /// The data of the event that has not ended yet.
    data: Vec<u8>,
    longest: usize,
}

impl Events {
    /// None of which, and no line of which, is longer than so many bytes.
    pub fn new(longest: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            longest,
        }
    }

    /// Takes what came, and gives the data of the events that ended with it.
    ///
    /// # Errors
    /// [`Error::Protocol`]: an event is too long, or no text.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>> {
        let mut ended = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.add(&rest[..end])?;
            rest = &rest[end + 1..];
            ended.extend(self.end_line()?);
        }
        self.add(rest)?;
        Ok(ended)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        if self.line.len() + self.data.len() + bytes.len() > self.longest {
            let text = format!("an event is longer than {} bytes", self.longest);
            return Err(Error::Protocol(text));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// An empty line ends an event; one without data is none.
    fn end_line(&mut self) -> Result<Option<String>> {
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            if data.is_empty() {
                return Ok(None);
            }
            let text = String::from_utf8(data);
            let text = text.map_err(|_| Error::Protocol("an event is not UTF-8".to_owned()))?;
            return Ok(Some(text));
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            let data = data.strip_prefix(b" ").unwrap_or(data);
            self.data.extend_from_slice(data);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_end_wherever_the_pieces_do() {
        let text = ": alive\n\nevent: message\ndata: {\"a\":\ndata:1}\r\n\r\nid: 3\n\ndata: b\n\n";
        for size in 1..text.len() {
            let mut events = Events::new(64);
            let pieces = text.as_bytes().chunks(size);
            let found: Vec<String> = pieces
                .flat_map(|piece| events.push(piece).expect("read"))
                .collect();
            assert_eq!(found, ["{\"a\":\n1}", "b"], "{size}");
        }
    }

    #[test]
    fn what_is_too_long_or_no_text_is_an_error() {
        assert!(Events::new(8).push(b"data: 12345").is_err());
        assert!(
            Events::new(20)
                .push(b"data: 1234567\ndata: 12345678")
                .is_err()
        );
        assert!(Events::new(20).push(b"data: \xff\n\n").is_err());
    }

    #[test]
    fn any_bytes_are_read_in_bounds() {
        let seeds: [&[u8]; 2] = [b": alive\n\ndata: {}\n\n", b"event: x\r\ndata\ndata:\n\n"];
        tg_testkit::fuzz::run("events of a response", &seeds, |bytes| {
            let mut events = Events::new(1 << 10);
            for piece in bytes.chunks(7) {
                if events.push(piece).is_err() {
                    return;
                }
            }
        });
    }
}
