//! The integration tests of the runtime: one binary, one module for each subject.

mod breaker;
mod living;
mod load;
mod registration;
mod schema;
