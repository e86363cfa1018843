//! Writes the table of assets: what `make console` built, or the plain page if nothing was.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> Result<()> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = here.ancestors().nth(2).context("no root")?;
    let built = root.join("console/dist");
    let always = [here.join("plain"), root.join("specs/api")];
    let mut table = String::new();
    write_table(&mut table, "BUILT", &[built])?;
    write_table(&mut table, "ALWAYS", &always)?;
    let out = PathBuf::from(env::var("OUT_DIR")?).join("table.rs");
    fs::write(out, table).context("cannot write the table")
}

fn write_table(text: &mut String, name: &str, folders: &[PathBuf]) -> Result<()> {
    let mut assets = String::new();
    let mut count = 0;
    let out = PathBuf::from(env::var("OUT_DIR")?).join(name);
    fs::create_dir_all(&out)?;
    for folder in folders {
        println!("cargo::rerun-if-changed={}", folder.display());
        for file in files(folder)? {
            entry(&mut assets, &file, &out)?;
            count += 1;
        }
    }
    writeln!(text, "static {name}: [Asset; {count}] = [")?;
    writeln!(text, "{assets}];")?;
    Ok(())
}

/// Files that are assets by themselves: not those that are another one compressed.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let ending = path.extension().unwrap_or_default();
            path.is_file() && !name.starts_with('.') && ending != "br" && ending != "gz"
        })
        .collect();
    found.sort();
    Ok(found)
}

/// The files are copied: the console may be built anew while the compiler reads.
fn entry(table: &mut String, file: &Path, out: &Path) -> Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let content = fs::read(file)?;
    let copy = |from: &Path| -> Result<Option<PathBuf>> {
        if !from.is_file() {
            return Ok(None);
        }
        let to = out.join(from.file_name().unwrap_or_default());
        fs::copy(from, &to).with_context(|| from.display().to_string())?;
        Ok(Some(to))
    };
    let packed = |ending: &str| -> Result<String> {
        let copied = copy(&PathBuf::from(format!("{}.{ending}", file.display())))?;
        Ok(match copied {
            Some(path) => format!("Some(include_bytes!({path:?}))"),
            None => "None".to_owned(),
        })
    };
    let gzip = out.join(format!("{name}.packed"));
    fs::write(&gzip, compressed(&content)?)?;
    writeln!(
        table,
        "    Asset::new({name:?}, \"\\\"{:016x}\\\"\", {}, include_bytes!({gzip:?})),",
        fingerprint(&content),
        packed("br")?,
    )?;
    Ok(())
}

/// By gzip, as small as it gets: the only form that is always there.
fn compressed(content: &[u8]) -> Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(content)?;
    Ok(packed.finish()?)
}

/// FNV-1a: tells versions of a file apart, no more.
fn fingerprint(content: &[u8]) -> u64 {
    content.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
