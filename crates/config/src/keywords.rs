//! Implements enums of keywords from one table each.

/// Implements parsing, printing and listing for an enum of keywords from one table.
macro_rules! keywords {
    ($type:ident { $($variant:ident = $keyword:literal),+ $(,)? }) => {
        impl $type {
            /// All keywords.
            pub const KEYWORDS: &'static [&'static str] = &[$($keyword),+];

            /// Returns the keyword.
            pub fn as_str(self) -> &'static str {
                match self { $($type::$variant => $keyword),+ }
            }

            /// Parses a keyword.
            pub fn parse(keyword: &str) -> Option<$type> {
                match keyword { $($keyword => Some($type::$variant),)+ _ => None }
            }
        }
    };
}

pub(crate) use keywords;
