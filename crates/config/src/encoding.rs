//! Finds text encodings by their WHATWG labels and by Python's names.

use encoding_rs::Encoding;

/// Python names that differ from WHATWG labels by more than case and punctuation.
const PYTHON: &[(&str, &str)] = &[
    ("u8", "utf-8"),
    ("utf", "utf-8"),
    ("utf8sig", "utf-8"),
    ("utf8ucs2", "utf-8"),
    ("cp65001", "utf-8"),
    ("latin", "iso-8859-1"),
    ("l1", "iso-8859-1"),
    ("8859", "iso-8859-1"),
    ("646", "us-ascii"),
    ("cp932", "shift_jis"),
    ("mskanji", "shift_jis"),
    ("sjis", "shift_jis"),
    ("cp936", "gbk"),
    ("936", "gbk"),
    ("cp949", "euc-kr"),
    ("949", "euc-kr"),
    ("uhc", "euc-kr"),
    ("cp950", "big5"),
    ("950", "big5"),
    ("eucjp", "euc-jp"),
    ("ujis", "euc-jp"),
    ("euckr", "euc-kr"),
    ("korean", "euc-kr"),
    ("koi8r", "koi8-r"),
    ("koi8u", "koi8-u"),
    ("macroman", "macintosh"),
    ("maccyrillic", "x-mac-cyrillic"),
    ("gb2312", "gb2312"),
    ("gb18030", "gb18030"),
    ("iso2022jp", "iso-2022-jp"),
    ("cyrillic", "iso-8859-5"),
    ("greek", "iso-8859-7"),
    ("latin7", "iso-8859-13"),
    ("l7", "iso-8859-13"),
    ("latin8", "iso-8859-14"),
    ("l8", "iso-8859-14"),
    ("latin9", "iso-8859-15"),
    ("l9", "iso-8859-15"),
    ("latin10", "iso-8859-16"),
    ("l10", "iso-8859-16"),
    ("big5hkscs", "big5-hkscs"),
    ("hkscs", "big5-hkscs"),
    ("cp874", "windows-874"),
    ("tis620", "tis-620"),
    ("euccn", "gb2312"),
    ("shiftjis", "shift_jis"),
];

/// Returns the encoding of this name. UTF-16 is not supported, because messages are separated by single newline
/// bytes.
pub(crate) fn find(label: &str) -> Option<&'static Encoding> {
    let bare: String =
        label.trim().chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let iso = bare.strip_prefix("iso8859").or_else(|| bare.strip_prefix("latin")).map(|part| {
        match bare.starts_with("iso") {
            true => format!("iso-8859-{part}"),
            false => format!("latin{part}"),
        }
    });
    let windows = bare
        .strip_prefix("cp125")
        .or_else(|| bare.strip_prefix("windows125"))
        .map(|page| format!("windows-125{page}"));
    let python = PYTHON.iter().find(|(name, _)| *name == bare).map(|(_, web)| (*web).to_owned());
    [Some(label.to_owned()), Some(label.replace('_', "-")), python, iso, windows, Some(bare)]
        .into_iter()
        .flatten()
        .find_map(|it| Encoding::for_label_no_replacement(it.as_bytes()))
        .filter(|it| *it != encoding_rs::UTF_16LE && *it != encoding_rs::UTF_16BE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_found_by_name() {
        for (label, expected) in [
            ("utf-8", "UTF-8"),
            ("UTF8", "UTF-8"),
            ("utf_8", "UTF-8"),
            ("utf-8-sig", "UTF-8"),
            ("utf_8_sig", "UTF-8"),
            ("latin-1", "windows-1252"),
            ("latin_1", "windows-1252"),
            ("iso8859_1", "windows-1252"),
            ("iso-8859-15", "ISO-8859-15"),
            ("iso8859-2", "ISO-8859-2"),
            ("ascii", "windows-1252"),
            ("cp1252", "windows-1252"),
            ("windows_1251", "windows-1251"),
            ("shift_jis", "Shift_JIS"),
            ("cp932", "Shift_JIS"),
            ("euc_jp", "EUC-JP"),
            ("gbk", "GBK"),
            ("gb18030", "gb18030"),
            ("big5", "Big5"),
            ("koi8_r", "KOI8-R"),
            ("mac_roman", "macintosh"),
        ] {
            assert_eq!(find(label).map(Encoding::name), Some(expected), "{label}");
        }
        let labels = "utf-16 utf_16_le utf16 UTF-16BE ucs-2 nonsense hex rot13 iso-2022-kr";
        for label in labels.split(' ').chain([""]) {
            assert_eq!(find(label).map(Encoding::name), None, "{label}");
        }
    }
}
