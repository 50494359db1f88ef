//! Arguments of recordings: `--record` and `--replay` of several commands, and `wharf replay`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of every command that can record and replay.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CassetteArgs {
    /// Record calls and model turns in this file, with secrets replaced
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// With --record: also write how long each call took
    #[arg(long, requires = "record")]
    pub(crate) timings: bool,
    /// Answer from this recording; no server is started, and no model is asked
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// With --replay: use the real servers or the real model
    #[arg(long, value_name = "PART", requires = "replay")]
    pub(crate) live: Vec<LivePart>,
    /// Inject the faults of this file into calls, for tests
    #[arg(long, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
}

/// Part of a replay that is real.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LivePart {
    /// The model
    Model,
    /// The servers
    Tools,
}

/// Origin of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnswerOrigin {
    /// From the recording
    Recorded,
    /// From the real model or the real servers
    Live,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    pub(crate) cassette: PathBuf,
    /// Origin of the model's answers
    #[arg(long, value_name = "ORIGIN", default_value = "recorded")]
    pub(crate) model: AnswerOrigin,
    /// Origin of the results of tools
    #[arg(long, value_name = "ORIGIN", default_value = "recorded")]
    pub(crate) tools: AnswerOrigin,
    /// Record what happens now in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

impl CassetteArgs {
    /// Returns whether this part is real.
    pub(crate) fn is_live(&self, part: LivePart) -> bool {
        self.replay.is_none() || self.live.contains(&part)
    }
}

impl ReplayArgs {
    /// Returns the options of a command that replays this recording and records what happens in `record`.
    pub(crate) fn to_cassette_args(&self, record: PathBuf) -> CassetteArgs {
        let parts = [(self.model, LivePart::Model), (self.tools, LivePart::Tools)];
        let live = parts.into_iter().filter(|(origin, _)| *origin == AnswerOrigin::Live).map(|(_, it)| it);
        CassetteArgs {
            record: Some(record),
            timings: false,
            replay: Some(self.cassette.clone()),
            live: live.collect(),
            faults: None,
        }
    }
}
