//! Typed views of lists and results, read leniently and item by item.
//!
//! An item that cannot be read becomes [`Item::Invalid`]: its raw text and the reason, beside its intact neighbours.
//! Readable items keep their raw text too, so that fields unknown to this crate survive.

mod content;
mod header_params;
mod log_level;
mod prompt;
mod resource;
mod tool;

use crate::Raw;
pub use content::{Block, Blocks, CallResult};
pub use log_level::LogLevel;
pub use prompt::{Prompt, PromptArgument, PromptMessage, PromptResult};
pub use resource::{Contents, ReadResult, Resource, Template};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::time::Duration;
pub use tool::Tool;

/// Complete list.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Items, each as the server sent it.
    pub items: Vec<Raw>,
    /// Shortest cache lifetime that the server gave, if any.
    pub ttl: Option<Duration>,
    /// Whether the list must not be shared between users. A missing `cacheScope` counts as private.
    pub private: bool,
}

/// One item of a list.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<T> {
    /// Valid item.
    Valid(T),
    /// Invalid item: its text and the reason.
    Invalid(Raw, String),
}

/// Type that can be read from raw JSON.
pub trait Read: Sized {
    /// Reads one item, or returns what is wrong with it.
    fn read(raw: &Raw) -> Result<Self, String>;
}

impl<T> Item<T> {
    /// Returns the item if it is valid.
    pub fn valid(self) -> Option<T> {
        match self {
            Item::Valid(item) => Some(item),
            Item::Invalid(..) => None,
        }
    }
}

impl<T: Read> Item<T> {
    /// Reads one item.
    pub fn read(raw: &Raw) -> Item<T> {
        match T::read(raw) {
            Ok(item) => Item::Valid(item),
            Err(why) => Item::Invalid(raw.clone(), why),
        }
    }
}

impl Listing {
    /// Reads the items of a list.
    pub fn read<T: Read>(&self) -> Vec<Item<T>> {
        self.items.iter().map(Item::read).collect()
    }
}

/// Reads an optional member. A wrong type is an error that names the member.
fn optional<T: DeserializeOwned>(raw: &Raw, name: &str) -> Result<Option<T>, String> {
    match raw.member(name) {
        None => Ok(None),
        Some(value) => value.decode().map(Some).map_err(|_| format!("`{name}` is of the wrong type")),
    }
}

fn required<T: DeserializeOwned>(raw: &Raw, name: &str) -> Result<T, String> {
    if !raw.is_object() {
        return Err("it is not an object".into());
    }
    optional(raw, name)?.ok_or_else(|| format!("`{name}` is missing"))
}

/// Reads an optional, purely descriptive member; a wrong type counts as absent.
fn lenient<T: DeserializeOwned>(raw: &Raw, name: &str) -> Option<T> {
    optional(raw, name).ok().flatten()
}

/// Returns the elements of an array member; `None` if it is not an array.
fn elements(raw: &Raw, name: &str) -> Option<Vec<Raw>> {
    let array = raw.member(name)?;
    let text = array.clone().into_bytes();
    let items: Vec<&RawValue> = array.decode().ok()?;
    Some(items.into_iter().map(|item| Raw::within(&text, item)).collect())
}

#[cfg(test)]
mod tests;
