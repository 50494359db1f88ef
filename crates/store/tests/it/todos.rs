//! Tests creating, finding, changing and deleting todos.

use crate::engines::on_both;
use wharf_store::{Bounds, FoundTodos, NewTodo, Status, Store, Todo, TodoChange, TodoFilter};

const ALL: Bounds = Bounds { rows: 1_000, bytes: 1_000_000 };

fn titles(found: &FoundTodos) -> Vec<&str> {
    found.todos.iter().map(|it| it.title.as_str()).collect()
}

async fn create(store: &Store, title: &str) -> Todo {
    let new = NewTodo { title: title.to_owned(), ..NewTodo::default() };
    store.create_todo(&new).await.expect("a todo")
}

#[tokio::test]
async fn created_todo_is_read_back_unchanged() {
    on_both(async |store| {
        let new = NewTodo {
            title: "Buy 'milk' -- \"now\"; DROP TABLE todos".into(),
            description: Some("a\nb\t\\ 🥛 \u{202e}".into()),
            priority: Some(2),
            tags: vec!["Shop, ping".into(), "[\"x\"]".into()],
            due_date: Some("2026-02-28".into()),
        };
        let todo = store.create_todo(&new).await.expect("a todo");
        assert_eq!((todo.id, todo.status), (1, Status::Active));
        assert_eq!((&todo.title, &todo.description), (&new.title, &new.description));
        assert_eq!((todo.priority, &todo.tags, &todo.due_date), (Some(2), &new.tags, &new.due_date));
        assert_eq!(todo.created_at, todo.updated_at);
        assert_eq!(store.todo(1).await.expect("it is read"), Some(todo));
        let plain = create(store, "plain").await;
        assert_eq!((plain.description, plain.priority, plain.due_date), (None, None, None));
        assert_eq!(store.todo(3).await.expect("it is read"), None);
        assert_eq!(store.todo(i64::MIN).await.expect("it is read"), None);
    })
    .await;
}

#[tokio::test]
async fn update_changes_only_given_fields() {
    on_both(async |store| {
        let new = NewTodo {
            title: "one".into(),
            description: Some("d".into()),
            due_date: Some("2026-01-01".into()),
            ..NewTodo::default()
        };
        let before = store.create_todo(&new).await.expect("a todo");
        let change =
            TodoChange { status: Some(Status::Completed), priority: Some(5), ..TodoChange::default() };
        let after = store.update_todo(1, &change).await.expect("it is written").expect("there is one");
        let expected =
            Todo { status: Status::Completed, priority: Some(5), updated_at: after.updated_at, ..before };
        assert_eq!(after, expected);
        let change = TodoChange {
            title: Some("two".into()),
            description: Some(None),
            tags: Some(vec!["t".into()]),
            due_date: Some(None),
            ..TodoChange::default()
        };
        let after = store.update_todo(1, &change).await.expect("it is written").expect("there is one");
        assert_eq!((after.title.as_str(), &after.description, &after.due_date), ("two", &None, &None));
        let by_new_title = store.search_todos("TWO", &TodoFilter::default(), ALL).await.expect("it is read");
        assert_eq!(titles(&by_new_title), ["two"]);
        let by_old_title = store.search_todos("one", &TodoFilter::default(), ALL).await.expect("it is read");
        assert!(by_old_title.todos.is_empty());
        assert_eq!(store.update_todo(77, &change).await.expect("it is written"), None);
    })
    .await;
}

#[tokio::test]
async fn ids_are_not_reused() {
    on_both(async |store| {
        assert_eq!(create(store, "a").await.id, 1);
        assert_eq!(create(store, "b").await.id, 2);
        let gone = store.delete_todo(2).await.expect("it is deleted").expect("there was one");
        assert_eq!(gone.title, "b");
        assert_eq!(store.delete_todo(2).await.expect("it is asked"), None);
        let before = store.todos_version().await.expect("it is read");
        assert_eq!(create(store, "c").await.id, 3);
        let after = store.todos_version().await.expect("it is read");
        assert!(before.count + 1 == after.count && before.latest < after.latest, "{before:?} {after:?}");
    })
    .await;
}

#[tokio::test]
async fn filters_can_be_combined() {
    on_both(async |store| {
        for (title, priority, tags, due) in [
            ("a", Some(1), &["Home", "urgent"][..], Some("2026-01-31")),
            ("b", Some(1), &["home"], Some("2026-02-01")),
            ("c", Some(2), &["work"], Some("2026-02-28")),
            ("d", None, &[], None),
        ] {
            let tags = tags.iter().map(|it| (*it).to_owned()).collect();
            let due_date = due.map(str::to_owned);
            let new = NewTodo { title: title.into(), description: None, priority, tags, due_date };
            store.create_todo(&new).await.expect("a todo");
        }
        let done = TodoChange { status: Some(Status::Completed), ..TodoChange::default() };
        store.update_todo(2, &done).await.expect("it is written");
        let text = |text: &str| Some(text.to_owned());
        let tags = |tags: &[&str]| tags.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let none = TodoFilter::default;
        for (filter, expected) in [
            (none(), &["a", "b", "c", "d"][..]),
            (TodoFilter { status: Some(Status::Active), ..none() }, &["a", "c", "d"]),
            (TodoFilter { priority: Some(1), ..none() }, &["a", "b"]),
            (TodoFilter { tags: tags(&["HOME"]), ..none() }, &["a", "b"]),
            (TodoFilter { tags: tags(&["urgent", "home"]), ..none() }, &["a"]),
            (TodoFilter { tags: tags(&["hom"]), ..none() }, &[]),
            (TodoFilter { tags: tags(&["%"]), ..none() }, &[]),
            (TodoFilter { due_before: text("2026-02-01"), ..none() }, &["a"]),
            (TodoFilter { due_after: text("2026-02-01"), ..none() }, &["c"]),
            (
                TodoFilter { due_after: text("2026-01-30"), due_before: text("2026-02-02"), ..none() },
                &["a", "b"],
            ),
            (TodoFilter { priority: Some(1), status: Some(Status::Completed), ..none() }, &["b"]),
        ] {
            let found = store.list_todos(&filter, ALL).await.expect("it is read");
            assert_eq!(titles(&found), expected, "{filter:?} on {}", store.engine());
        }
        let newest = store.newest_todos(Status::Active, Bounds { rows: 2, ..ALL }).await.expect("it is read");
        assert_eq!((titles(&newest), newest.truncated), (vec!["d", "c"], true));
    })
    .await;
}

#[tokio::test]
async fn a_search_is_literal_and_ranked() {
    on_both(async |store| {
        for (title, description) in [
            ("About the farm", "they have MILK and eggs"),
            ("Buy milk and eggs", ""),
            ("Milk", ""),
            ("milk the cow", ""),
            ("100% sure", "a_b"),
            ("1000 things", "axb"),
            ("Straße, ÄPFEL", "ΟΔΟΣ it's \"so\" \\ "),
        ] {
            let description = (!description.is_empty()).then(|| description.to_owned());
            let new = NewTodo { title: title.into(), description, ..NewTodo::default() };
            store.create_todo(&new).await.expect("a todo");
        }
        for (text, expected) in [
            ("MILK", &["Milk", "milk the cow", "Buy milk and eggs", "About the farm"][..]),
            ("milk and eggs", &["Buy milk and eggs", "About the farm"]),
            ("eggs milk", &[]),
            ("100%", &["100% sure"]),
            ("%", &["100% sure"]),
            ("a_b", &["100% sure"]),
            ("_", &["100% sure"]),
            ("äpfel", &["Straße, ÄPFEL"]),
            ("STRASSE", &["Straße, ÄPFEL"]),
            ("οδος", &["Straße, ÄPFEL"]),
            ("it's \"so\" \\", &["Straße, ÄPFEL"]),
            ("' OR 1=1 --", &[]),
        ] {
            let found = store.search_todos(text, &TodoFilter::default(), ALL).await.expect("it is read");
            assert_eq!(titles(&found), expected, "{text:?} on {}", store.engine());
        }
        let filter = TodoFilter { status: Some(Status::Archived), ..TodoFilter::default() };
        let found = store.search_todos("milk", &filter, ALL).await.expect("it is read");
        assert!(found.todos.is_empty());
    })
    .await;
}

#[tokio::test]
async fn results_are_limited_by_rows_and_bytes() {
    on_both(async |store| {
        for number in 0..10 {
            create(store, &format!("{number}{}", "x".repeat(99))).await;
        }
        for (rows, bytes, expected) in [(10, 10_000, 10), (9, 10_000, 9), (10, 510, 5), (10, 10, 0)] {
            let found = store.list_todos(&TodoFilter::default(), Bounds { rows, bytes }).await;
            let found = found.expect("it is read");
            assert_eq!((found.todos.len(), found.truncated), (expected, expected < 10));
        }
    })
    .await;
}
