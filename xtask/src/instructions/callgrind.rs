//! Reads profiles that Callgrind has written.

use std::collections::HashMap;
use std::path::Path;

/// Adds up the instructions of all functions of this program.
pub(super) fn instructions_of(profile: &str, program: &Path) -> u64 {
    let (mut names, mut is_ours, mut follows_call, mut sum) = (HashMap::new(), false, false, 0);
    for line in profile.lines() {
        if let Some(object) = line.strip_prefix("ob=") {
            is_ours = name(object, &mut names) == program.as_os_str();
        } else if let Some(object) = line.strip_prefix("cob=") {
            name(object, &mut names);
        } else if line.starts_with("calls=") {
            follows_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            // The line after a call has the cost of the called function, which is counted where that is listed.
            let is_own_cost = !std::mem::take(&mut follows_call);
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok());
            sum += cost.filter(|_| is_ours && is_own_cost).unwrap_or(0);
        }
    }
    sum
}

/// Returns the name in `(NUMBER) NAME`, or the one that had this number before.
fn name<'a>(text: &'a str, names: &mut HashMap<&'a str, &'a str>) -> &'a str {
    match text.split_once(' ') {
        Some((number, name)) => {
            names.insert(number, name);
            name
        }
        None => names.get(text).copied().unwrap_or(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_costs_of_the_program_count() {
        let profile = "\
events: Ir
ob=(1) /bin/wharf
fn=(1) main
12 100
+3 20
cob=(2) /lib/libc.so.6
cfn=(2) memcpy
calls=7 0
+1 5000
* 3
ob=(2)
fn=(2)
0 5000
ob=(1)
fn=(3) other
7 1000
summary: 6123
";
        assert_eq!(instructions_of(profile, Path::new("/bin/wharf")), 1_123);
    }
}
