//! Decodes rows into structs by column name, on both engines.

/// Implements `FromRow` for both engines: each field comes from the column of the same name.
macro_rules! plain_row {
    ($name:ident { $($field:ident),* $(,)? }) => {
        crate::rows::plain_row!(@of sqlx::sqlite::SqliteRow, $name { $($field),* });
        crate::rows::plain_row!(@of sqlx::postgres::PgRow, $name { $($field),* });
    };
    (@of $row:ty, $name:ident { $($field:ident),* }) => {
        impl sqlx::FromRow<'_, $row> for $name {
            fn from_row(row: &$row) -> sqlx::Result<$name> {
                Ok($name { $($field: sqlx::Row::try_get(row, stringify!($field))?),* })
            }
        }
    };
}

pub(crate) use plain_row;

/// A row as the engine returns it.
pub(crate) enum EngineRow<'r> {
    Sqlite(&'r sqlx::sqlite::SqliteRow),
    Postgres(&'r sqlx::postgres::PgRow),
}

impl EngineRow<'_> {
    pub(crate) fn decode<T: PlainRow>(self) -> sqlx::Result<T> {
        match self {
            EngineRow::Sqlite(row) => T::from_row(row),
            EngineRow::Postgres(row) => T::from_row(row),
        }
    }
}

/// A row type that both engines can decode.
pub(crate) trait PlainRow:
    for<'r> sqlx::FromRow<'r, sqlx::sqlite::SqliteRow>
    + for<'r> sqlx::FromRow<'r, sqlx::postgres::PgRow>
    + Send
    + Unpin
{
}

impl<T> PlainRow for T where
    T: for<'r> sqlx::FromRow<'r, sqlx::sqlite::SqliteRow>
        + for<'r> sqlx::FromRow<'r, sqlx::postgres::PgRow>
        + Send
        + Unpin
{
}

/// A row whose columns do not matter; only the number of rows does.
pub(crate) struct AnyRow;

impl<'r, R: sqlx::Row> sqlx::FromRow<'r, R> for AnyRow {
    fn from_row(_: &'r R) -> sqlx::Result<AnyRow> {
        Ok(AnyRow)
    }
}
