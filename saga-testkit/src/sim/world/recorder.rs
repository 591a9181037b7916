use std::sync::{Mutex, MutexGuard, PoisonError};

use saga_core::memory::MemoryStore;

use crate::checker::{Entry, What};
use crate::sim::executor::{Control, ProcessId};

/// Writes the ledger of a run. Nothing of the engine writes here: only step functions, the world outside, and the
/// clients do. What transactions committed is read from the log in the business data.
#[derive(Debug)]
pub(crate) struct Recorder {
    control: Control,
    /// By the numbers of the services.
    stores: Vec<MemoryStore>,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    entries: Vec<Entry>,
    numbers: u64,
    /// How much of the log of each store is entered.
    logged: Vec<usize>,
}

impl Recorder {
    pub(crate) fn new(control: Control, stores: Vec<MemoryStore>) -> Self {
        let book = Book { logged: vec![0; stores.len()], ..Book::default() };
        Self { control, stores, book: Mutex::new(book) }
    }

    /// A number that no other call has.
    pub(crate) fn number(&self) -> u64 {
        let mut book = self.lock();
        book.numbers += 1;
        book.numbers
    }

    pub(crate) fn enter(&self, process: ProcessId, what: What) {
        let at = self.control.now().as_micros() as u64;
        let mut book = self.lock();
        self.enter_commits(at, &mut book);
        book.entries.push(Entry { at, process: process.index(), what });
    }

    /// The ledger so far; it is empty afterwards.
    pub(crate) fn take(&self) -> Vec<Entry> {
        let mut book = self.lock();
        self.enter_commits(self.control.now().as_micros() as u64, &mut book);
        std::mem::take(&mut book.entries)
    }

    /// Enters what was committed since the last entry: so it stands before everything that could follow from it.
    fn enter_commits(&self, at: u64, book: &mut Book) {
        for (store, entered) in self.stores.iter().zip(&mut book.logged) {
            store.read(|table| {
                for logged in &table.log()[*entered..] {
                    let call = logged.as_slice().try_into().map_or(u64::MAX, u64::from_be_bytes);
                    book.entries.push(Entry { at, process: 0, what: What::Wrote { call } });
                }
                *entered = table.log().len();
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
