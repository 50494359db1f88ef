//! Reads a recording from a file, with the large values that are in files of their own.

use crate::command_error::CommandError;
use std::path::Path;
use wharf_config::read_regular;
use wharf_runtime::cassette::{Cassette, CassetteFiles, MAX_CASSETTE_BYTES, RecordedOutcome};

/// Reads a recording.
pub(crate) fn read_cassette(path: &Path) -> Result<Cassette, CommandError> {
    let name = path.display();
    let unreadable = |why: String| CommandError::usage(&format!("{name} cannot be used: {why}"));
    let bytes = read_regular(path, MAX_CASSETTE_BYTES).map_err(|error| unreadable(format!("it {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".to_owned()))?;
    let mut cassette = Cassette::parse(&text).map_err(|error| unreadable(error.to_string()))?;
    // `FILE.part` is what a killed command leaves of FILE.
    let whole = path.extension().is_some_and(|it| it == "part").then(|| path.with_extension(""));
    let files = CassetteFiles::of(whole.as_deref().unwrap_or(path));
    for call in &mut cassette.calls {
        if let RecordedOutcome::Result(result) = &mut call.outcome {
            files.load(result).map_err(|why| unreadable(format!("line {}: {why}", call.line)))?;
        }
    }
    for step in &mut cassette.steps {
        for value in step.body.values_mut() {
            files.load(value).map_err(|why| unreadable(format!("line {}: {why}", step.line)))?;
        }
    }
    Ok(cassette)
}
