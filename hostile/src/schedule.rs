//! Decides when the server misbehaves: at which stage, how often and with what probability.

use crate::{
    modes::{Mode, Stage},
    options::ServerOptions,
};
use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

#[derive(Debug)]
pub(crate) struct FaultSchedule {
    options: ServerOptions,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    occasions: HashMap<&'static str, u64>,
    random_state: u64,
    /// Whether `tools/list` returns an empty list.
    hide_tools: bool,
}

impl FaultSchedule {
    pub(crate) fn new(options: &ServerOptions) -> FaultSchedule {
        // Mixes in the size of the action log, so that a restarted server continues with new random numbers and a run
        // stays reproducible from one seed.
        let written =
            options.action_log.as_ref().and_then(|path| fs::metadata(path).ok()).map_or(0, |it| it.len());
        let random_state = mix(options.seed.wrapping_add(written));
        FaultSchedule {
            options: options.clone(),
            state: Mutex::new(State { occasions: HashMap::new(), random_state, hide_tools: false }),
        }
    }

    /// Returns the mode to apply at this stage, if any.
    pub(crate) fn faulty_mode(&self, stage: Stage) -> Option<&'static Mode> {
        let applies = |mode: &&&'static Mode| self.options.at.unwrap_or(mode.stage) == stage;
        self.options.modes.iter().filter(applies).find(|mode| self.is_due(mode)).copied()
    }

    fn is_due(&self, mode: &'static Mode) -> bool {
        let mut state = self.state();
        let occasions = state.occasions.entry(mode.name).or_default();
        *occasions += 1;
        *occasions > self.options.after
            && (self.options.prob >= 1.0 || state.random() < self.options.prob)
            && self.is_first(mode)
    }

    /// Returns whether the mode is misbehaving for the first time, if `once` is set. The marker file also tells
    /// later processes of the server.
    fn is_first(&self, mode: &Mode) -> bool {
        let Some(path) = &self.options.once else { return true };
        let path = PathBuf::from(format!("{}.{}", path.display(), mode.name));
        OpenOptions::new().write(true).create_new(true).open(path).is_ok()
    }

    /// Returns a random number below `bound`.
    pub(crate) fn random_below(&self, bound: u64) -> u64 {
        let mut state = self.state();
        (state.random() * bound as f64) as u64
    }

    /// Makes the tool list empty from now on.
    pub(crate) fn hide_tools(&self) {
        self.state().hide_tools = true;
    }

    pub(crate) fn hides_tools(&self) -> bool {
        self.state().hide_tools
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns a random number from 0 to 1.
    fn random(&mut self) -> f64 {
        self.random_state = self.random_state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.random_state) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn mix(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
