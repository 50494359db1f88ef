//! The typed edge: what servers list and answer, read leniently and one by one.
//!
//! An item that cannot be read is [`Item::Odd`]: kept as it came, with the reason, beside its intact neighbours. Every
//! item that can be read keeps its raw text too, so fields that this crate does not know survive.

mod content;
mod header_params;
mod log_level;
mod prompt;
mod resource;
mod tool;

use crate::{Raw, session::Listing};
pub use content::{Block, Blocks, CallResult};
pub use log_level::LogLevel;
pub use prompt::{Prompt, PromptArgument, PromptMessage, PromptResult};
pub use resource::{Contents, ReadResult, Resource, Template};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
pub use tool::Tool;

/// One item of a list.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<T> {
    /// As it should be.
    Good(T),
    /// As it should not be: its text, and what is wrong with it.
    Odd(Raw, String),
}

/// What can be read from raw JSON.
pub trait Read: Sized {
    /// Reads one item, or says what is wrong with it.
    fn read(raw: &Raw) -> Result<Self, String>;
}

impl<T> Item<T> {
    /// The item, if it is good.
    pub fn good(self) -> Option<T> {
        match self {
            Item::Good(item) => Some(item),
            Item::Odd(..) => None,
        }
    }
}

impl<T: Read> Item<T> {
    /// Reads one item.
    pub fn read(raw: &Raw) -> Item<T> {
        match T::read(raw) {
            Ok(item) => Item::Good(item),
            Err(why) => Item::Odd(raw.clone(), why),
        }
    }
}

impl Listing {
    /// Reads the items of a list.
    pub fn read<T: Read>(&self) -> Vec<Item<T>> {
        self.items.iter().map(Item::read).collect()
    }
}

/// A member of the wanted shape. Absent is `None`; of another shape is an error that names it.
fn optional<T: DeserializeOwned>(raw: &Raw, name: &str) -> Result<Option<T>, String> {
    match raw.member(name) {
        None => Ok(None),
        Some(value) => value.decode().map(Some).map_err(|_| format!("`{name}` is of the wrong type")),
    }
}

fn required<T: DeserializeOwned>(raw: &Raw, name: &str) -> Result<T, String> {
    if !raw.is_object() {
        return Err("it is no object".into());
    }
    optional(raw, name)?.ok_or_else(|| format!("`{name}` is missing"))
}

/// A member that only decorates: of the wrong shape it counts as absent.
fn lenient<T: DeserializeOwned>(raw: &Raw, name: &str) -> Option<T> {
    optional(raw, name).ok().flatten()
}

/// The elements of an array member; `None` if it is no array.
fn elements(raw: &Raw, name: &str) -> Option<Vec<Raw>> {
    let array = raw.member(name)?;
    let text = array.clone().into_bytes();
    let items: Vec<&RawValue> = array.decode().ok()?;
    Some(items.into_iter().map(|item| Raw::within(&text, item)).collect())
}

#[cfg(test)]
mod tests;
