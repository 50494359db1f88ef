//! Content of results beside a SQLite database: one file for each, in the folder `results`.
//!
//! A row of `result_chunks` without bytes marks that a result has a file. It outlives the row of the result until the file
//! is removed, so every way to delete a result ends with the removal of its file.

use crate::StoreError;
use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};
use tokio::task;

/// Name of the folder, beside the database.
const FOLDER: &str = "results";

/// The folder with the content of results.
#[derive(Clone, Debug)]
pub(crate) struct ResultFiles {
    folder: PathBuf,
}

impl ResultFiles {
    /// Returns the folder beside a database. It is created with the first file.
    pub(crate) fn beside(database: &Path) -> ResultFiles {
        ResultFiles { folder: database.with_file_name(FOLDER) }
    }

    /// Writes a file that only its owner can read.
    pub(crate) async fn write(&self, id: &str, content: &[u8]) -> Result<(), StoreError> {
        let (folder, path, content) = (self.folder.clone(), self.path(id), content.to_vec());
        in_thread(move || {
            create_folder(&folder)?;
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let written = options.open(&path)?.write_all(&content);
            if written.is_err() {
                // Frees the space of a file that does not fit on the disk.
                let _ = fs::remove_file(&path);
            }
            written
        })
        .await
    }

    /// Reads a file. Returns `None` if there is none.
    pub(crate) async fn read(&self, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(id);
        in_thread(move || match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        })
        .await
    }

    /// Removes files, as far as they exist.
    pub(crate) async fn remove(&self, ids: &[String]) -> Result<(), StoreError> {
        let paths: Vec<PathBuf> = ids.iter().map(|it| self.path(it)).collect();
        let remove = |path: PathBuf| match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        in_thread(move || paths.into_iter().try_for_each(remove)).await
    }

    /// Returns the path of a file. Ids are ours, but a path must not depend on that.
    fn path(&self, id: &str) -> PathBuf {
        let name = id.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' });
        self.folder.join(name.collect::<String>())
    }
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    let done = task::spawn_blocking(work).await.map_err(|_| StoreError::File("interrupted".to_owned()))?;
    done.map_err(|error| StoreError::File(error.to_string()))
}
