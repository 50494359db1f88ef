//! Splits a fuzz input into a chunk plan (the first line) and a byte stream (the rest). A target that reads a stream
//! in chunks uses the plan, so a seed stays readable text.

/// A byte stream, a limit for its reader, and the sizes of its chunks.
#[derive(Debug)]
pub struct ChunkedInput<'a> {
    /// The first byte of the plan.
    pub limit: usize,
    /// The bytes after the plan.
    pub stream: &'a [u8],
    sizes: &'a [u8],
}

impl<'a> ChunkedInput<'a> {
    /// Parses the plan. Returns `None` for an input without one.
    pub fn of(input: &'a [u8]) -> Option<ChunkedInput<'a>> {
        let end = input.iter().position(|byte| *byte == b'\n')?;
        let (limit, sizes) = input[..end].split_first()?;
        Some(ChunkedInput { limit: usize::from(*limit), stream: &input[end + 1..], sizes })
    }

    /// Splits the stream into chunks. The sizes repeat: `a` is one byte, `z` is 26, and `@` is the rest.
    pub fn chunks(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut left = self.stream;
        let mut sizes = self.sizes.iter().map(|letter| usize::from(letter % 32)).cycle();
        std::iter::from_fn(move || {
            let size = sizes.next().filter(|size| (1..left.len()).contains(size)).unwrap_or(left.len());
            let chunk = left.split_off(..size)?;
            (!chunk.is_empty()).then_some(chunk)
        })
    }
}
