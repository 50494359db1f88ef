//! Tests the tables on both engines: every check runs on a SQLite file and on a PostgreSQL server.

#![cfg(unix)]

mod calls;
mod engines;
mod opening;
mod postgres;
mod promises;
mod shared;
mod sources;
mod todos;
