//! Reads zip files that may be hostile.
//!
//! Only the central directory decides what an archive contains. Names stay inside the target folder, there are no
//! links, and every size is bounded and checked against the data. Encrypted archives, zip64 and methods other than
//! deflate are refused.

use flate2::{Crc, read::DeflateDecoder};
use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    path::{Component, Path},
};

/// Maximum number of files and folders.
const MAX_ENTRIES: usize = 50_000;

/// Maximum size of all unpacked files together, in bytes.
const MAX_UNPACKED_BYTES: u64 = 1 << 30;

/// Maximum length of a name, in bytes, and of its number of parts.
const MAX_NAME_BYTES: usize = 1_024;
const MAX_NAME_PARTS: usize = 64;

/// Maximum length of the comment at the end of an archive.
const MAX_COMMENT_BYTES: usize = 0xffff;

const END_RECORD: [u8; 4] = *b"PK\x05\x06";
const CENTRAL_ENTRY: [u8; 4] = *b"PK\x01\x02";
const LOCAL_ENTRY: [u8; 4] = *b"PK\x03\x04";
const END_RECORD_BYTES: usize = 22;
const CENTRAL_ENTRY_BYTES: usize = 46;
const LOCAL_ENTRY_BYTES: usize = 30;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Bits of a Unix mode: the type of the file, and permission to execute it.
const FILE_TYPE: u32 = 0o170_000;
const REGULAR_FILE: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const EXECUTABLE: u32 = 0o111;

/// A zip file in memory whose directory has been checked.
#[derive(Debug)]
pub(super) struct Archive<'a> {
    bytes: &'a [u8],
    entries: Vec<Entry<'a>>,
}

#[derive(Debug)]
struct Entry<'a> {
    name: &'a str,
    is_folder: bool,
    is_executable: bool,
    method: u16,
    crc: u32,
    size: u64,
    data: &'a [u8],
}

impl<'a> Archive<'a> {
    /// Reads the directory. The error is a sentence about the file.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Archive<'a>, String> {
        let end = end_record(bytes).ok_or("is not a zip file")?;
        let (disks, count, start) = (u32_at(end, 4), u16_at(end, 10), u32_at(end, 16));
        let (Some(0), Some(count), Some(start)) = (disks, count, start) else {
            return Err("is a zip file in several parts, which is not supported".to_owned());
        };
        let mut entries = Vec::new();
        let mut rest = bytes.get(start as usize..).ok_or_else(damaged)?;
        if usize::from(count) > MAX_ENTRIES {
            return Err(format!("has more than {MAX_ENTRIES} files"));
        }
        for _ in 0..count {
            let (entry, length) = Entry::read(bytes, rest)?;
            entries.push(entry);
            rest = rest.get(length..).ok_or_else(damaged)?;
        }
        let total = entries.iter().try_fold(0_u64, |total, it| total.checked_add(it.size));
        if total.is_none_or(|it| it > MAX_UNPACKED_BYTES) {
            return Err(format!("has more than {} MiB when it is unpacked", MAX_UNPACKED_BYTES >> 20));
        }
        let names: BTreeSet<&str> = entries.iter().map(|it| it.name).collect();
        if names.len() != entries.len() {
            return Err("has two files of the same name".to_owned());
        }
        Ok(Archive { bytes, entries })
    }

    /// Returns the contents of one file, if it is there.
    pub(super) fn file(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, String> {
        let Some(entry) = self.entries.iter().find(|it| it.name == name && !it.is_folder) else {
            return Ok(None);
        };
        if entry.size > limit {
            return Err(format!("has a '{name}' of more than {} KiB", limit >> 10));
        }
        let mut contents = Vec::new();
        entry.unpack(&mut contents)?;
        Ok(Some(contents))
    }

    /// Unpacks all files into an empty folder. Only their owner may read them.
    pub(super) fn unpack(&self, folder: &Path) -> Result<(), String> {
        debug_assert!(self.bytes.len() >= END_RECORD_BYTES);
        for entry in &self.entries {
            let path = folder.join(entry.name);
            let failed = |error: io::Error| format!("cannot be unpacked: '{}': {error}", shown(entry.name));
            let parent = if entry.is_folder { Some(&*path) } else { path.parent() };
            parent.map_or(Ok(()), create_folder).map_err(failed)?;
            if !entry.is_folder {
                let mut file = create_file(&path, entry.is_executable).map_err(failed)?;
                entry.unpack(&mut file)?;
            }
        }
        Ok(())
    }
}

impl<'a> Entry<'a> {
    /// Reads one entry of the directory. Returns its length too.
    fn read(bytes: &'a [u8], at: &'a [u8]) -> Result<(Entry<'a>, usize), String> {
        if !at.starts_with(&CENTRAL_ENTRY) || at.len() < CENTRAL_ENTRY_BYTES {
            return Err(damaged());
        }
        let short = |offset| u16_at(at, offset).unwrap_or_default();
        let long = |offset| u32_at(at, offset).unwrap_or_default();
        let (made_by, flags, method, attributes) = (short(4) >> 8, short(8), short(10), long(38));
        let (packed, size, start) = (long(20), long(24), long(42));
        let name_end = CENTRAL_ENTRY_BYTES + usize::from(short(28));
        let length = name_end + usize::from(short(30)) + usize::from(short(32));
        let name = at.get(CENTRAL_ENTRY_BYTES..name_end).ok_or_else(damaged)?;
        let name = str::from_utf8(name).map_err(|_| "has a file name that is not UTF-8 text".to_owned())?;
        if flags & 1 != 0 {
            return Err("is encrypted".to_owned());
        }
        if [packed, size, start].contains(&u32::MAX) {
            return Err("uses zip64, which is not supported".to_owned());
        }
        if ![STORED, DEFLATED].contains(&method) {
            return Err("uses a compression method that is not supported".to_owned());
        }
        let is_folder = name.ends_with('/');
        check_name(name.strip_suffix('/').unwrap_or(name))?;
        // Other systems than Unix have no mode.
        let mode = if made_by == 3 { attributes >> 16 } else { 0 };
        let is_plain = match mode & FILE_TYPE {
            0 => true,
            FOLDER => is_folder,
            REGULAR_FILE => !is_folder,
            _ => false,
        };
        if !is_plain {
            return Err(format!("has '{}', which is a link or a special file", shown(name)));
        }
        let data = local_data(bytes, start as usize, packed as usize).ok_or_else(damaged)?;
        let (is_executable, crc) = (mode & EXECUTABLE != 0, long(16));
        Ok((Entry { name, is_folder, is_executable, method, crc, size: size.into(), data }, length))
    }

    /// Unpacks the contents, which must have the declared size and checksum.
    fn unpack(&self, out: &mut impl Write) -> Result<(), String> {
        let mut reader: Box<dyn Read + '_> = match self.method {
            DEFLATED => Box::new(DeflateDecoder::new(self.data)),
            _ => Box::new(self.data),
        };
        let (mut buffer, mut left, mut crc) = (vec![0; 64 << 10], self.size, Crc::new());
        loop {
            let count = reader.read(&mut buffer).map_err(|_| damaged())?;
            if count == 0 {
                break;
            }
            left = left.checked_sub(count as u64).ok_or_else(damaged)?;
            crc.update(&buffer[..count]);
            out.write_all(&buffer[..count])
                .map_err(|error| format!("cannot be unpacked: '{}': {error}", shown(self.name)))?;
        }
        if left == 0 && crc.sum() == self.crc { Ok(()) } else { Err(damaged()) }
    }
}

/// Checks that a name stays inside the folder, on every system.
fn check_name(name: &str) -> Result<(), String> {
    let parts: Vec<Component<'_>> = Path::new(name).components().collect();
    let is_normal = parts.iter().all(|it| matches!(it, Component::Normal(_)));
    let is_clean = !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && parts.len() <= MAX_NAME_PARTS
        && !name.contains(['\\', ':', '\0'])
        && !name.split('/').any(|it| matches!(it, "" | "." | ".."))
        && !name.contains(char::is_control);
    if is_normal && is_clean {
        return Ok(());
    }
    Err(format!("has the file name '{}', which is not allowed", shown(name)))
}

/// Finds the record at the end of the archive, which may be followed by a comment.
fn end_record(bytes: &[u8]) -> Option<&[u8]> {
    let last = bytes.len().checked_sub(END_RECORD_BYTES)?;
    let first = last.saturating_sub(MAX_COMMENT_BYTES);
    let is_end = |at: &usize| {
        let comment = u16_at(&bytes[*at..], 20).map(usize::from);
        bytes[*at..].starts_with(&END_RECORD) && comment == Some(last - at)
    };
    (first..=last).rev().find(is_end).map(|at| &bytes[at..])
}

/// Returns the packed data of the file whose local entry begins at `start`.
fn local_data(bytes: &[u8], start: usize, length: usize) -> Option<&[u8]> {
    let local = bytes.get(start..)?;
    if !local.starts_with(&LOCAL_ENTRY) {
        return None;
    }
    let data = LOCAL_ENTRY_BYTES + usize::from(u16_at(local, 26)?) + usize::from(u16_at(local, 28)?);
    local.get(data..)?.get(..length)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn damaged() -> String {
    "is damaged".to_owned()
}

/// Shows a name in a message, without control characters and not at full length.
fn shown(name: &str) -> String {
    name.chars().map(|it| if it.is_control() { '?' } else { it }).take(100).collect()
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

fn create_file(path: &Path, is_executable: bool) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if is_executable { 0o700 } else { 0o600 });
    #[cfg(not(unix))]
    let _ = is_executable;
    options.open(path)
}

#[cfg(test)]
mod tests;
