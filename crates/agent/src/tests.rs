//! Rows of behaviours times dialects. Each row is read in several chunkings, which must not differ.

mod arguments;
mod behaviours;
mod calls;
mod client;
mod ends;
mod laws;
mod recorded;
mod requests;
mod run_laws;
mod run_rows;
mod script;
mod shape;
mod sizes;
mod tape_laws;
mod trouble;
mod view_laws;

use crate::{
    answer::{Answer, AnswerEvent, AnswerReader, CallIds},
    dialect::Dialect,
    message::AnswerPart,
    model::{AnswerLimits, trouble::Trouble},
};

/// Result of reading one response: what clients received, and the answer.
#[derive(Debug, PartialEq)]
struct ReadResult {
    text: String,
    reasoning: String,
    answer: Result<Answer, Trouble>,
}

fn read_chunks(dialect: Dialect, limits: &AnswerLimits, bytes: &[u8], sizes: &[usize]) -> ReadResult {
    let mut reader = AnswerReader::new(dialect, limits.clone());
    let mut out = Vec::new();
    let mut rest = bytes;
    let mut sizes = sizes.iter().cycle();
    let mut trouble = None;
    while !rest.is_empty() && trouble.is_none() {
        let size = sizes.next().map_or(1, |size| *size).clamp(1, rest.len());
        let (chunk, after) = rest.split_at(size);
        rest = after;
        trouble = reader.push(chunk, &mut out).err();
    }
    let answer = match trouble {
        Some(trouble) => Err(trouble),
        None => reader.finish(&mut CallIds::new("r"), &mut out),
    };
    let (mut text, mut reasoning) = (String::new(), String::new());
    for event in out {
        match event {
            AnswerEvent::Text(piece) => text.push_str(&piece),
            AnswerEvent::Reasoning(piece) => reasoning.push_str(&piece),
        }
    }
    ReadResult { text, reasoning, answer }
}

/// Reads a response whole, byte by byte and in chunks of 7 bytes, and checks that the results are equal.
fn read(dialect: Dialect, bytes: &[u8]) -> ReadResult {
    let limits = AnswerLimits::default();
    let whole = read_chunks(dialect, &limits, bytes, &[bytes.len()]);
    for size in [1, 7] {
        assert_eq!(read_chunks(dialect, &limits, bytes, &[size]), whole, "{dialect:?} in chunks of {size}");
    }
    whole
}

/// Returns a result in one line: text, reasoning, calls and the reason of the end, or the error.
fn summary(result: &ReadResult) -> String {
    let answer = match &result.answer {
        Ok(answer) => answer,
        Err(Trouble::Provider(error)) => return format!("{:?}", error.kind),
        Err(Trouble::Garbled(_)) => return "Garbled".into(),
        Err(trouble) => return format!("{trouble:?}"),
    };
    let parts = answer.parts.iter().map(|part| match part {
        AnswerPart::Text { text, .. } => format!("{text:?} "),
        AnswerPart::Reasoning { text, .. } => format!("<{text}> "),
        AnswerPart::Call(call) => match call.checked_arguments() {
            Ok(arguments) => format!("{}:{}({arguments}) ", call.id, call.name),
            Err(error) => format!("{}:{}({error:?}) ", call.id, call.name),
        },
    });
    parts.chain([format!("{:?}", answer.finish)]).collect()
}

/// Reads a response and compares it with the expected summary.
fn check(dialect: Dialect, row: &str, bytes: impl AsRef<[u8]>, expected: &str) {
    let result = read(dialect, bytes.as_ref());
    assert_eq!(summary(&result), expected, "{row} in {dialect:?}");
    if let Ok(answer) = &result.answer {
        assert_eq!(result.text, answer.text(), "{row} in {dialect:?}");
    }
}
