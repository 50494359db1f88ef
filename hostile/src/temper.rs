//! Decides when the server misbehaves: at which stage, how often and with what probability.

use crate::{
    modes::{Mode, Stage},
    orders::Orders,
};
use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

#[derive(Debug)]
pub(crate) struct Temper {
    orders: Orders,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    occasions: HashMap<&'static str, u64>,
    chance: u64,
    /// Whether `tools/list` returns an empty list.
    bare: bool,
}

impl Temper {
    pub(crate) fn new(orders: &Orders) -> Temper {
        // Mixes in the size of the ledger, so that a restarted server continues with new random numbers and a run
        // stays reproducible from one seed.
        let written =
            orders.ledger.as_ref().and_then(|path| fs::metadata(path).ok()).map_or(0, |it| it.len());
        let chance = mixed(orders.seed.wrapping_add(written));
        Temper {
            orders: orders.clone(),
            state: Mutex::new(State { occasions: HashMap::new(), chance, bare: false }),
        }
    }

    /// Returns the mode to apply at this stage, if any.
    pub(crate) fn strike(&self, stage: Stage) -> Option<&'static Mode> {
        let meant = |mode: &&&'static Mode| self.orders.at.unwrap_or(mode.stage) == stage;
        self.orders.modes.iter().filter(meant).find(|mode| self.is_time(mode)).copied()
    }

    fn is_time(&self, mode: &'static Mode) -> bool {
        let mut state = self.state();
        let occasions = state.occasions.entry(mode.name).or_default();
        *occasions += 1;
        *occasions > self.orders.after
            && (self.orders.prob >= 1.0 || state.luck() < self.orders.prob)
            && self.is_first(mode)
    }

    /// Returns whether the mode is misbehaving for the first time, if `once` is set. The marker file also tells
    /// later processes of the server.
    fn is_first(&self, mode: &Mode) -> bool {
        let Some(path) = &self.orders.once else { return true };
        let path = PathBuf::from(format!("{}.{}", path.display(), mode.name));
        OpenOptions::new().write(true).create_new(true).open(path).is_ok()
    }

    /// Returns a random number below `bound`.
    pub(crate) fn pick(&self, bound: u64) -> u64 {
        let mut state = self.state();
        (state.luck() * bound as f64) as u64
    }

    /// Makes the tool list empty from now on.
    pub(crate) fn strip(&self) {
        self.state().bare = true;
    }

    pub(crate) fn is_bare(&self) -> bool {
        self.state().bare
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns a random number from 0 to 1.
    fn luck(&mut self) -> f64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mixed(self.chance) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn mixed(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
