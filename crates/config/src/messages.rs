//! Constructors for all diagnostics of the configuration, one each, so that all messages are in one place.
//!
//! Some messages are fixed word for word by the contract. The others begin with their error class. No message quotes
//! a header value or the value of a variable; it uses the shown form instead.

mod agent;
mod auth;
mod command;
mod document;
mod entry;
mod fault_rules;
mod launch;
mod lock;
mod overrides;
mod record;
mod registration;
mod scenario;
