//! A program that uses the library, and the tests that start it to see how it exits and idles.
//!
//! It has no test harness, because it is both: with `be` as the first argument it is a host, with `idle SECONDS` it
//! measures one, and otherwise it runs all tests, or those whose names contain one of the arguments.

#![cfg_attr(target_os = "linux", expect(clippy::print_stdout, reason = "it reports to its parent process"))]

#[cfg(target_os = "linux")]
mod endings;
#[cfg(target_os = "linux")]
mod host_program;
#[cfg(target_os = "linux")]
mod idle;
#[cfg(target_os = "linux")]
#[path = "../it/orphans/sandbox.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod sandbox;
#[cfg(target_os = "linux")]
mod servers;
#[cfg(target_os = "linux")]
#[path = "../it/orphans/shapes.rs"]
mod shapes;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "a program reads its own arguments")]
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["be", ending, leash, ref files @ ..] => host_program::host(ending, leash, files),
        ["idle", seconds] => run("idle", || idle::check(seconds.parse().expect("a number of seconds"))),
        _ => test(&words),
    }
}

#[cfg(target_os = "linux")]
fn test(words: &[&str]) {
    let wanted: Vec<&&str> = words.iter().filter(|it| !it.starts_with('-')).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|it| name.contains(**it));
    let run = |name: &str, check: fn()| {
        if wants(name) {
            run(name, check)
        }
    };
    run("nothing_is_left_after_a_panic", endings::check_host_panic);
    run("nothing_is_left_after_a_task_panics", endings::check_task_panic);
    run("something_is_left_without_a_supervisor", endings::check_without_supervisor);
    run("idle_connections_cost_almost_no_cpu", || idle::check(10));
}

/// Runs one test. A failing test panics, which skips the remaining tests.
#[cfg(target_os = "linux")]
fn run(name: &str, check: impl FnOnce()) {
    println!("test {name} ...");
    check();
    println!("test {name} ... ok");
}
