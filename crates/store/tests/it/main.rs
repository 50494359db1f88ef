//! Tests the tables on both engines: every check runs on a SQLite file and on a PostgreSQL server.

#![cfg(unix)]

mod accepted_definitions;
mod calls;
mod conversations;
mod engines;
mod idempotency;
mod opening;
mod postgres;
mod replication;
mod results;
mod sources;
mod todos;
