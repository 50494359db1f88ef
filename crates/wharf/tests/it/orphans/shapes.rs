//! What servers start: the names that `server.sh` knows.

/// What a server starts, and how many processes it then is, its supervisor included. The script knows the names.
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
