//! Lowers `results:` of the file and of its entries.

use super::lock::EntryOptions;
use crate::{
    diagnostic::Diagnostics,
    plan::Source,
    raw::{Field, RawResults},
    read::Reader,
    result_settings::{PassRule, ResultReader, ResultSettings},
};
use std::time::Duration;

/// Bounds of `results.inline_limit`, in bytes.
const INLINE_LIMITS: (u64, u64) = (512, 16 << 20);
/// Bounds of `results.keep`, in seconds.
const KEEP_SECONDS: (u64, u64) = (60, 86_400);

/// The settings that one `results:` makes. Absent ones are inherited.
#[derive(Default)]
struct WrittenResults {
    inline_limit: Option<usize>,
    keep: Option<Duration>,
    readers: Option<Vec<ResultReader>>,
    pass: Option<PassRule>,
}

/// Applies the settings of the file, and then those of each entry, to the sources.
pub(super) fn apply(
    field: Option<Field>,
    entries: &mut [EntryOptions],
    sources: &mut [Source],
    diagnostics: &mut Diagnostics,
) {
    let top = read(field, diagnostics).over(&ResultSettings::default());
    let entries: Vec<WrittenResults> =
        entries.iter_mut().map(|it| read(it.results.take(), diagnostics)).collect();
    for (source, entry) in sources.iter_mut().zip(entries) {
        source.results = entry.over(&top);
    }
}

impl WrittenResults {
    fn over(self, inherited: &ResultSettings) -> ResultSettings {
        ResultSettings {
            inline_limit: self.inline_limit.unwrap_or(inherited.inline_limit),
            keep: self.keep.unwrap_or(inherited.keep),
            readers: self.readers.unwrap_or_else(|| inherited.readers.clone()),
            pass: self.pass.unwrap_or(inherited.pass),
        }
    }
}

fn read(field: Option<Field>, diagnostics: &mut Diagnostics) -> WrittenResults {
    let Some(raw) = field.and_then(|it| RawResults::read(it.node, diagnostics)) else {
        return WrittenResults::default();
    };
    let RawResults { inline_limit, keep, readers, pass } = raw;
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let (min, max) = INLINE_LIMITS;
    let inline_limit = reader.integer("results.inline_limit", inline_limit, min, max);
    let (min, max) = KEEP_SECONDS;
    WrittenResults {
        inline_limit: inline_limit.and_then(|it| usize::try_from(it).ok()),
        keep: reader.integer("results.keep", keep, min, max).map(Duration::from_secs),
        readers: self::readers(readers, &mut reader),
        pass: reader.keyword("results.pass", pass, PassRule::KEYWORDS, PassRule::parse),
    }
}

fn readers(field: Option<Field>, reader: &mut Reader<'_>) -> Option<Vec<ResultReader>> {
    const KEY: &str = "results.for";
    let texts = reader.texts(KEY, field)?.value;
    let mut readers = Vec::new();
    for text in texts {
        match ResultReader::parse(text.value.expose()) {
            Some(it) => readers.push(it),
            None => {
                let (class, keywords) = (reader.class, ResultReader::KEYWORDS);
                reader.diagnostics.unknown_keyword(text.at, class, KEY, &text.value, keywords);
            }
        }
    }
    Some(readers)
}
