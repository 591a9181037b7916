//! The business table of the store: named values and a log.

use std::collections::BTreeMap;

/// The rows of the business table of a [`MemoryStore`](crate::memory::MemoryStore).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryTable {
    rows: BTreeMap<String, Vec<u8>>,
    log: Vec<Vec<u8>>,
}

impl MemoryTable {
    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.rows.get(name).map(Vec::as_slice)
    }

    /// The counter of that name. A new counter is 0.
    pub fn counter(&self, name: &str) -> i64 {
        as_counter(self.get(name))
    }

    /// Every row, by name.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.rows.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// What was logged, in the order of the commits.
    pub fn log(&self) -> &[Vec<u8>] {
        &self.log
    }

    /// Writes a committed value, or deletes it.
    pub(in crate::memory) fn set(&mut self, name: String, value: Option<Vec<u8>>) {
        match value {
            Some(value) => self.rows.insert(name, value),
            None => self.rows.remove(&name),
        };
    }

    pub(in crate::memory) fn append_log(&mut self, entries: &mut Vec<Vec<u8>>) {
        self.log.append(entries);
    }
}

/// The value of a counter; a value that is no counter counts as 0.
pub(in crate::memory) fn as_counter(value: Option<&[u8]>) -> i64 {
    value.and_then(|value| value.try_into().ok()).map_or(0, i64::from_be_bytes)
}
