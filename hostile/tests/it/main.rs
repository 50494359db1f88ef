//! Our client against the hostile server, mode by mode; and against a good server behind a bad line.

mod matrix;
mod proxy;
mod surroundings;
mod runtime;
mod soak;
mod trial;
