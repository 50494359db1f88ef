//! Todos: what they are, and what can be asked about them. How they stand in the table is in [`table`].

mod table;

/// How far a todo is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// To be done.
    Active,
    /// Done.
    Completed,
    /// Out of the way.
    Archived,
}

/// One todo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Todo {
    /// Its number, which no other todo gets after it.
    pub id: i64,
    /// What is to be done.
    pub title: String,
    /// What there is to say about it.
    pub description: Option<String>,
    /// How far it is.
    pub status: Status,
    /// How urgent it is.
    pub priority: Option<i64>,
    /// Words it can be found by.
    pub tags: Vec<String>,
    /// The day it is due, as `YYYY-MM-DD`.
    pub due_date: Option<String>,
    /// When it was made, in microseconds since 1970.
    pub created_at: i64,
    /// When it was changed last.
    pub updated_at: i64,
}

/// A todo to be made.
#[derive(Clone, Debug, Default)]
pub struct NewTodo {
    /// What is to be done.
    pub title: String,
    /// What there is to say about it.
    pub description: Option<String>,
    /// How urgent it is.
    pub priority: Option<i64>,
    /// Words it can be found by.
    pub tags: Vec<String>,
    /// The day it is due, as `YYYY-MM-DD`.
    pub due_date: Option<String>,
}

/// What is to be different about a todo. What is `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct TodoChange {
    /// Another title.
    pub title: Option<String>,
    /// Another description, or none any more.
    pub description: Option<Option<String>>,
    /// Another status.
    pub status: Option<Status>,
    /// Another priority.
    pub priority: Option<i64>,
    /// Other tags.
    pub tags: Option<Vec<String>>,
    /// Another day, or none any more.
    pub due_date: Option<Option<String>>,
}

/// Which todos are wanted. All that is given must be met.
#[derive(Clone, Debug, Default)]
pub struct TodoFilter {
    /// Of this status.
    pub status: Option<Status>,
    /// Of this priority.
    pub priority: Option<i64>,
    /// With all of these tags, in whatever letter case.
    pub tags: Vec<String>,
    /// Due before this day.
    pub due_before: Option<String>,
    /// Due after this day.
    pub due_after: Option<String>,
}

/// How much is read at most.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Todos.
    pub rows: usize,
    /// Bytes of text, in all.
    pub bytes: usize,
}

/// Todos that were found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// In order.
    pub todos: Vec<Todo>,
    /// Whether there are more than the bounds allow.
    pub truncated: bool,
}

/// How the todos stand: another mark means that somebody has changed something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TodosMark {
    /// How many there are.
    pub count: i64,
    /// When one was changed last.
    pub latest: i64,
}

impl Status {
    /// All there are.
    pub const ALL: [Status; 3] = [Status::Active, Status::Completed, Status::Archived];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Completed => "completed",
            Status::Archived => "archived",
        }
    }

    /// The status of this name.
    pub fn named(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|it| it.as_str() == name)
    }
}

impl TodoChange {
    /// Whether nothing is to be different.
    pub fn is_empty(&self) -> bool {
        let TodoChange { title, description, status, priority, tags, due_date } = self;
        let nothing = title.is_none() && description.is_none() && status.is_none();
        nothing && priority.is_none() && tags.is_none() && due_date.is_none()
    }
}
