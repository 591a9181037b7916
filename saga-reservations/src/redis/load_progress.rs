/// How far this process has come with loading the keys of SQL. Each process loads by itself, and the first one that ends is
/// enough.
#[derive(Debug, Default)]
pub(super) struct LoadProgress {
    epoch: u64,
    /// The last key that Redis was told, or nothing.
    pub(super) after: String,
}

impl LoadProgress {
    /// Begins again if this is another epoch.
    pub(super) fn go_on_in(&mut self, epoch: u64) {
        if self.epoch != epoch {
            *self = Self { epoch, after: String::new() };
        }
    }
}
