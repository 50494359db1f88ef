//! The todo types and their filters. The SQL is in [`table`].

mod table;

/// Status of a todo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Still to do.
    Active,
    /// Done.
    Completed,
    /// No longer shown among the current todos.
    Archived,
}

/// One todo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Todo {
    /// Unique number, never reused.
    pub id: i64,
    /// Title.
    pub title: String,
    /// Longer description.
    pub description: Option<String>,
    /// Status.
    pub status: Status,
    /// Priority.
    pub priority: Option<i64>,
    /// Tags.
    pub tags: Vec<String>,
    /// Due date, as `YYYY-MM-DD`.
    pub due_date: Option<String>,
    /// Creation time, in microseconds since 1970.
    pub created_at: i64,
    /// Time of the last change.
    pub updated_at: i64,
}

/// Fields of a todo to create.
#[derive(Clone, Debug, Default)]
pub struct NewTodo {
    /// Title.
    pub title: String,
    /// Longer description.
    pub description: Option<String>,
    /// Priority.
    pub priority: Option<i64>,
    /// Tags.
    pub tags: Vec<String>,
    /// Due date, as `YYYY-MM-DD`.
    pub due_date: Option<String>,
}

/// Changes to a todo. A field that is `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct TodoChange {
    /// New title.
    pub title: Option<String>,
    /// New description; `Some(None)` removes it.
    pub description: Option<Option<String>>,
    /// New status.
    pub status: Option<Status>,
    /// New priority.
    pub priority: Option<i64>,
    /// New tags, replacing the old ones.
    pub tags: Option<Vec<String>>,
    /// New due date; `Some(None)` removes it.
    pub due_date: Option<Option<String>>,
}

/// Selects todos. A todo must match every field that is set.
#[derive(Clone, Debug, Default)]
pub struct TodoFilter {
    /// Status.
    pub status: Option<Status>,
    /// Priority.
    pub priority: Option<i64>,
    /// Tags that a todo must all have, ignoring letter case.
    pub tags: Vec<String>,
    /// Latest due date, exclusive.
    pub due_before: Option<String>,
    /// Earliest due date, exclusive.
    pub due_after: Option<String>,
}

/// Limits on the size of a result.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum number of todos.
    pub rows: usize,
    /// Maximum bytes of text in total.
    pub bytes: usize,
}

/// Todos that a query found.
#[derive(Clone, Debug, Default)]
pub struct FoundTodos {
    /// The todos, in the order of the query.
    pub todos: Vec<Todo>,
    /// Whether a limit cut the result off.
    pub truncated: bool,
}

/// Fingerprint of all todos. A different value means that a todo has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TodosVersion {
    /// Number of todos.
    pub count: i64,
    /// Time of the last change.
    pub latest: i64,
}

impl Status {
    /// All statuses.
    pub const ALL: [Status; 3] = [Status::Active, Status::Completed, Status::Archived];

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Completed => "completed",
            Status::Archived => "archived",
        }
    }

    /// Returns the status with this name.
    pub fn named(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|it| it.as_str() == name)
    }
}

impl TodoChange {
    /// Returns whether no field changes.
    pub fn is_empty(&self) -> bool {
        let TodoChange { title, description, status, priority, tags, due_date } = self;
        let nothing = title.is_none() && description.is_none() && status.is_none();
        nothing && priority.is_none() && tags.is_none() && due_date.is_none()
    }
}
