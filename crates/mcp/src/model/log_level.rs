//! How severe a log line is.

use crate::Raw;

/// How severe a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LogLevel {
    /// For developers.
    Debug,
    /// What happens.
    Info,
    /// What happens and is worth knowing.
    Notice,
    /// What may become a problem.
    Warning,
    /// What failed.
    Error,
    /// What fails and matters.
    Critical,
    /// What has to be acted upon at once.
    Alert,
    /// What makes everything unusable.
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

    /// The level of this name.
    pub fn named(name: &str) -> Option<LogLevel> {
        LogLevel::ALL.iter().find(|(_, known)| *known == name).map(|(level, _)| *level)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        LogLevel::ALL[self as usize].1
    }

    /// The level that a log line says it has: the parameters of `notifications/message`.
    pub fn of(line: &Raw) -> Option<LogLevel> {
        LogLevel::named(&line.member("level")?.decode::<String>().ok()?)
    }

    pub(crate) fn numbered(number: u8) -> Option<LogLevel> {
        LogLevel::ALL.get(usize::from(number)).map(|(level, _)| *level)
    }
}
