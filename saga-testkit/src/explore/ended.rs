/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Every step is done.
    Completed,
    /// What took effect is undone.
    Compensated,
}
