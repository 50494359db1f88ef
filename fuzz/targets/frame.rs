//! Splits an arbitrary stream into lines of bounded length.
//!
//! Whatever the chunking, the lines are the same as with plain splitting, an overlong line is reported as lost in
//! its place, and the buffered bytes stay within the limit.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wharf_fuzz::ChunkedInput;
use wharf_mcp::frame::{Line, Lines};

/// Capacity for one read, which the buffer always reserves, plus allocator rounding.
const MAX_CAPACITY: usize = 256 << 10;

/// Number of limits that an overlong line must exceed before the stream is abandoned.
const MAX_OVERSIZE_FACTOR: usize = 4;

fuzz_target!(|input: &[u8]| {
    let Some(input) = ChunkedInput::of(input) else { return };
    let mut lines = Lines::new(input.limit);
    // The last line has no newline.
    let mut expected = input.stream.split(|byte| *byte == b'\n');
    let mut lost: Option<&[u8]> = None;

    for chunk in input.chunks() {
        lines.space().extend_from_slice(chunk);
        while let Some(line) = lines.next_line() {
            match line {
                Line::Whole(line) => {
                    assert_eq!(Some(&line[..]), expected.next(), "another line was expected");
                    assert!(line.len() <= input.limit, "a line over the limit came whole");
                    lost = None;
                }
                Line::Lost { id, resumes: true } => {
                    let line = expected.next().expect("there is a line to lose");
                    assert!(line.len() > input.limit, "a line within the limit was lost");
                    assert!(has(line, id), "the lost line has no id {id:?}");
                    lost = Some(line);
                }
                Line::Lost { id, resumes: false } => {
                    // This line may have been reported before, when its id was found.
                    let mut candidates = lost.into_iter().chain(expected.next());
                    let overlong = |line: &[u8]| line.len() > MAX_OVERSIZE_FACTOR * input.limit;
                    let abandoned = candidates.find(|line| overlong(line) && has(line, id));
                    assert!(abandoned.is_some(), "there was no reason to give up, {id:?}");
                    return;
                }
            }
        }
        let space = lines.space();
        assert!(space.len() <= input.limit, "{} bytes wait for a newline", space.len());
        assert!(space.capacity() <= MAX_CAPACITY, "{} bytes are held", space.capacity());
    }

    let rest = expected.next();
    assert!(rest.or(lost).is_some(), "a line came before its end");
    let whole = rest.filter(|rest| !rest.is_empty() && rest.len() <= input.limit);
    assert_eq!(lines.finish().as_deref(), whole, "the last line differs");
    assert_eq!(expected.next(), None, "a line never came");
});

/// Checks that the id occurs in the line as a complete number.
fn has(line: &[u8], id: Option<u64>) -> bool {
    let mut numbers =
        line.split(|byte| !byte.is_ascii_digit()).filter_map(|digits| str::from_utf8(digits).ok());
    id.is_none() || numbers.any(|digits| digits.parse().ok() == id)
}
