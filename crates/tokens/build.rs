//! Packs the table of tokens: a quarter of the text that the library has of it.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use flate2::Compression;
use flate2::write::ZlibEncoder;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let table = tiktoken_rs::cl100k_base()?;
    let (mut lengths, mut bytes) = (Vec::new(), Vec::new());
    // Their numbers have no gap; those with a meaning of their own come behind one.
    for token in 0.. {
        let Ok(text) = table.decode_bytes(&[token]) else {
            break;
        };
        lengths.push(u8::try_from(text.len())?);
        bytes.extend(text);
    }
    let count = u32::try_from(lengths.len())?;
    let out = PathBuf::from(env::var("OUT_DIR")?).join("table");
    let mut packed = ZlibEncoder::new(fs::File::create(out)?, Compression::best());
    packed.write_all(&count.to_le_bytes())?;
    packed.write_all(&lengths)?;
    packed.write_all(&bytes)?;
    packed.finish()?;
    Ok(())
}
