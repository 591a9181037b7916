//! An archive of sagas that are purged: compressed JSON lines in an object store, such as S3, or in a folder.
//!
//! A definition says with [`Retention`](saga_core::Retention) how long its sagas are kept. [`JsonLines`] keeps them elsewhere
//! before their payloads are deleted. If it fails, nothing is purged until it works again.
//!
//! Other object stores are features of [`object_store`], which an application depends on itself:
//! `object_store = { version = "0.14", features = ["aws"] }`.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use saga_core::{Runtime, memory::MemoryStore};
//! # let folder = tempfile::tempdir()?;
//! use saga_archive::JsonLines;
//!
//! let archive = JsonLines::in_folder(folder.path())?.prefix("sagas");
//! let runtime = Runtime::builder(MemoryStore::new()).archive(archive).start().await?;
//! # runtime.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod json_lines;

pub use object_store;

pub use self::json_lines::JsonLines;
