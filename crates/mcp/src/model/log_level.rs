//! Severity of log lines.

use crate::Raw;

/// Severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LogLevel {
    /// Debugging information for developers.
    Debug,
    /// Normal operation.
    Info,
    /// Normal but significant event.
    Notice,
    /// Possible problem.
    Warning,
    /// Error.
    Error,
    /// Critical condition.
    Critical,
    /// Condition that needs immediate action.
    Alert,
    /// System is unusable.
    Emergency,
}

impl LogLevel {
    const ALL: [(LogLevel, &'static str); 8] = [
        (LogLevel::Debug, "debug"),
        (LogLevel::Info, "info"),
        (LogLevel::Notice, "notice"),
        (LogLevel::Warning, "warning"),
        (LogLevel::Error, "error"),
        (LogLevel::Critical, "critical"),
        (LogLevel::Alert, "alert"),
        (LogLevel::Emergency, "emergency"),
    ];

    /// Looks up a level by name.
    pub fn named(name: &str) -> Option<LogLevel> {
        LogLevel::ALL.iter().find(|(_, known)| *known == name).map(|(level, _)| *level)
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        LogLevel::ALL[self as usize].1
    }

    /// Reads the level of a log line, given the params of `notifications/message`.
    pub fn of(line: &Raw) -> Option<LogLevel> {
        LogLevel::named(&line.member("level")?.decode::<String>().ok()?)
    }

    pub(crate) fn numbered(number: u8) -> Option<LogLevel> {
        LogLevel::ALL.get(usize::from(number)).map(|(level, _)| *level)
    }
}
