//! Contents in base64, however encoders write it.

use tg_testkit::fuzz::run;

use super::base64::{decode, encode};

#[test]
fn contents() {
    let seeds: [&[u8]; 3] = [b"aGVsbG8=", b"aGVs\r\n bG8", b"////+w=="];
    run("contents", &seeds, |bytes| {
        if let Ok(content) = decode("content", &String::from_utf8_lossy(bytes)) {
            assert_eq!(decode("content", &encode(&content)), Ok(content));
        }
    });
}
