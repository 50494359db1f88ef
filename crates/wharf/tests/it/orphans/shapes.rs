//! The process trees that `server.sh` can start.

/// Name of a process tree, and its number of processes including the supervisor.
pub(super) const SHAPES: &[(&str, usize)] = &[
    ("direct", 2),
    ("npx-tree", 4),
    ("setsid", 3),
    ("double-fork", 3),
    ("ignores-term", 3),
    ("setsid-ignores-term", 3),
    ("holds-stdout", 3),
    ("64-forks", 66),
];
