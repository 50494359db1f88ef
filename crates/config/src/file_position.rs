//! Remembers where a configuration file says something, for messages long after the file was read.

use std::fmt;

/// A line and column of a configuration file. Displayed as `agent.yaml:4:5`.
///
/// All positions are equal: a source that only moved to another line is the same source and keeps its session.
#[derive(Clone, Debug, Default)]
pub struct FilePosition {
    /// Name of the file in messages.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
}

impl PartialEq for FilePosition {
    fn eq(&self, _: &FilePosition) -> bool {
        true
    }
}

impl Eq for FilePosition {}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
