//! Places in a source text, and their line and column.

use crate::masked_string::MaskedString;

/// A range of bytes of the source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// A value with the place where it was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) at: Place,
}

/// A string with the place where it was written.
pub(crate) type PlacedString = Placed<MaskedString>;

impl Place {
    /// The range from `start` to `end`.
    pub fn new(start: usize, end: usize) -> Place {
        Place { start, end: end.max(start) }
    }
}

impl<T> Placed<T> {
    pub(crate) fn new(value: T, at: Place) -> Placed<T> {
        Placed { value, at }
    }
}

/// Index of line starts: finds lines and columns without scanning the text again.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    source: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Scans the text once.
    pub fn of(source: &'a str) -> Lines<'a> {
        let starts = std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { source, starts }
    }

    /// Returns the line and column of a byte, both from 1. The column counts characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.line(offset);
        let before = self.source.get(self.starts[line]..offset.min(self.source.len()));
        (line + 1, before.unwrap_or_default().chars().count() + 1)
    }

    /// Returns the line and column of a byte like [`Lines::position`], but takes constant time: beyond the first
    /// 1,000 bytes of a line, the column counts bytes.
    pub(crate) fn quick_position(&self, offset: usize) -> (usize, usize) {
        const MAX_COUNTED: usize = 1_000;
        let line = self.line(offset);
        match offset - self.starts[line] {
            ..MAX_COUNTED => self.position(offset),
            bytes => (line + 1, bytes + 1),
        }
    }

    /// Returns the whole lines that contain the bytes from `first` to `last`: the number of the first line, from 1,
    /// and their place.
    pub fn around(&self, first: usize, last: usize) -> (usize, Place) {
        let (from, to) = (self.line(first), self.line(last));
        let end = self.starts.get(to + 1).copied().unwrap_or(self.source.len());
        (from + 1, Place::new(self.starts[from], end))
    }

    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_become_lines_and_columns() {
        let lines = Lines::of("ab\nçd\n\nx");
        for (offset, expected) in
            [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (5, (2, 2)), (7, (3, 1)), (8, (4, 1)), (99, (4, 2))]
        {
            assert_eq!(lines.position(offset), expected, "at byte {offset}");
        }
        assert_eq!(lines.around(3, 5), (2, Place::new(3, 7)));
    }
}
