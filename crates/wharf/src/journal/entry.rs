//! The journal's form of one call: a view that borrows from its record, and its encoding in the spool.
//!
//! A spool entry is its length, start time and duration, then its texts in a fixed order, each with its length in
//! front. An entry that is cut off, because the process was killed during a write, was never acknowledged and is
//! ignored.

use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};
use wharf_mcp::Raw;
use wharf_runtime::{CallRecord, Outcome};
use wharf_store::{CallRow, CallView, Calls};

/// Length that marks a missing text.
const NONE: u32 = u32::MAX;

/// Number of bytes that are kept of a truncated value.
const BEGINNING: usize = 4 << 10;

/// Size in bytes of a length field.
const HEAD: usize = 4;

/// The recorded parts of a call, with secrets redacted.
pub(super) struct Entry<'a> {
    record: &'a CallRecord,
    door: &'static str,
    parameters: Option<Raw>,
    result: Option<Raw>,
    error: Option<String>,
}

impl Entry<'_> {
    /// Builds the entry of a call. Arguments and results longer than `limit` are truncated.
    pub(super) fn of<'a>(record: &'a CallRecord, door: &'static str, limit: usize) -> Entry<'a> {
        let kept = |raw: &Raw, length: usize| match length <= limit {
            true => Ok(record.redacted(raw)),
            false => {
                Err(json!({ "cut": { "bytes": length, "beginning": record.beginning(raw, BEGINNING) } }))
            }
        };
        let result = match &record.outcome {
            Outcome::Answered(result) => Some(kept(result, result.as_bytes().len())),
            Outcome::Refused(_) | Outcome::Failed(_) => None,
        };
        // Readers look for the result's value in this member.
        let result = result.map(|it| it.unwrap_or_else(|cut| json!({ "structuredContent": cut }).into()));
        let parameters = record.arguments.as_ref().map(|it| kept(it, it.as_bytes().len()));
        let parameters = parameters.map(|it| it.unwrap_or_else(Raw::from));
        Entry { record, door, parameters, result, error: record.error_text() }
    }

    /// Returns the texts in the order of the spool, as bytes, so that valid UTF-8 is not checked again.
    fn texts(&self) -> [Option<&[u8]>; 11] {
        let record = self.record;
        let error_type = match &record.outcome {
            Outcome::Answered(_) => None,
            Outcome::Refused(_) => Some("ToolError"),
            Outcome::Failed(fault) => Some(fault.kind.as_str()),
        };
        [
            Some(record.request_id.as_bytes()),
            record.thread_id.as_deref().map(str::as_bytes),
            Some(record.source.as_deref().unwrap_or_default().as_bytes()),
            Some(record.wire_name.as_ref().unwrap_or(&record.tool).as_bytes()),
            Some(self.parameters.as_ref().map_or(b"{}", Raw::as_bytes)),
            Some(record.status().as_str().as_bytes()),
            self.result.as_ref().map(Raw::as_bytes),
            self.error.as_deref().map(str::as_bytes),
            error_type.map(str::as_bytes),
            Some(self.door.as_bytes()),
            record.principal.as_deref().map(str::as_bytes),
        ]
    }

    fn began(&self) -> i64 {
        let micros = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        i64::try_from(micros(self.record.started)).unwrap_or(i64::MAX)
    }

    fn took(&self) -> f64 {
        self.record.took.as_secs_f64() * 1_000.0
    }

    /// Converts the entry to a database row.
    pub(super) fn row(&self) -> CallRow {
        let texts = self.texts().map(|it| it.map(String::from_utf8_lossy));
        view(texts.each_ref().map(Option::as_deref), self.began(), self.took()).into()
    }

    /// Appends the encoded entry to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write(self.texts(), self.began(), self.took(), out);
    }
}

/// Appends the encoded row to `out`. The result equals the encoding of the call's entry.
pub(super) fn write_row(row: &CallRow, out: &mut Vec<u8>) {
    let texts = [
        Some(row.request_id.as_str()),
        row.thread_id.as_deref(),
        Some(&row.source),
        Some(&row.tool_name),
        Some(&row.parameters),
        Some(&row.status),
        row.result.as_deref(),
        row.error.as_deref(),
        row.error_type.as_deref(),
        row.door.as_deref(),
        row.principal.as_deref(),
    ];
    write(texts.map(|it| it.map(str::as_bytes)), row.execution_start, row.execution_duration_ms, out);
}

fn write(texts: [Option<&[u8]>; 11], began: i64, took: f64, out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend_from_slice(&[0; HEAD]);
    out.extend_from_slice(&began.to_le_bytes());
    out.extend_from_slice(&took.to_le_bytes());
    for text in texts {
        out.extend_from_slice(&text.map_or(NONE, length).to_le_bytes());
        out.extend_from_slice(text.unwrap_or_default());
    }
    let written = u32::try_from(out.len() - begin - HEAD).unwrap_or(NONE);
    out[begin..begin + HEAD].copy_from_slice(&written.to_le_bytes());
}

/// Decodes the calls of a page, up to the first incomplete entry.
pub(super) fn read(page: &[u8]) -> Calls<'_> {
    let mut rest = page;
    Box::new(std::iter::from_fn(move || {
        let (head, after) = rest.split_first_chunk::<HEAD>()?;
        let (entry, after) = after.split_at_checked(u32::from_le_bytes(*head) as usize)?;
        rest = after;
        read_one(entry)
    }))
}

fn read_one(entry: &[u8]) -> Option<CallView<'_>> {
    let (began, rest) = entry.split_first_chunk()?;
    let (took, mut rest) = rest.split_first_chunk()?;
    let mut texts = [None; 11];
    for text in &mut texts {
        let (head, after) = rest.split_first_chunk::<HEAD>()?;
        rest = after;
        let length = u32::from_le_bytes(*head);
        if length != NONE {
            let (bytes, after) = rest.split_at_checked(length as usize)?;
            rest = after;
            *text = Some(std::str::from_utf8(bytes).ok()?);
        }
    }
    Some(view(texts, i64::from_le_bytes(*began), f64::from_le_bytes(*took)))
}

fn view(texts: [Option<&str>; 11], execution_start: i64, execution_duration_ms: f64) -> CallView<'_> {
    let [
        request_id,
        thread_id,
        source,
        tool_name,
        parameters,
        status,
        result,
        error,
        error_type,
        door,
        principal,
    ] = texts;
    CallView {
        request_id: request_id.unwrap_or_default(),
        thread_id,
        source: source.unwrap_or_default(),
        tool_name: tool_name.unwrap_or_default(),
        parameters: parameters.unwrap_or_default(),
        execution_start,
        execution_duration_ms,
        status: status.unwrap_or_default(),
        result,
        error,
        error_type,
        door,
        principal,
    }
}

/// Messages are limited to far less than `u32::MAX` bytes.
fn length(text: &[u8]) -> u32 {
    u32::try_from(text.len()).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: usize) -> CallRow {
        CallRow {
            request_id: format!("call-{number}"),
            source: "todo".to_owned(),
            tool_name: "create_todo".to_owned(),
            parameters: r#"{"title":"Milch \u0000 und Brötchen"}"#.to_owned(),
            execution_start: 1_700_000_000_000_000 + number as i64,
            execution_duration_ms: 0.25,
            status: "success".to_owned(),
            result: number.is_multiple_of(2).then(|| "{}".repeat(number)),
            door: Some("mcp".to_owned()),
            ..CallRow::default()
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        (0..9).for_each(|it| write_row(&call(it), &mut bytes));
        let all: Vec<CallRow> = read(&bytes).map(CallRow::from).collect();
        assert_eq!(all, (0..9).map(call).collect::<Vec<_>>());
    }

    /// Wherever a write was cut off, exactly the complete entries before it are read.
    #[test]
    fn what_is_cut_off_is_not_read() {
        let mut bytes = Vec::new();
        let ends: Vec<usize> = (0..4)
            .map(|it| {
                write_row(&call(it), &mut bytes);
                bytes.len()
            })
            .collect();
        for cut in 0..=bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(read(&bytes[..cut]).count(), whole, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_not_an_entry_ends_the_reading() {
        let mut bytes = Vec::new();
        write_row(&call(1), &mut bytes);
        bytes.extend_from_slice(&[0; 64]);
        assert_eq!(read(&bytes).count(), 1);
    }
}
