//! Defines a row type together with everything that follows from its columns, so that no other code lists them.
//!
//! A row can also be encoded as bytes, for programs that keep rows outside the database for a while. The encoding is
//! the length of the row, then its columns in order. Numbers take eight bytes. A text has its length in front. An
//! entry that is cut off, because the process was killed during a write, is ignored.

use crate::statement::Value;
use std::sync::Arc;

/// Length that marks a missing text.
const MISSING: u32 = u32::MAX;

/// Size in bytes of a length.
const LENGTH_BYTES: usize = size_of::<u32>();

/// Defines a struct with one field per column, its column list, its values to bind, and its encoding.
macro_rules! columns {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $(#[$about_first:meta])* pub $first:ident: $first_type:ty,
            $($(#[$about_field:meta])* pub $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $(#[$about_first])* pub $first: $first_type,
            $($(#[$about_field])* pub $field: $type,)*
        }

        crate::rows::plain_row!($name { $first, $($field),* });

        impl $name {
            const COLUMNS: &str = concat!(stringify!($first), $(", ", stringify!($field)),*);

            const COLUMN_COUNT: usize = [stringify!($first), $(stringify!($field)),*].len();

            fn into_values(self) -> [crate::statement::Value; $name::COLUMN_COUNT] {
                [self.$first.into(), $(self.$field.into()),*]
            }

            /// Appends the encoded row to `out`.
            pub fn encode(&self, out: &mut Vec<u8>) {
                crate::columns::encode_entry(out, |out| {
                    crate::columns::Column::encode(&self.$first, out);
                    $(crate::columns::Column::encode(&self.$field, out);)*
                });
            }

            /// Decodes the rows of a spool file, up to the first incomplete one.
            pub fn decode_all(mut bytes: &[u8]) -> impl Iterator<Item = $name> {
                std::iter::from_fn(move || {
                    let mut entry = crate::columns::next_entry(&mut bytes)?;
                    Some($name {
                        $first: crate::columns::Column::decode(&mut entry)?,
                        $($field: crate::columns::Column::decode(&mut entry)?,)*
                    })
                })
            }
        }
    };
}

pub(crate) use columns;

/// A type of column.
pub(crate) trait Column: Into<Value> + Sized {
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads a value from the start of `bytes` and advances past it.
    fn decode(bytes: &mut &[u8]) -> Option<Self>;
}

impl Column for i64 {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn decode(bytes: &mut &[u8]) -> Option<i64> {
        bytes.split_off(..size_of::<i64>())?.try_into().ok().map(i64::from_le_bytes)
    }
}

impl Column for f64 {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn decode(bytes: &mut &[u8]) -> Option<f64> {
        bytes.split_off(..size_of::<f64>())?.try_into().ok().map(f64::from_le_bytes)
    }
}

impl Column for Arc<str> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&length(self.len()).to_le_bytes());
        out.extend_from_slice(self.as_bytes());
    }

    fn decode(bytes: &mut &[u8]) -> Option<Arc<str>> {
        Option::<Arc<str>>::decode(bytes).map(Option::unwrap_or_default)
    }
}

impl Column for Option<Arc<str>> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Some(text) => text.encode(out),
            None => out.extend_from_slice(&MISSING.to_le_bytes()),
        }
    }

    fn decode(bytes: &mut &[u8]) -> Option<Option<Arc<str>>> {
        // A row of an earlier version ends before the columns that were appended since.
        if bytes.is_empty() {
            return Some(None);
        }
        let length = read_length(bytes)?;
        if length == MISSING {
            return Some(None);
        }
        let text = bytes.split_off(..length as usize)?;
        Some(Some(std::str::from_utf8(text).ok()?.into()))
    }
}

/// Appends an entry with its length in front.
pub(crate) fn encode_entry(out: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    encode(out);
    let written = length(out.len() - begin - LENGTH_BYTES);
    out[begin..begin + LENGTH_BYTES].copy_from_slice(&written.to_le_bytes());
}

/// Returns the next entry and advances past it.
pub(crate) fn next_entry<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = read_length(bytes)?;
    bytes.split_off(..length as usize)
}

fn read_length(bytes: &mut &[u8]) -> Option<u32> {
    bytes.split_off(..LENGTH_BYTES)?.try_into().ok().map(u32::from_le_bytes)
}

/// Values are limited to far less than `u32::MAX` bytes.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(MISSING)
}

#[cfg(test)]
mod tests {
    use crate::CallRow;

    fn call(number: usize) -> CallRow {
        CallRow {
            request_id: format!("call-{number}").into(),
            source: "todo".into(),
            parameters: r#"{"title":"Milch \u0000 und Brötchen"}"#.into(),
            execution_start: 1_700_000_000_000_000 + number as i64,
            execution_duration_ms: 0.25,
            result: number.is_multiple_of(2).then(|| "{}".repeat(number).into()),
            via: Some("mcp".into()),
            ..CallRow::default()
        }
    }

    #[test]
    fn decoded_rows_equal_the_encoded_ones() {
        let mut bytes = Vec::new();
        (0..9).for_each(|it| call(it).encode(&mut bytes));
        let all: Vec<CallRow> = CallRow::decode_all(&bytes).collect();
        assert_eq!(all, (0..9).map(call).collect::<Vec<_>>());
    }

    /// Wherever a write was cut off, exactly the complete entries before it are read.
    #[test]
    fn a_row_that_is_cut_off_is_ignored() {
        let mut bytes = Vec::new();
        let ends: Vec<usize> = (0..4)
            .map(|it| {
                call(it).encode(&mut bytes);
                bytes.len()
            })
            .collect();
        for cut in 0..=bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(CallRow::decode_all(&bytes[..cut]).count(), whole, "cut at {cut}");
        }
    }

    #[test]
    fn decoding_ends_at_bytes_that_are_no_entry() {
        let mut bytes = Vec::new();
        call(1).encode(&mut bytes);
        bytes.extend_from_slice(&[0; 64]);
        assert_eq!(CallRow::decode_all(&bytes).count(), 1);
    }

    /// A row that was written before a column was appended has no value for it.
    #[test]
    fn a_row_without_the_last_columns_is_decoded() {
        let mut bytes = Vec::new();
        (0..3).for_each(|it| call(it).encode(&mut bytes));
        let mut old = Vec::new();
        let mut rest = &bytes[..];
        while let Some(entry) = super::next_entry(&mut rest) {
            // `details` is missing: the length of a missing text.
            super::encode_entry(&mut old, |out| out.extend_from_slice(&entry[..entry.len() - 4]));
        }
        let all: Vec<CallRow> = CallRow::decode_all(&old).collect();
        assert_eq!(all, (0..3).map(call).collect::<Vec<_>>());
    }

    /// A killed process of an earlier version may have left a spool in this form.
    #[test]
    fn the_encoding_does_not_change() {
        let mut bytes = Vec::new();
        CallRow { request_id: "id".into(), via: Some("mcp".into()), ..CallRow::default() }.encode(&mut bytes);
        let texts: &[Option<&str>] = &[
            Some("id"),
            None,
            Some(""),
            Some(""),
            Some(""),
            Some(""),
            None,
            None,
            None,
            Some("mcp"),
            None,
            None,
        ];
        let mut expected = vec![69, 0, 0, 0];
        expected.extend_from_slice(&[0; 16]);
        for text in texts {
            expected.extend_from_slice(&text.map_or(u32::MAX, |it| it.len() as u32).to_le_bytes());
            expected.extend_from_slice(text.unwrap_or_default().as_bytes());
        }
        assert_eq!(bytes, expected);
    }
}
