//! Lists of sums beside models that somebody downloaded.

use tg_testkit::fuzz::run;

use super::catalogue::{plain, read_sums, write_sums};

#[test]
fn lists_of_sums() {
    let line = format!("{}  model.safetensors\n", "0a".repeat(32));
    let seeds: [&[u8]; 2] = [line.as_bytes(), b"\n\tAB *../x\n"];
    run("lists of sums", &seeds, |bytes| {
        if let Ok(files) = read_sums(&String::from_utf8_lossy(bytes)) {
            assert!(files.iter().all(|file| plain(&file.name)));
            assert_eq!(read_sums(&write_sums(&files)), Ok(files));
        }
    });
}
