//! Every complaint that a configuration can earn: one constructor each, so that the wording has one home.
//!
//! Messages that the contract fixes stand here word for word. The others begin with the class of error they belong to.
//! None quotes a header's value or a value that came from a variable: texts are named by their shown form.

mod document;
mod entry;
mod launch;
