//! Assembles tool calls from fragments, so that no call is lost, merged or doubled.
//!
//! Servers differ in how they mark the fragments of a call: no index, one index for all calls, indexes from 1, a new
//! id in every fragment, the name in every fragment. Nothing is allocated by index.

use super::CallIds;
use crate::{
    arguments::{MAX_ARGUMENT_BYTES, ObjectScan, unwrap_string},
    dialect::CallFragment,
    message::ToolCall,
    model::trouble::Trouble,
};
use serde_json::Value;

#[derive(Debug)]
pub(super) struct CallAssembler {
    calls: Vec<OpenCall>,
    limit: usize,
}

/// Call under construction.
#[derive(Debug)]
struct OpenCall {
    index: Option<String>,
    id: Option<String>,
    name: String,
    arguments: String,
    scan: ObjectScan,
    is_whole: bool,
    native: Option<Value>,
}

impl CallAssembler {
    pub(super) fn new(limit: usize) -> CallAssembler {
        CallAssembler { calls: Vec::new(), limit }
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Adds a fragment. Returns the position of the call if the fragment begins one.
    pub(super) fn push(&mut self, mut fragment: CallFragment) -> Result<Option<usize>, Trouble> {
        fragment.id = fragment.id.filter(|id| !id.is_empty());
        fragment.name = fragment.name.filter(|name| !name.is_empty());
        if let Some(at) = self.find(&fragment) {
            self.calls[at].append(fragment);
            return Ok(None);
        }
        if self.calls.len() == self.limit {
            return Err(Trouble::TooMuch { what: "tool calls", limit: self.limit });
        }
        self.calls.push(OpenCall::new(fragment));
        Ok(Some(self.calls.len() - 1))
    }

    /// Returns the calls in order. Each can be taken once.
    pub(super) fn finish(&mut self, ids: &mut CallIds) -> Result<Vec<Option<ToolCall>>, Trouble> {
        if self.calls.iter().any(|call| call.name.is_empty()) {
            return Err(Trouble::garbled("a tool call has no name"));
        }
        let calls = self.calls.iter_mut().map(|call| {
            Some(ToolCall {
                id: ids.assign(call.id.take()),
                name: std::mem::take(&mut call.name),
                arguments: unwrap_string(std::mem::take(&mut call.arguments)),
                native: call.native.take(),
            })
        });
        Ok(calls.collect())
    }

    /// Returns the call that a fragment continues, or `None` if it begins one.
    fn find(&self, fragment: &CallFragment) -> Option<usize> {
        if fragment.is_whole {
            return None;
        }
        let is_known = |call: &OpenCall| {
            !call.is_whole && fragment.id.is_some() && call.id == fragment.id && call.index == fragment.index
        };
        if let Some(known) = self.calls.iter().rposition(is_known) {
            return Some(known);
        }
        let newest = self.calls.iter().rposition(|call| !call.is_whole && call.index == fragment.index);
        match &fragment.name {
            Some(name) => newest.filter(|at| fragment.id.is_none() && self.calls[*at].can_be(name)),
            None => newest.or_else(|| self.calls.iter().rposition(|call| !call.is_whole)),
        }
    }
}

impl OpenCall {
    fn new(fragment: CallFragment) -> OpenCall {
        let mut call = OpenCall {
            index: fragment.index.clone(),
            id: fragment.id.clone(),
            name: String::new(),
            arguments: String::new(),
            scan: ObjectScan::default(),
            is_whole: fragment.is_whole,
            native: None,
        };
        call.append(fragment);
        call
    }

    /// Returns whether a fragment that repeats this name may continue the call.
    fn can_be(&self, name: &str) -> bool {
        (self.name.is_empty() || self.name == name) && !self.scan.is_whole()
    }

    fn append(&mut self, fragment: CallFragment) {
        if self.name.is_empty() {
            self.name = fragment.name.unwrap_or_default();
        }
        self.id = self.id.take().or(fragment.id);
        self.native = fragment.native.or(self.native.take());
        self.scan.push(&fragment.arguments);
        // One byte more than allowed is kept, so that the check of the arguments finds them too long.
        let room = (MAX_ARGUMENT_BYTES + 1).saturating_sub(self.arguments.len());
        let end = fragment.arguments.ceil_char_boundary(room.min(fragment.arguments.len()));
        self.arguments.push_str(&fragment.arguments[..end]);
    }
}
