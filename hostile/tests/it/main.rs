//! Our client against the hostile server, mode by mode; and against a good server behind a bad line.

mod matrix;
mod proxy;
mod runtime;
mod soak;
mod surroundings;
mod trial;
