//! Files that no reader should choke on, made at test time.

use std::fmt::Write as _;

/// A PDF with one line of text a page. `trailer` is put into its trailer.
pub fn pdf(pages: &[&str], trailer: &str) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        String::new(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    let mut kids = Vec::new();
    for text in pages {
        let content = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
        let stream = format!(
            "<< /Length {} >>\nstream\n{content}\nendstream",
            content.len()
        );
        objects.push(stream);
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R \
             /Resources << /Font << /F1 3 0 R >> >> >>",
            objects.len()
        ));
        kids.push(objects.len());
    }
    objects[1] = pages_of(&kids);
    file(&objects, trailer)
}

/// A PDF that needs a password.
pub fn encrypted() -> Vec<u8> {
    let key = "00".repeat(32);
    let locked = format!(
        "/ID [<0011> <0011>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -44 /O <{key}> /U <{key}> >>"
    );
    pdf(&["A secret page."], &locked)
}

/// A PDF of many pages that share one text.
pub fn many_pages(count: usize) -> Vec<u8> {
    let content = "BT /F1 12 Tf 72 720 Td (Again.) Tj ET";
    let stream = format!(
        "<< /Length {} >>\nstream\n{content}\nendstream",
        content.len()
    );
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        String::new(),
        stream,
    ];
    let page = "<< /Type /Page /Parent 2 0 R /Contents 3 0 R >>";
    objects.extend(std::iter::repeat_n(page.to_owned(), count));
    let kids: Vec<usize> = (4..4 + count).collect();
    objects[1] = pages_of(&kids);
    file(&objects, "")
}

fn pages_of(kids: &[usize]) -> String {
    let mut list = String::new();
    for kid in kids {
        let _ = write!(list, "{kid} 0 R ");
    }
    format!("<< /Type /Pages /Kids [{list}] /Count {} >>", kids.len())
}

fn file(objects: &[String], trailer: &str) -> Vec<u8> {
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(file.len());
        let _ = write!(file, "{} 0 obj\n{object}\nendobj\n", at + 1);
    }
    let (table, size) = (file.len(), objects.len() + 1);
    let _ = write!(file, "xref\n0 {size}\n0000000000 65535 f \n");
    for place in places {
        let _ = writeln!(file, "{place:010} 00000 n ");
    }
    let _ = write!(
        file,
        "trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{table}\n%%EOF\n"
    );
    file.into_bytes()
}

/// A Word document whose body unpacks to `size` spaces, and whose directory says that it is `told` bytes.
pub fn bomb(size: usize, told: u32) -> Vec<u8> {
    let name = b"word/document.xml";
    let packed = spaces(size);
    let length = u32::try_from(packed.len()).expect("a small file");
    let mut entry = Vec::new();
    // Version, flags, method "deflate", time and date; the sum of so much is never looked at.
    entry.extend([20, 0, 0, 0, 8, 0, 0, 0, 0x21, 0, 0, 0, 0, 0]);
    entry.extend(length.to_le_bytes());
    entry.extend(told.to_le_bytes());
    entry.extend((name.len() as u16).to_le_bytes());
    entry.extend([0, 0]);
    let mut zip = b"PK\x03\x04".to_vec();
    zip.extend(&entry);
    zip.extend(name);
    zip.extend(packed);
    let directory = zip.len() as u32;
    zip.extend(b"PK\x01\x02\x14\x00");
    zip.extend(&entry);
    zip.extend([0; 14]);
    zip.extend(name);
    let listed = zip.len() as u32 - directory;
    zip.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    zip.extend(listed.to_le_bytes());
    zip.extend(directory.to_le_bytes());
    zip.extend([0, 0]);
    zip
}

/// About `size` spaces, deflated: one, then copies of 258 bytes that reach one byte back.
fn spaces(size: usize) -> Vec<u8> {
    let mut bits = Bits::default();
    // The last block, with the fixed codes.
    bits.push(0b011, 3);
    // Codes go in with their first bit first: the literal 0x20 is 0x30 + 0x20 in 8 bits.
    bits.push(u32::from((0x30u8 + 0x20).reverse_bits()), 8);
    for _ in 0..size / 258 {
        // Length 258 is code 285 (0xc5), distance 1 is code 0.
        bits.push(u32::from(0xc5u8.reverse_bits()), 8);
        bits.push(0, 5);
    }
    // The end of the block.
    bits.push(0, 7);
    bits.done()
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    rest: u32,
    count: u32,
}

impl Bits {
    fn push(&mut self, value: u32, count: u32) {
        self.rest |= value << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.rest as u8);
            self.rest >>= 8;
            self.count -= 8;
        }
    }

    fn done(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.bytes.push(self.rest as u8);
        }
        self.bytes
    }
}

/// Text for longer than anybody looks at to see what it is, then bytes that are none.
pub fn binary_later() -> Vec<u8> {
    let mut bytes = "Words and more words.\n".repeat(2000).into_bytes();
    bytes.extend([0; 64]);
    bytes
}
