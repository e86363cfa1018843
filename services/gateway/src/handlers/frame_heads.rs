//! Finds the heads of frames in the bytes of a WebSocket, wherever those are cut (RFC 6455, section 5.2).

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Bytes of its payload.
    pub(super) length: u64,
    /// Payload of the message so far, this frame's included.
    pub(super) message: u64,
    /// What it is of a message.
    pub(super) part: Part,
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The first of a message.
    First,
    /// Another one of it.
    Next,
    /// No part of any: a ping, a pong or a close.
    Control,
}

/// Where in the frames the bytes are.
#[derive(Debug, Default)]
pub(super) struct Heads {
    head: [u8; 10],
    filled: usize,
    /// Bytes until the next head: of mask and payload.
    skip: u64,
    /// Payload of the message so far.
    message: u64,
    /// More frames of the message follow.
    unfinished: bool,
}

impl Heads {
    /// Walks over bytes up to the end of a head, or of them all. Says how many those were.
    pub(super) fn next(&mut self, bytes: &[u8]) -> (usize, Option<Head>) {
        let mut at = 0;
        while at < bytes.len() {
            let left = bytes.len() - at;
            if self.skip > 0 {
                let step = usize::try_from(self.skip).map_or(left, |skip| skip.min(left));
                self.skip -= step as u64;
                at += step;
                continue;
            }
            self.head[self.filled] = bytes[at];
            self.filled += 1;
            at += 1;
            if let Some(length) = self.length() {
                return (at, Some(self.found(length)));
            }
        }
        (at, None)
    }

    /// Whether no message is under way whose payload is still to come.
    pub(super) fn between_messages(&self) -> bool {
        self.skip == 0 && self.filled == 0 && !self.unfinished
    }

    fn found(&mut self, length: u64) -> Head {
        let last = self.head[0] & 0x80 != 0;
        let masked = self.head[1] & 0x80 != 0;
        let part = match self.head[0] & 0x0f {
            0 => Part::Next,
            1 | 2 => Part::First,
            _ => Part::Control,
        };
        match part {
            Part::First => self.message = length,
            Part::Next => self.message = self.message.saturating_add(length),
            Part::Control => {}
        }
        if part != Part::Control {
            self.unfinished = !last;
        }
        self.skip = length.saturating_add(if masked { 4 } else { 0 });
        self.filled = 0;
        Head {
            length,
            message: self.message,
            part,
        }
    }

    /// The payload's length, once the head is there.
    fn length(&self) -> Option<u64> {
        if self.filled < 2 {
            return None;
        }
        let (size, length) = match self.head[1] & 0x7f {
            126 => (
                4,
                u64::from(u16::from_be_bytes([self.head[2], self.head[3]])),
            ),
            127 => {
                let mut long = [0; 8];
                long.copy_from_slice(&self.head[2..]);
                (10, u64::from_be_bytes(long))
            }
            short => (2, u64::from(short)),
        };
        (self.filled == size).then_some(length)
    }
}

/// The heads in bytes that come in pieces.
#[cfg(test)]
pub(super) fn heads<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Head> {
    let mut heads = Heads::default();
    let mut found = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            let (used, head) = heads.next(piece);
            found.extend(head);
            piece = &piece[used..];
        }
    }
    found
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn head(first: u8, length: u64) -> Vec<u8> {
        let mut bytes = vec![first];
        match length {
            0..126 => bytes.push(0x80 | length as u8),
            126..65536 => {
                bytes.push(0x80 | 126);
                bytes.extend((length as u16).to_be_bytes());
            }
            _ => {
                bytes.push(0x80 | 127);
                bytes.extend(length.to_be_bytes());
            }
        }
        bytes
    }

    pub(crate) fn frame(first: u8, length: u64) -> Vec<u8> {
        let mut bytes = head(first, length);
        bytes.resize(bytes.len() + 4 + length as usize, 7);
        bytes
    }

    #[test]
    fn heads_are_found_wherever_the_bytes_are_cut() {
        let (text, ping, rest) = (0x01, 0x89, 0x80);
        let mut bytes = frame(text, 4096);
        bytes.extend(frame(ping, 0));
        bytes.extend(frame(rest, 70_000));
        bytes.extend(frame(0x82, 126));
        for size in [1, 2, 3, 7, 4096, bytes.len()] {
            let found = heads(bytes.chunks(size));
            let found: Vec<_> = found
                .iter()
                .map(|head| (head.part, head.length, head.message))
                .collect();
            let expected = [
                (Part::First, 4096, 4096),
                (Part::Control, 0, 4096),
                (Part::Next, 70_000, 74_096),
                (Part::First, 126, 126),
            ];
            assert_eq!(found, expected, "{size}");
        }
    }

    #[test]
    fn a_message_is_under_way_until_its_last_byte() {
        let mut heads = Heads::default();
        let mut between = |bytes: &[u8]| {
            let mut at = 0;
            while at < bytes.len() {
                at += heads.next(&bytes[at..]).0;
            }
            heads.between_messages()
        };
        let whole = frame(0x81, 10);
        assert!(!between(&whole[..1]));
        assert!(!between(&whole[1..12]));
        assert!(between(&whole[12..]));
        assert!(!between(&frame(0x01, 10)));
        assert!(!between(&frame(0x89, 0)));
        assert!(between(&frame(0x80, 0)));
        assert!(!between(&head(0x82, u64::MAX)));
    }
}
