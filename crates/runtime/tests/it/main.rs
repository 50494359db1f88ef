//! The integration tests of the runtime: one binary, one module for each subject.

mod load;
