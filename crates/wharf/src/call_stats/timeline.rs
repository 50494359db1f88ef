//! A ring of slots of equal length. Each has the cells of the tools that were called in it.

use super::{Cell, MAX_KEYS};
use std::collections::{BTreeMap, HashMap, VecDeque, hash_map::Entry};

/// Maximum number of cells in all slots together. Beyond it the oldest slots go.
const MAX_CELLS: usize = 200_000;

/// Statistics in steps of equal length.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) step: u64,
    longest: usize,
    slots: VecDeque<Slot>,
    /// Numbers of the tools, by source and name.
    keys: BTreeMap<String, BTreeMap<String, u32>>,
    key_count: u32,
    cells: usize,
}

/// One step of a timeline.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Start, in seconds since 1970.
    pub(super) start: u64,
    pub(super) cells: HashMap<u32, Cell>,
    pub(super) in_flight: Option<u64>,
}

/// A slot that is over, and the names of its tools.
pub(super) struct FinishedSlot<'a> {
    pub(super) slot: &'a Slot,
    pub(super) timeline: &'a Timeline,
}

/// Name for the tools beyond the limit.
const OTHERS: &str = "others";

impl Timeline {
    pub(super) fn new(step: u64, longest: usize) -> Timeline {
        Timeline { step, longest, slots: VecDeque::new(), keys: BTreeMap::new(), key_count: 0, cells: 0 }
    }

    /// Opens the slot of this time, if it is not open, and passes the last one to `finish`.
    pub(super) fn advance(&mut self, now: u64, finish: impl FnOnce(FinishedSlot<'_>)) {
        let start = now - now % self.step;
        if self.slots.back().is_some_and(|it| it.start >= start) {
            return;
        }
        if let Some(slot) = self.slots.back() {
            finish(FinishedSlot { slot, timeline: self });
        }
        self.slots.push_back(Slot { start, ..Slot::default() });
        let oldest = start.saturating_sub(self.step * self.longest as u64);
        while self.slots.len() > 1
            && (self.slots.front().is_some_and(|it| it.start <= oldest) || self.cells > MAX_CELLS)
        {
            let gone = self.slots.pop_front();
            self.cells -= gone.map_or(0, |it| it.cells.len());
        }
    }

    /// The cell of a tool in the current slot.
    pub(super) fn cell(&mut self, (source, tool): (&str, &str)) -> &mut Cell {
        let key = self.key(source, tool);
        if self.slots.is_empty() {
            self.slots.push_back(Slot::default());
        }
        let Timeline { slots, cells, .. } = self;
        let last = slots.len() - 1;
        match slots[last].cells.entry(key) {
            Entry::Occupied(cell) => cell.into_mut(),
            Entry::Vacant(place) => {
                *cells += 1;
                place.insert(Cell::default())
            }
        }
    }

    fn key(&mut self, source: &str, tool: &str) -> u32 {
        if let Some(key) = self.keys.get(source).and_then(|it| it.get(tool)) {
            return *key;
        }
        let (source, tool) =
            if (self.key_count as usize) < MAX_KEYS - 1 { (source, tool) } else { (OTHERS, OTHERS) };
        let next = self.key_count;
        let key = self.keys.entry(source.to_owned()).or_default().entry(tool.to_owned()).or_insert(next);
        if *key == next {
            self.key_count += 1;
        }
        *key
    }

    /// Adds a finished slot of a finer timeline.
    pub(super) fn merge(&mut self, finished: FinishedSlot<'_>) {
        let FinishedSlot { slot, timeline } = finished;
        self.advance(slot.start, |_| {});
        for (source, tool, key) in timeline.names() {
            if let Some(cell) = slot.cells.get(&key) {
                self.cell((source, tool)).merge(cell);
            }
        }
        if let Some(in_flight) = slot.in_flight {
            self.sample(in_flight);
        }
    }

    /// Notes the number of calls in flight; a slot has the highest.
    pub(super) fn sample(&mut self, in_flight: u64) {
        if let Some(slot) = self.slots.back_mut() {
            slot.in_flight = slot.in_flight.max(Some(in_flight));
        }
    }

    /// The sources and tools with their keys.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, &str, u32)> {
        let tools = |(source, tools)| -> Vec<(&str, &str, u32)> {
            let (source, tools): (&String, &BTreeMap<String, u32>) = (source, tools);
            tools.iter().map(|(tool, key)| (source.as_str(), tool.as_str(), *key)).collect()
        };
        self.keys.iter().flat_map(tools)
    }

    /// The slots that begin at or after `from`.
    pub(super) fn slots_since(&self, from: u64) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(move |it| it.start >= from)
    }
}
