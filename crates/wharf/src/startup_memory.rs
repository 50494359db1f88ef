//! Returns memory that only the start needed: pages of the program and its libraries that were read from their files.
//!
//! The kernel maps 64 KiB around every function that runs, and the start runs most of the program once: it parses the
//! command line and the configuration, migrates the database and compiles statements. These pages stayed mapped: 20 of
//! the 24 MiB of an idle gateway. The code that answers calls is a part of them and is mapped again when it runs, from
//! the page cache, so that 16 MiB are left.

#[cfg(target_os = "linux")]
mod linux {
    use rustix::mm::{Advice, madvise};
    use std::fs;

    /// A range of addresses.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct MappedRange {
        start: usize,
        length: usize,
    }

    /// Unmaps the pages of all files that this process can only read. An access maps a page again.
    pub(super) fn release() {
        // Without /proc the pages stay mapped.
        let maps = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        for MappedRange { start, length } in unmodified_files(&maps) {
            let address = std::ptr::with_exposed_provenance_mut(start);
            #[expect(
                unsafe_code,
                reason = "the range is a mapping of a file that is not writable and has no modified page, so every \
                          access reads the same bytes from the file again"
            )]
            // If the kernel refuses, the pages stay mapped.
            let _ = unsafe { madvise(address, length, Advice::LinuxDontNeed) };
        }
    }

    /// Finds the mappings of files that cannot be written and have no page that differs from the file. Relocated data
    /// is such a page: it is read-only too, but its bytes are in memory only.
    pub(super) fn unmodified_files(smaps: &str) -> Vec<MappedRange> {
        let mut ranges = Vec::new();
        let mut candidate = None;
        for line in smaps.lines() {
            let mut words = line.split_ascii_whitespace();
            match (words.next(), words.next()) {
                (Some("Anonymous:"), Some("0")) => ranges.extend(candidate.take()),
                (Some("Anonymous:"), _) => candidate = None,
                (Some(range), Some(access)) if !range.ends_with(':') => {
                    let is_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
                    let is_fixed = access.starts_with('r') && access.as_bytes().get(1) == Some(&b'-');
                    candidate = mapped_range(range).filter(|_| is_file && is_fixed);
                }
                _ => {}
            }
        }
        ranges
    }

    fn mapped_range(text: &str) -> Option<MappedRange> {
        let (start, end) = text.split_once('-')?;
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        Some(MappedRange { start, length: end.checked_sub(start)? })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_files_without_modified_pages_are_released() {
            let smaps = "\
55e0a0000000-55e0a0100000 r--p 00000000 fe:00 42                         /usr/bin/wharf
Rss:                 900 kB
Anonymous:             0 kB
55e0a0100000-55e0a1000000 r-xp 00100000 fe:00 42                         /usr/bin/wharf
Anonymous:             0 kB
55e0a1000000-55e0a1080000 r--p 01000000 fe:00 42                         /usr/bin/wharf
Anonymous:           512 kB
55e0a1080000-55e0a1090000 rw-p 01080000 fe:00 42                         /usr/bin/wharf
Anonymous:             0 kB
7f0000000000-7f0000010000 rw-s 00000000 fe:00 77                         /state/wharf.db-shm
Anonymous:             0 kB
7f0000010000-7f0000020000 r--p 00000000 00:00 0
Anonymous:             0 kB
7ffe5fe7a000-7ffe5fed9000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             0 kB
";
            let range = |start, length| MappedRange { start, length };
            let expected = [range(0x55e0_a000_0000, 0x10_0000), range(0x55e0_a010_0000, 0xf0_0000)];
            assert_eq!(unmodified_files(smaps), expected);
        }

        #[test]
        fn released_code_still_runs() {
            release();
            assert!(!unmodified_files(&fs::read_to_string("/proc/self/smaps").unwrap()).is_empty());
        }
    }
}

/// Returns the memory that the start needed. Call it once, after the start.
pub(crate) fn release_startup_memory() {
    #[cfg(target_os = "linux")]
    linux::release();
}
