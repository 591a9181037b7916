//! The parts that messages of Kafka's protocol are made of, in the versions before those are packed.

use std::collections::BTreeMap;

/// Reads a message from its beginning. Nothing where it is shorter than it says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    whole: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(whole: &'a [u8]) -> Self {
        Self { whole, at: 0 }
    }

    /// How many bytes were read.
    pub(super) const fn position(&self) -> usize {
        self.at
    }

    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let bytes = self.whole.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(bytes)
    }

    pub(super) fn i16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.bytes(2)?.try_into().ok()?))
    }

    pub(super) fn i32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    pub(super) fn i64(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.bytes(8)?.try_into().ok()?))
    }

    /// A text, which is empty where there is none.
    pub(super) fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.i16()?.max(0)).ok()?;
        Some(String::from_utf8_lossy(self.bytes(length)?).into_owned())
    }

    /// For each topic its name, and for each of its partitions what `partition` reads.
    pub(super) fn topics<T>(
        &mut self,
        mut partition: impl FnMut(&mut Self) -> Option<(i32, T)>,
    ) -> Option<BTreeMap<(String, i32), T>> {
        let mut read = BTreeMap::new();
        for _ in 0..self.i32()? {
            let topic = self.text()?;
            for _ in 0..self.i32()? {
                let (number, value) = partition(self)?;
                read.insert((topic.clone(), number), value);
            }
        }
        Some(read)
    }
}

/// Appends a text.
pub(super) fn write_text(to: &mut Vec<u8>, text: &str) {
    to.extend(i16::try_from(text.len()).unwrap_or(i16::MAX).to_be_bytes());
    to.extend(&text.as_bytes()[..text.len().min(i16::MAX as usize)]);
}
