//! An input that says itself how it arrives: its first line is the plan, and what follows is the stream. A target
//! that reads a stream in chunks cuts it so, and a seed stays a text that can be read.

/// A stream of bytes, a limit for whoever reads it, and the chunks it comes in.
#[derive(Debug)]
pub struct ChunkedInput<'a> {
    /// The first byte of the plan, as it is.
    pub limit: usize,
    /// Everything behind the plan.
    pub stream: &'a [u8],
    sizes: &'a [u8],
}

impl<'a> ChunkedInput<'a> {
    /// Reads the plan; an input without one has no stream either.
    pub fn of(input: &'a [u8]) -> Option<ChunkedInput<'a>> {
        let end = input.iter().position(|byte| *byte == b'\n')?;
        let (limit, sizes) = input[..end].split_first()?;
        Some(ChunkedInput { limit: usize::from(*limit), stream: &input[end + 1..], sizes })
    }

    /// The stream, cut. The sizes take turns: `a` is one byte, `z` is twenty-six, and `@` is all that is left.
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
