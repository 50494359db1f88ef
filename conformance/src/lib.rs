//! The fixtures that the official conformance suite expects of a server: data from the folder `fixtures`, and the rules
//! of multi-round questions. Knows no MCP library, so that servers on different libraries offer the same.

pub mod fixtures;
pub mod questions;
