use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rusqlite::Connection;

/// A copy of the book of the services outside, in a folder of its own, in which one card was charged once more.
pub(crate) fn with_a_charge_too_many(book: &Path) -> anyhow::Result<PathBuf> {
    let (folder, name) = book.parent().zip(book.file_name()).context("the book is a file in a folder")?;
    let folder = folder.join("planted");
    std::fs::create_dir(&folder)?;
    let copy = folder.join(name);
    Connection::open(book)?.execute("VACUUM INTO ?1", [copy.to_string_lossy()])?;
    let more = "INSERT INTO charges (key, order_id, amount_cents)
                SELECT key, order_id, amount_cents FROM charges ORDER BY id LIMIT 1";
    Connection::open(&copy)?.execute(more, [])?;
    Ok(copy)
}
