//! The table of todos.

use super::{Bounds, Found, NewTodo, Status, Todo, TodoChange, TodoFilter, TodosMark};
use crate::{
    Store, StoreError, clock, fold,
    rows::plain_row,
    statement::{Statement, Value},
    store::Pools,
};

/// What a todo's row is read into; the rest of its columns are for searching.
const COLUMNS: &str = "id, title, description, status, priority, tags, due_date, created_at, updated_at";

/// What is written of a new one. Its id comes from the engine.
const COLUMNS_WRITTEN: &str = "title, description, status, priority, tags, due_date, created_at, updated_at, \
    title_key, description_key, tags_key";

plain_row!(TodosMark { count, latest });

struct Row {
    id: i64,
    title: String,
    description: Option<String>,
    status: String,
    priority: Option<i64>,
    tags: String,
    due_date: Option<String>,
    created_at: i64,
    updated_at: i64,
}

plain_row!(Row { id, title, description, status, priority, tags, due_date, created_at, updated_at });

impl Store {
    /// Makes a todo. When this returns, the todo is on the disk.
    pub async fn create_todo(&self, new: &NewTodo) -> Result<Todo, StoreError> {
        let rows = match &self.pools {
            Pools::Sqlite(_) => {
                let count = "UPDATE counters SET value = value + 1 WHERE name = 'todos'";
                let id = "(SELECT value FROM counters WHERE name = 'todos'), ";
                self.write(vec![Statement::new(count), insert(new, "id, ", id)]).await?
            }
            Pools::Postgres(_) => self.write_one(insert(new, "", "")).await?,
        };
        rows.into_iter().next().map(Row::into_todo).ok_or_else(nothing_came_back)
    }

    /// One todo.
    pub async fn todo(&self, id: i64) -> Result<Option<Todo>, StoreError> {
        let rows: Vec<Row> = self.read(select().and("id = ", Some(id))).await?;
        Ok(rows.into_iter().next().map(Row::into_todo))
    }

    /// The todos that meet a filter, the oldest first.
    pub async fn list_todos(&self, filter: &TodoFilter, bounds: Bounds) -> Result<Found, StoreError> {
        self.find(self.narrowed(select(), filter).sql(" ORDER BY id"), bounds).await
    }

    /// The newest todos of a status, the newest first.
    pub async fn newest_todos(&self, status: Status, bounds: Bounds) -> Result<Found, StoreError> {
        self.find(select().and("status = ", Some(status.as_str())).sql(" ORDER BY id DESC"), bounds).await
    }

    /// The todos with this text in their title or description, in whatever letter case. A title that is the text comes
    /// first, then one that begins with it, then one that has it, then a description.
    pub async fn search_todos(
        &self,
        text: &str,
        filter: &TodoFilter,
        bounds: Bounds,
    ) -> Result<Found, StoreError> {
        let (key, position) = (fold::key(text), self.position());
        let find = |statement: Statement, column: &'static str| {
            statement.sql(position).sql(column).sql(", ").value(key.as_str()).sql(")")
        };
        let statement = find(select().sql(" AND ("), "title_key").sql(" > 0 OR ");
        let statement = find(statement, "description_key").sql(" > 0)");
        let statement = self.narrowed(statement, filter).sql(" ORDER BY CASE WHEN title_key = ");
        let statement = find(statement.value(key.as_str()).sql(" THEN 0 WHEN "), "title_key");
        let statement = find(statement.sql(" = 1 THEN 1 WHEN "), "title_key");
        self.find(statement.sql(" > 0 THEN 2 ELSE 3 END, id"), bounds).await
    }

    /// Changes a todo and gives it back as it is then, or `None` if there is no such todo. Of two changes to different
    /// fields at the same time, neither is lost.
    pub async fn update_todo(&self, id: i64, change: &TodoChange) -> Result<Option<Todo>, StoreError> {
        let statement = Statement::new("UPDATE todos SET updated_at = ").value(clock::now());
        let statement = change.assign(statement).sql(" WHERE id = ").value(id);
        let rows: Vec<Row> = self.write_one(statement.sql(" RETURNING ").sql(COLUMNS)).await?;
        Ok(rows.into_iter().next().map(Row::into_todo))
    }

    /// Deletes a todo and gives it back as it was, or `None` if there is no such todo.
    pub async fn delete_todo(&self, id: i64) -> Result<Option<Todo>, StoreError> {
        let statement = Statement::new("DELETE FROM todos WHERE id = ").value(id);
        let rows: Vec<Row> = self.write_one(statement.sql(" RETURNING ").sql(COLUMNS)).await?;
        Ok(rows.into_iter().next().map(Row::into_todo))
    }

    /// How the todos stand, whoever has written them.
    pub async fn todos_mark(&self) -> Result<TodosMark, StoreError> {
        let mark = "SELECT count(*) AS count, coalesce(max(updated_at), 0) AS latest FROM todos";
        let rows: Vec<TodosMark> = self.read(Statement::new(mark)).await?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }

    fn narrowed(&self, statement: Statement, filter: &TodoFilter) -> Statement {
        let TodoFilter { status, priority, tags, due_before, due_after } = filter;
        let statement = statement
            .and("status = ", status.map(Status::as_str))
            .and("priority = ", *priority)
            .and("due_date < ", due_before.as_deref())
            .and("due_date > ", due_after.as_deref());
        tags.iter().fold(statement, |statement, tag| {
            let statement = statement.sql(" AND ").sql(self.position());
            statement.sql("tags_key, ").value(fold::tag_key(tag)).sql(") > 0")
        })
    }

    async fn find(&self, statement: Statement, bounds: Bounds) -> Result<Found, StoreError> {
        let (mut found, mut bytes) = (Found::default(), 0);
        self.read_while(statement, |row: Row| {
            bytes += row.weight();
            found.truncated = found.todos.len() == bounds.rows || bytes > bounds.bytes;
            if !found.truncated {
                found.todos.push(row.into_todo());
            }
            !found.truncated
        })
        .await?;
        Ok(found)
    }
}

fn select() -> Statement {
    Statement::new("SELECT ").sql(COLUMNS).sql(" FROM todos WHERE 1 = 1")
}

fn insert(new: &NewTodo, column: &'static str, id: &'static str) -> Statement {
    let NewTodo { title, description, priority, tags, due_date } = new;
    let now = clock::now();
    let values: [Value; 11] = [
        title.as_str().into(),
        description.as_deref().into(),
        Status::Active.as_str().into(),
        (*priority).into(),
        tags_json(tags).into(),
        due_date.as_deref().into(),
        now.into(),
        now.into(),
        fold::key(title).into(),
        fold::key(description.as_deref().unwrap_or_default()).into(),
        fold::tags_key(tags).into(),
    ];
    let statement = Statement::new("INSERT INTO todos (").sql(column).sql(COLUMNS_WRITTEN).sql(") VALUES (");
    statement.sql(id).values(values).sql(") RETURNING ").sql(COLUMNS)
}

impl TodoChange {
    fn assign(&self, statement: Statement) -> Statement {
        let TodoChange { title, description, status, priority, tags, due_date } = self;
        let set = |statement: Statement, column: &'static str, value: Option<Value>| match value {
            Some(value) => statement.sql(", ").sql(column).sql(" = ").value(value),
            None => statement,
        };
        let title_key = title.as_deref().map(|it| fold::key(it).into());
        let description_key =
            description.as_ref().map(|it| fold::key(it.as_deref().unwrap_or_default()).into());
        let statement = set(statement, "title", title.as_deref().map(Value::from));
        let statement = set(statement, "title_key", title_key);
        let statement = set(statement, "description", description.as_ref().map(|it| it.as_deref().into()));
        let statement = set(statement, "description_key", description_key);
        let statement = set(statement, "status", status.map(|it| it.as_str().into()));
        let statement = set(statement, "priority", priority.map(Value::from));
        let statement = set(statement, "tags", tags.as_deref().map(|it| tags_json(it).into()));
        let statement = set(statement, "tags_key", tags.as_deref().map(|it| fold::tags_key(it).into()));
        set(statement, "due_date", due_date.as_ref().map(|it| it.as_deref().into()))
    }
}

impl Row {
    fn weight(&self) -> usize {
        self.title.len() + self.description.as_deref().map_or(0, str::len) + self.tags.len()
    }

    /// Nobody but this file writes these columns; what somebody else put there reads as the plainest value.
    fn into_todo(self) -> Todo {
        let Row { id, title, description, status, priority, tags, due_date, created_at, updated_at } = self;
        let status = Status::named(&status).unwrap_or(Status::Active);
        let tags = serde_json::from_str(&tags).unwrap_or_default();
        Todo { id, title, description, status, priority, tags, due_date, created_at, updated_at }
    }
}

fn tags_json(tags: &[String]) -> String {
    serde_json::json!(tags).to_string()
}

fn nothing_came_back() -> StoreError {
    StoreError::Engine("a row that was written did not come back".to_owned())
}
