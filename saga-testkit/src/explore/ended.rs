/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Every step is done.
    Completed,
    /// All effects are undone.
    Compensated,
}
