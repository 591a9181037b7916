//! All of them.

use super::{CardProcessor, MailServer};

#[derive(Debug, Clone, Default)]
pub struct Outside {
    pub cards: CardProcessor,
    pub mail: MailServer,
}
