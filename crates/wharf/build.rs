//! Embeds the built console: writes a Rust table of the files in `console/`, each with its media type, its `ETag` and
//! its gzip form. The packed bytes are made here and not committed, because they change with the packer.

#![expect(clippy::disallowed_methods, reason = "cargo passes its folders in the environment")]

use flate2::{Compression, write::GzEncoder};
use sha2::{Digest, Sha256};
use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

/// Folder of the built console, relative to this crate.
const CONSOLE: &str = "console";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={CONSOLE}");
    println!("cargo::rerun-if-changed=build.rs");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join(CONSOLE);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut paths = Vec::new();
    collect_files(&root, &mut paths)?;
    paths.sort();
    let mut table = String::from("&[\n");
    for (number, path) in paths.iter().enumerate() {
        table += &table_row(&root, path, &out, number)?;
    }
    table += "]\n";
    Ok(fs::write(out.join("console_files.rs"), table)?)
}

fn collect_files(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => collect_files(&path, paths)?,
            false => paths.push(path),
        }
    }
    Ok(())
}

/// Writes a file and its packed form to the output folder and returns its row of the table. The row names the copies:
/// a target folder that several checkouts share has no use for the path of one of them.
fn table_row(root: &Path, path: &Path, out: &Path, number: usize) -> Result<String, Box<dyn Error>> {
    let bytes = fs::read(path)?;
    fs::write(out.join(format!("console-{number}")), &bytes)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&bytes)?;
    let gzip = encoder.finish()?;
    let name = path.strip_prefix(root)?.to_str().ok_or("a file name is not UTF-8")?.replace('\\', "/");
    let mut etag = String::new();
    for byte in Sha256::digest(&bytes).iter().take(12) {
        write!(etag, "{byte:02x}")?;
    }
    // Packing an image or a tiny file makes it bigger.
    let packed_form = match gzip.len() < bytes.len() {
        true => {
            fs::write(out.join(format!("console-{number}.gz")), gzip)?;
            format!("Some({})", include(&format!("console-{number}.gz")))
        }
        false => "None".to_owned(),
    };
    let kind = media_type(&name).ok_or_else(|| format!("`{name}` has an unknown media type"))?;
    let plain_form = include(&format!("console-{number}"));
    Ok(format!(
        "    ConsoleFile {{ path: {name:?}, kind: {kind:?}, etag: {etag:?}, bytes: {plain_form}, gzip: {packed_form} }},\n"
    ))
}

/// The expression that embeds a file of the output folder.
fn include(name: &str) -> String {
    format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\"))")
}

fn media_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "json" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        "woff2" => "font/woff2",
        _ => return None,
    })
}
