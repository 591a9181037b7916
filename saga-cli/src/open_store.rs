use saga_core::store::Store;

/// The location of an application's store, and how to open it.
///
/// # Cancel safety
///
/// The commands never drop these futures before they are ready.
#[expect(async_fn_in_trait, reason = "the commands are awaited one after the other, on the main thread of a program")]
pub trait OpenStore {
    /// The store that the application's runtimes work on.
    type Store: Store + Clone;

    /// The store's name in messages: a path, or a URL without its password.
    fn name(&self) -> String;

    /// Opens the store to write to it. The commands call this only after [`open_read_only`](Self::open_read_only) has found
    /// a store, so that a misspelt path makes no new one.
    async fn open(&self) -> anyhow::Result<Self::Store>;

    /// Opens the store read-only, beside the processes that work on it.
    ///
    /// # Errors
    ///
    /// If the store cannot be opened, or does not exist.
    async fn open_read_only(&self) -> anyhow::Result<Self::Store>;
}
