//! The `keys` table: random keys that all replicas share.

use crate::{
    Store, StoreError,
    rows::{AnyRow, plain_row},
    sqlite::Durability,
    statement::Statement,
};

struct KeyRow {
    value: String,
}

plain_row!(KeyRow { value });

impl Store {
    /// Returns the key of this name. If there is none yet, stores `candidate`; of several replicas, one wins.
    pub async fn shared_key(&self, name: &str, candidate: &str) -> Result<String, StoreError> {
        if let Some(key) = self.stored_key(name).await? {
            return Ok(key);
        }
        let statement = Statement::new("INSERT INTO keys (name, value) VALUES (");
        let statement =
            statement.values([name.into(), candidate.into()]).sql(") ON CONFLICT (name) DO NOTHING");
        // A power cut right after the first start may take the key, and with it what it has signed.
        let _: Vec<AnyRow> = self.write_as(Durability::ProcessCrash, vec![statement]).await?;
        Ok(self.stored_key(name).await?.unwrap_or_else(|| candidate.to_owned()))
    }

    async fn stored_key(&self, name: &str) -> Result<Option<String>, StoreError> {
        let statement = Statement::new("SELECT value FROM keys WHERE name = ").value(name);
        let rows: Vec<KeyRow> = self.read(statement).await?;
        Ok(rows.into_iter().next().map(|it| it.value))
    }
}
