//! Tests our client against the hostile server in every mode, and against a good server behind the damaging proxy.

mod environment;
mod matrix;
mod proxy;
mod runtime;
mod soak;
mod trial;
