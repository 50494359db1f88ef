//! Tests archives, and ways in which they can be hostile.

use super::*;
use flate2::{Compression, write::DeflateEncoder};

/// A file to pack: its name, its Unix mode and its contents.
type PackedFile<'a> = (&'a str, u32, &'a [u8]);

const PLAIN: u32 = 0o100_644;

/// Packs files into a zip file. `edit` changes each entry of the directory.
fn packed(files: &[PackedFile<'_>], edit: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, mode, contents) in files {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(contents).unwrap();
        let data = encoder.finish().unwrap();
        let mut crc = Crc::new();
        crc.update(contents);
        let sizes: Vec<u8> = [crc.sum(), data.len() as u32, contents.len() as u32, name.len() as u32]
            .into_iter()
            .flat_map(u32::to_le_bytes)
            .collect();
        let start = (bytes.len() as u32).to_le_bytes();
        bytes.extend(
            [&LOCAL_ENTRY[..], &[20, 0, 0, 0, 8, 0, 0, 0, 0, 0], &sizes, name.as_bytes(), &data].concat(),
        );
        let head = [&CENTRAL_ENTRY[..], &[20, 3, 20, 0, 0, 0, 8, 0, 0, 0, 0, 0], &sizes].concat();
        let mode = (mode << 16).to_le_bytes();
        let mut entry = [&head[..], &[0; 6], &mode, &start, name.as_bytes()].concat();
        edit(&mut entry);
        directory.extend(entry);
    }
    let (start, length) = (bytes.len() as u32, directory.len() as u32);
    let count = (files.len() as u16).to_le_bytes();
    bytes.extend(directory);
    bytes.extend([&END_RECORD[..], &[0; 4], &count, &count].concat());
    bytes.extend([&length.to_le_bytes()[..], &start.to_le_bytes(), &[0, 0]].concat());
    bytes
}

/// Unpacks an archive. Returns the names of the files with `*` after executable ones, or the error.
fn unpacked(bytes: &[u8]) -> Result<String, String> {
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().join("a/b");
    fs::create_dir_all(&folder).unwrap();
    let result = Archive::read(bytes).and_then(|it| it.unpack(&folder));
    let mut names = Vec::new();
    let mut folders = vec![outside.path().to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            assert!(!kind.is_symlink(), "{path:?}");
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&folder).expect("inside").to_str().unwrap().to_owned();
            let mode = std::os::unix::fs::PermissionsExt::mode(&entry.metadata().unwrap().permissions());
            assert_eq!(mode & 0o077, 0, "{path:?}");
            names.push(name + if mode & 0o100 == 0 { "" } else { "*" });
        }
    }
    names.sort();
    result.map(|()| names.join(" "))
}

#[test]
fn files_folders_and_permission_to_execute_are_unpacked() {
    let long = vec![b'x'; 200_000];
    let bytes = packed(
        &[
            ("manifest.json", PLAIN, b"{}"),
            ("server/", FOLDER | 0o755, b""),
            ("server/run", REGULAR_FILE | 0o755, b"#!"),
            ("server/deep/er/index.js", 0, &long),
        ],
        |_| {},
    );
    assert_eq!(unpacked(&bytes).as_deref(), Ok("manifest.json server/deep/er/index.js server/run*"));
    let archive = Archive::read(&bytes).unwrap();
    assert_eq!(archive.file("server/deep/er/index.js", 1 << 20), Ok(Some(long)));
    assert_eq!(archive.file("server/", 10), Ok(None));
    assert!(archive.file("server/deep/er/index.js", 1000).is_err());
    // A comment may follow the archive.
    let mut commented = bytes.clone();
    let length = commented.len();
    commented[length - 2] = 3;
    commented.extend(b"abc");
    assert!(unpacked(&commented).is_ok());
}

#[test]
fn names_that_leave_the_folder_are_refused() {
    let long = "x/".repeat(100) + "y";
    for name in [
        "../x",
        "a/../../x",
        "/etc/x",
        "a//b",
        "./x",
        "..",
        "",
        "a\\..\\x",
        "C:x",
        "a\0b",
        "a\nb",
        "a/./b",
        long.as_str(),
    ] {
        let refused = unpacked(&packed(&[(name, PLAIN, b"x")], |_| {})).expect_err(name);
        assert!(refused.contains("which is not allowed"), "{name:?}: {refused}");
    }
}

#[test]
fn links_and_special_files_are_refused() {
    for mode in [0o120_777, 0o010_644, 0o020_644, 0o140_644, FOLDER] {
        let refused = unpacked(&packed(&[("x", mode, b"/etc")], |_| {})).expect_err("refused");
        assert!(refused.contains("a link or a special file"), "{mode:o}: {refused}");
    }
    // A file cannot be a folder too.
    let both = [("x", PLAIN, &b"1"[..]), ("x/y", PLAIN, b"2")];
    assert!(unpacked(&packed(&both, |_| {})).is_err());
    let twice = [("x", PLAIN, &b"1"[..]), ("x", PLAIN, b"2")];
    assert!(unpacked(&packed(&twice, |_| {})).expect_err("refused").contains("the same name"));
}

#[test]
fn declared_sizes_and_checksums_are_checked() {
    let bomb = vec![0; 4 << 20];
    let set = |offset: usize, value: u32| {
        move |entry: &mut Vec<u8>| entry[offset..offset + 4].copy_from_slice(&value.to_le_bytes())
    };
    let file = |edit: &dyn Fn(&mut Vec<u8>)| unpacked(&packed(&[("x", PLAIN, &bomb)], edit));
    assert!(file(&|_| {}).is_ok());
    assert_eq!(file(&set(24, 10)), Err(damaged()), "more than declared");
    assert_eq!(file(&set(24, 5 << 20)), Err(damaged()), "less than declared");
    assert_eq!(file(&set(16, 1)), Err(damaged()), "another checksum");
    assert_eq!(file(&set(42, 1 << 30)), Err(damaged()), "an offset outside");
    assert_eq!(file(&set(20, 1 << 30)), Err(damaged()), "a length outside");
    assert!(file(&set(24, u32::MAX - 1)).expect_err("refused").contains("MiB when it is unpacked"));
    assert!(file(&set(24, u32::MAX)).expect_err("refused").contains("zip64"));
    assert!(file(&|entry| entry[8] = 1).expect_err("refused").contains("encrypted"));
    assert!(file(&|entry| entry[10] = 99).expect_err("refused").contains("compression method"));
}

#[test]
fn damaged_archives_never_panic() {
    let bytes = packed(&[("manifest.json", PLAIN, b"{\"a\":1}"), ("b/c", PLAIN, b"x")], |_| {});
    for end in 0..bytes.len() {
        assert!(unpacked(&bytes[..end]).is_err(), "{end}");
        for change in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[end] ^= change;
            let _ = unpacked(&changed);
        }
    }
    assert_eq!(unpacked(b"hello"), Err("is not a zip file".to_owned()));
}
