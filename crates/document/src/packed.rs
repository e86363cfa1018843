//! Objects of a PDF that are packed into streams, unpacked within bounds. Only looks: whatever is not as expected
//! is passed over.

use std::io::Read;

use flate2::read::ZlibDecoder;

/// Streams of one file that are looked for and unpacked at most.
const STREAMS: usize = 2000;
/// Bytes of one of them, unpacked, that are looked at.
const LONGEST: u64 = 4 << 20;
/// Bytes of all of them.
const MOST: usize = 64 << 20;
/// How far from its type a stream's dictionary reaches.
const DICTIONARY: usize = 4096;

/// The unpacked text of each stream of objects: numbers and places of the objects first, then the objects. Nothing
/// where there is no stream.
pub(crate) fn objects(pdf: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let (mut at, mut left) = (0, MOST);
    let streams = std::iter::from_fn(move || {
        at += find(pdf.get(at..)?, b"/ObjStm")? + 7;
        let head = &pdf[at..pdf.len().min(at + DICTIONARY)];
        let mut unpacked = Vec::new();
        if let Some(start) = find(head, b"stream") {
            let body = &pdf[at + start + 6..];
            let body = body.strip_prefix(b"\r").unwrap_or(body);
            let body = body.strip_prefix(b"\n").unwrap_or(body);
            // What came before it broke off is looked at all the same.
            let _ = ZlibDecoder::new(body)
                .take(LONGEST)
                .read_to_end(&mut unpacked);
        }
        left = left.checked_sub(unpacked.len())?;
        Some(unpacked)
    });
    streams.take(STREAMS)
}

/// The first place of something.
pub(crate) fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    let first = what[0];
    let mut at = 0;
    while let Some(found) = text[at..].iter().position(|byte| *byte == first) {
        at += found;
        if text[at..].starts_with(what) {
            return Some(at);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write;

    /// A PDF whose objects (numbers and texts) are packed.
    pub(crate) fn packed(objects: &[(u32, &str)]) -> Vec<u8> {
        let (mut heads, mut bodies) = (String::new(), String::new());
        for (number, body) in objects {
            heads.push_str(&format!("{number} {} ", bodies.len()));
            bodies.push_str(body);
            bodies.push('\n');
        }
        let mut packer =
            flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        packer
            .write_all(format!("{heads}{bodies}").as_bytes())
            .expect("packed");
        let packed = packer.finish().expect("packed");
        let mut pdf = format!(
            "%PDF-1.5\n9 0 obj << /Type /ObjStm /N {} /First {} /Length {} >> stream\r\n",
            objects.len(),
            heads.len(),
            packed.len()
        )
        .into_bytes();
        pdf.extend(packed);
        pdf.extend(b"\nendstream endobj\n");
        pdf
    }

    #[test]
    fn objects_are_unpacked_and_what_is_broken_is_passed_over() {
        let mut pdf = packed(&[(4, "<< /A 1 >>")]);
        let found: Vec<_> = objects(&pdf).collect();
        assert_eq!(found, [b"4 0 << /A 1 >>\n".to_vec()]);
        pdf.extend_from_slice(b"/ObjStm stream\nno zlib /ObjStm");
        assert_eq!(objects(&pdf).filter(|text| !text.is_empty()).count(), 1);
    }

    #[test]
    fn streams_that_are_announced_only_count() {
        let mut pdf = b"/ObjStm ".repeat(2 * STREAMS);
        pdf.extend(packed(&[(4, "<< /A 1 >>")]));
        let sizes: Vec<_> = objects(&pdf).map(|text| text.len()).collect();
        assert_eq!(sizes, [0; STREAMS]);
    }

    #[test]
    fn no_more_than_the_bound_is_unpacked() {
        let large = packed(&[(4, &" ".repeat(5 << 20))]);
        let sizes: Vec<_> = objects(&large).map(|text| text.len() as u64).collect();
        assert_eq!(sizes, [LONGEST]);
        let many = large.repeat(40);
        let all: usize = objects(&many).map(|text| text.len()).sum();
        assert_eq!(all, MOST);
    }
}
