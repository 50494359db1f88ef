//! Reads arbitrary bytes as `wharf.lock`.
//!
//! A lock that can be read is written in a form that is read as the same lock, and written again to the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wharf_config::LockFile;

fuzz_target!(|input: &[u8]| {
    let Ok(lock) = LockFile::parse(input) else { return };
    let text = lock.to_text();
    let again = LockFile::parse(text.as_bytes()).expect("what was written can be read");
    assert_eq!(again, lock);
    assert_eq!(again.to_text(), text);
});
